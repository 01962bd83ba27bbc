"""WSGI responses without end, made in three ways: `/iterable/200`, `/write/204`, `/django/304`. `/` is a hello, `/left` counts what was begun and
what was ended."""

import json

import django
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.http import StreamingHttpResponse
from django.urls import path as route

BLOCK = b"x" * 1000
HELLO = b"Hello, world!"
counts = {"begun": 0, "ended": 0}


class Blocks:
    """No generator, so that a response counts as open until the server calls `close`."""

    def __init__(self):
        counts["begun"] += 1
        self.open = True

    def __iter__(self):
        return self

    def __next__(self):
        return BLOCK

    def close(self):
        counts["ended"] += self.open
        self.open = False


settings.configure(SECRET_KEY="x", ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__)
django.setup()
urlpatterns = [route("django/<int:status>", lambda request, status: StreamingHttpResponse(Blocks(), status=status))]
_django = WSGIHandler()


def application(environ, start_response):
    kind, _, status = environ["PATH_INFO"][1:].partition("/")
    if kind == "django":
        return _django(environ, start_response)
    if not kind or kind == "left":
        body = json.dumps(counts).encode() if kind else HELLO
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
        return [body]
    write = start_response(f"{status} Said", [("Content-Type", "text/plain")])
    if kind == "iterable":
        return Blocks()
    blocks = Blocks()
    try:
        while True:
            write(BLOCK)
    finally:
        blocks.close()
