"""The pages of the demo as text."""

from __future__ import annotations

from html import escape

_START = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="/static/cloche.svg" type="image/svg+xml">
<link rel="stylesheet" href="/static/demo.css">
<script src="/static/demo.js" defer></script>
</head>
<body>
<header>
<a class="home" href="/"><img src="/static/cloche.svg" alt="" width="40" height="40">maitred</a>
<nav>
<a href="/live/">Live</a>
<a href="/guestbook">Guest book</a>
<a href="/calls">Calls</a>
<a href="/upload">Upload</a>
<a href="/stream">Stream</a>
<a href="/slow?seconds=3">Slow</a>
</nav>
</header>
<main>
<h1>{title}</h1>
"""

_END = """
</main>
<footer>Served by maitred. The applications need nothing but Python.</footer>
</body>
</html>
"""

INDEX = """<p class="lead">Good evening. Your table is ready: a WSGI application on threads of its own, and its
static files straight from the engine.</p>
<ul class="cards">
<li><a href="/live/"><strong>Live</strong> three requests hang, and you watch the others stay quick</a></li>
<li><a href="/live/#load"><strong>Dashboard</strong> start a gentle load and see what the server makes of it</a></li>
<li><a href="/guestbook"><strong>Guest book</strong> a form, a redirect after POST; SQLite, whose time the browser's tools show (Timing)</a></li>
<li><a href="/calls"><strong>Calls</strong> the page asks another service, quick or slow, and the server knows how long that took</a></li>
<li><a href="/stream"><strong>Stream</strong> a generator: every block leaves at once</a></li>
<li><a href="/slow?seconds=3"><strong>Slow page</strong> sleeps for three seconds and holds up nobody</a></li>
<li><a href="/download"><strong>Download</strong> 50 MB in blocks, as fast as you can read</a></li>
<li><a href="/upload"><strong>Upload</strong> any file: its size and SHA-256 come back</a></li>
<li><a href="/static/cloche.svg"><strong>Static file</strong> no thread of Python sees this one</a></li>
</ul>
"""

LIVE = """<p class="lead">Let three requests hang. The rest of the site does not notice.</p>
<p><button type="button" id="hang" disabled>Hang 3 requests for 5 seconds</button></p>
<ul class="hung" id="hung" aria-live="polite"></ul>
<h2>Look at the server itself</h2>
<p id="dashboard" hidden>The <a id="open-dashboard" target="_blank" rel="noopener">dashboard</a> shows where the time of each request goes. A gentle load of about 20 requests a second
gives it something to show.</p>
<p><button type="button" id="load" disabled>Start a gentle load</button> <output id="load-said"></output></p>
<h2>How long the others take</h2>
<dl class="figures">
<div><dt>a page, by a thread</dt><dd><output id="wsgi">–</output></dd></div>
<div><dt>a file, by the engine</dt><dd><output id="file">–</output></dd></div>
<div><dt>this list, by an event loop</dt><dd><output id="asgi">–</output></dd></div>
</dl>
<h2>What the threads are doing</h2>
<p><output id="queued">Waiting for the first look …</output></p>
<div class="scroll"><table>
<thead><tr><th scope="col">thread</th><th scope="col">request</th><th scope="col">since</th></tr></thead>
<tbody id="threads"></tbody>
</table></div>
<p class="soft">The list comes from the server itself: <code>maitred ctl threads</code> shows the same. It is served by an ASGI
application that is mounted beside the WSGI application of the other pages.</p>
<noscript><p class="error">This page needs JavaScript.</p></noscript>
<script src="/static/live.js" defer></script>
"""

NOT_MOUNTED = """<p>This page is the ASGI half of the demo. Start it with
<code>--mount /live=examples/demo/live.py</code>, as <code>make run</code> does.</p>
"""

FORM = """<form method="post" action="/guestbook">
<label>Your name <input type="text" name="name" maxlength="60" required></label>
<label>Your words <textarea name="text" rows="4" maxlength="1000" required></textarea></label>
<button>Sign</button>
</form>
"""

UPLOAD = """<form method="post" action="/upload" enctype="multipart/form-data">
<label>A file <input type="file" name="file" required></label>
<button>Send</button>
</form>
<p>The whole body is received before the application runs, so a slow sender holds no thread.</p>
"""

CALLS = """<p class="lead">This page asks a service of its own for a price, over HTTP.</p>
<ul class="cards">
<li><a href="/calls?service=quick"><strong>Quick</strong> the service has the price at hand</a></li>
<li><a href="/calls?service=slow"><strong>Slow</strong> the service thinks before it answers</a></li>
</ul>
<p>The browser's tools show the call of a page as <em>outgoing</em> (Timing). <code>maitred ctl upstreams</code> and the dashboard
have all calls, by service; a slow request in the log names the service that it waited for.</p>
"""

STREAM_START = """<p>Each line is one block of a generator. They appear one by one because none is held back.</p>
<ol class="stream">
"""

STREAM_END = "</ol>\n<p>That was all.</p>" + _END


def page(title: str, content: str, *, end: bool = True) -> str:
    """A whole page, or without ``end`` its beginning."""
    return _START.format(title=escape(title)) + content + (_END if end else "")
