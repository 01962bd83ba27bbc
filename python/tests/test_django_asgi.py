"""Django as an ASGI application over the wire, on both event loops.

It reads the whole body, then runs the view in a task beside one that waits for the client's end; views that are no
coroutines run in one thread for each request.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import needs
from sites import (
    ASYNC_COMMON,
    DJANGO_MAIN,
    DJANGO_SETTINGS,
    LARGE,
    SERVER,
    Site,
    asgi_site,
    prepare_django,
    streamed,
    token,
)

needs("django")

SOURCE = ASYNC_COMMON + DJANGO_SETTINGS + """
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.asgi import get_asgi_application
from django.http import FileResponse, HttpResponse, JsonResponse, StreamingHttpResponse
from django.template import engines
from django.urls import path
from django.views import View
from django.views.decorators.csrf import csrf_exempt

FORM = '<form method="post">{% csrf_token %}<input name="text">{{ text }}</form>'

def form(request):
    template = engines["django"].from_string(FORM)
    return HttpResponse(template.render({"text": request.POST.get("text", "")}, request))

async def async_form(request):
    template = engines["django"].from_string(FORM)
    return HttpResponse(await sync_to_async(template.render)({"text": request.POST.get("text", "")}, request))

def count(request):
    request.session["count"] = request.session.get("count", 0) + 1
    return HttpResponse(str(request.session["count"]))

async def async_count(request):
    number = await request.session.aget("count", 0) + 1
    await request.session.aset("count", number)
    return HttpResponse(str(number))

@csrf_exempt
async def upload(request):
    file = request.FILES["file"]
    return JsonResponse({"kind": type(file).__name__, "size": file.size, "digest": digest(b"".join(file.chunks()))})

@csrf_exempt
def raw(request):
    return HttpResponse(digest(b"".join([request.read(1000), request.readline(), request.read()])))

async def where(request):
    await asyncio.sleep(0)
    return JsonResponse({"path": request.path, "outside": request.build_absolute_uri("/x"),
                         "q": request.GET.getlist("q"), "client": request.META["REMOTE_ADDR"]})

def threads(request):
    async def inner():
        return asyncio.get_running_loop() is not None
    return JsonResponse([threading.current_thread() is threading.main_thread(), async_to_sync(inner)()], safe=False)

class Users(View):
    async def get(self, request):
        names = [user.username async for user in User.objects.all()]
        return JsonResponse([names, (await User.objects.aget(pk=1)).is_superuser], safe=False)

async def stream(request):
    return StreamingHttpResponse(rows(), content_type="text/plain")

async def endless_stream(request):
    return StreamingHttpResponse(endless())

async def wait(request):
    happen("waiting")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        happen("cancelled")
        raise

async def go(request):
    going.set()
    return HttpResponse(status=204)

async def seen_name(request, name):
    return JsonResponse(await seen(name, int(request.GET.get("times", 1))), safe=False)

def file(request):
    return FileResponse(open(HERE / "large.bin", "rb"), as_attachment=True)

def crash(request):
    raise ValueError("a view failed")

async def async_crash(request):
    raise ValueError("a coroutine failed")

views = [form, async_form, count, async_count, upload, raw, where, threads, stream, endless_stream, wait, go, file,
         crash, async_crash]
urlpatterns = [path("admin/", admin.site.urls), path("seen/<str:name>", seen_name), path("users", Users.as_view())]
urlpatterns += [path(view.__name__, view) for view in views]
application = get_asgi_application()
""" + DJANGO_MAIN


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database and static files, which takes seconds to make: for both event loops."""
    folder = tmp_path_factory.mktemp("django")
    prepare_django(folder, SOURCE)
    return folder


@pytest.fixture(scope="module")
def django(project: Path, loop: str) -> Iterator[Site]:
    yield from asgi_site(project, "pages", SOURCE, loop, "--static", "/static=static", attribute="application")


def test_views_see_the_request(django: Site) -> None:
    base = django.url
    assert django.json("/where?q=%C3%BC&q=b") == {
        "path": "/where",
        "outside": f"{base}/x",
        "q": ["ü", "b"],
        "client": "127.0.0.1",
    }
    assert django.client.get("/nothing").status_code == 404


def test_views_run_in_threads_or_on_the_loop(django: Site) -> None:
    assert django.json("/threads") == [False, True]
    names, superuser = django.json("/users")
    assert (names[0], superuser) == ("root", True)


@pytest.mark.parametrize("path", ["/form", "/async_form"])
def test_forms_are_protected(django: Site, path: str) -> None:
    page = django.client.get(path)
    form = {"csrfmiddlewaretoken": token(page.text), "text": "grüße <b>"}
    assert "grüße &lt;b&gt;</form>" in django.client.post(path, data=form).text
    refused = django.client.post(path, data={"text": "x"})
    assert (refused.status_code, "CSRF" in refused.text) == (403, True)


@pytest.mark.parametrize("path", ["/count", "/async_count"])
def test_sessions_are_kept_in_the_database(django: Site, path: str) -> None:
    django.client.cookies.clear()
    assert [django.client.get(path).text for _ in range(3)] == ["1", "2", "3"]


def test_uploads_in_memory_and_on_disk(django: Site) -> None:
    for data, kind in [(LARGE, "TemporaryUploadedFile"), (LARGE[:1000], "InMemoryUploadedFile")]:
        digest = hashlib.sha256(data).hexdigest()
        reply = django.json("/upload", "POST", files={"file": ("a.bin", data)})
        assert reply == {"kind": kind, "size": len(data), "digest": digest}
        assert django.client.post("/raw", content=data).text == digest
        blocks = (data[at : at + 70_000] for at in range(0, len(data), 70_000))
        assert django.client.post("/raw", content=blocks).text == digest, "chunked"


def test_a_stream_arrives_block_by_block(django: Site) -> None:
    streamed(django.client, "/stream", [b"first\n", b"second\n"])


def test_a_stream_whose_client_leaves_is_closed(django: Site) -> None:
    for times in (1, 2, 3):
        django.leave("/endless_stream")
        assert django.json("/seen/closed", params={"times": times}) == times


def test_a_view_whose_client_leaves_is_cancelled(django: Site) -> None:
    with django.connection() as peer:
        peer.sendall(b"GET /wait HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert django.json("/seen/waiting") == 1
    assert django.json("/seen/cancelled") == 1


def test_files(django: Site) -> None:
    reply = django.client.get("/file")
    assert (reply.status_code, reply.content == LARGE) == (200, True)
    assert reply.headers["content-length"] == str(len(LARGE))
    assert reply.headers["content-disposition"] == 'attachment; filename="large.bin"'
    head = django.client.head("/file")
    assert (head.content, head.headers["content-length"]) == (b"", str(len(LARGE)))


def test_admin_with_its_static_files(django: Site, loop: str) -> None:
    page = django.client.get("/admin/", follow_redirects=True)
    assert (page.status_code, page.url.path) == (200, "/admin/login/")
    files = re.findall(r'(?:href|src)="(/static/[^"]+)"', page.text)
    assert any(file.endswith("base.css") for file in files)
    for file in files if SERVER == "maitred" else []:
        reply = django.client.get(file)
        assert reply.status_code == 200, file
        assert reply.headers["content-type"].startswith(("text/css", "text/javascript")), file
    form = {"csrfmiddlewaretoken": token(page.text), "username": "root", "password": "secret", "next": "/admin/"}
    index = django.client.post("/admin/login/", data=form, follow_redirects=True)
    assert (index.status_code, index.url.path) == (200, "/admin/")
    page = django.client.get("/admin/auth/user/add/")
    form = {"csrfmiddlewaretoken": token(page.text), "username": f"zoë_{loop}", "usable_password": "true"}
    form |= {"password1": "a-long-secret-7", "password2": "a-long-secret-7"}
    made = django.client.post("/admin/auth/user/add/", data=form, follow_redirects=True)
    assert (made.status_code, f"zoë_{loop}" in made.text) == (200, True)


def test_errors_are_logged(django: Site) -> None:
    for path, why in [("/crash", "a view failed"), ("/async_crash", "a coroutine failed")]:
        assert django.client.get(path).status_code == 500
        django.server.wait_for(rf"(?s)Internal Server Error: {path}.*ValueError: {why}")
