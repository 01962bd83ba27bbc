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
<a href="/guestbook">Guest book</a>
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
<footer>Served by maitred. Every page here is one file of Python's standard library.</footer>
</body>
</html>
"""

INDEX = """<p class="lead">Good evening. Your table is ready: a WSGI application on threads of its own, and its
static files straight from the engine.</p>
<ul class="cards">
<li><a href="/guestbook"><strong>Guest book</strong> a form, SQLite, a redirect after POST</a></li>
<li><a href="/stream"><strong>Stream</strong> a generator: every block leaves at once</a></li>
<li><a href="/slow?seconds=3"><strong>Slow page</strong> sleeps for three seconds and holds up nobody</a></li>
<li><a href="/download"><strong>Download</strong> 50 MB in blocks, as fast as you can read</a></li>
<li><a href="/upload"><strong>Upload</strong> any file: its size and SHA-256 come back</a></li>
<li><a href="/static/cloche.svg"><strong>Static file</strong> no thread of Python sees this one</a></li>
</ul>
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

STREAM_START = """<p>Each line is one block of a generator. They appear one by one because none is held back.</p>
<ol class="stream">
"""

STREAM_END = "</ol>\n<p>That was all.</p>" + _END


def page(title: str, content: str, *, end: bool = True) -> str:
    """A whole page, or without ``end`` its beginning."""
    return _START.format(title=escape(title)) + content + (_END if end else "")
