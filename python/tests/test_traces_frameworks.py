"""Django and FastAPI under `opentelemetry-instrument`, in two workers: one trace from the client to the database.

One site has both: a start takes seconds, since each of its interpreters loads the agent."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import sys
from pathlib import Path

import pytest
from collector import Collector, Span, collector
from conftest import Server, needs

__all__ = ["collector"]

for module in ("django", "fastapi", "opentelemetry.instrumentation.django", "opentelemetry.instrumentation.fastapi",
               "opentelemetry.instrumentation.sqlite3", "opentelemetry.exporter.otlp.proto.http", "opentelemetry.distro"):
    needs(module)

AGENT = Path(sys.executable).with_name("opentelemetry-instrument")

SETTINGS = """
SECRET_KEY, ALLOWED_HOSTS, ROOT_URLCONF = "for tests", ["127.0.0.1"], "django_shop"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
MIDDLEWARE = []
"""
DJANGO = """
import os
from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.http import HttpResponse
from django.urls import path

def item(request, number):
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return HttpResponse(str(os.getpid()))

urlpatterns = [path("items/<int:number>", item), path("internal/items/<int:number>", item)]
app = get_wsgi_application()
"""
FASTAPI = """
import os, sqlite3
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

app = FastAPI()

@app.get("/items/{number}", response_class=PlainTextResponse)
@app.get("/internal/items/{number}", response_class=PlainTextResponse)
def item(number: int):
    sqlite3.connect(":memory:").cursor().execute("SELECT 1")
    return str(os.getpid())
"""
#: Below `/internal` the application is wrapped as the guide says: the framework's span is an INTERNAL one, as there is a span already.
WRAPPED = {
    "django": """
from opentelemetry import context
from opentelemetry.propagate import extract

def below(app):
    def within(environ, start_response):
        token = context.attach(extract({"traceparent": environ["HTTP_TRACEPARENT"]}))
        try:
            return app(environ, start_response)
        finally:
            context.detach(token)
    return within

plain, wrapped = app, below(app)

def app(environ, start_response):
    return (wrapped if environ["PATH_INFO"].startswith("/internal") else plain)(environ, start_response)
""",
    "fastapi": """
from opentelemetry import context
from opentelemetry.propagate import extract

def below(app):
    async def within(scope, receive, send):
        token = context.attach(extract({name.decode(): value.decode() for name, value in scope.get("headers", [])}))
        try:
            await app(scope, receive, send)
        finally:
            context.detach(token)
    return within

plain, wrapped = app, below(app)

async def app(scope, receive, send):
    await (wrapped if "/internal" in scope.get("path", "") else plain)(scope, receive, send)
""",
}
SOURCES = {"django": DJANGO + WRAPPED["django"], "fastapi": FASTAPI + WRAPPED["fastapi"]}
PLACES = {"django": "", "fastapi": "/fast"}
OURS = "maitred"


class Instrumented(Server):
    def command(self, arguments: list[str]) -> list[str | Path]:
        return [AGENT, *super().command(arguments)]

    def wait_for(self, pattern: str, start: int = 0) -> re.Match[str]:
        """Three interpreters start one after the other, each with the agent: on a busy machine that takes longer than other starts."""
        with contextlib.suppress(AssertionError):
            return super().wait_for(pattern, start)
        return super().wait_for(pattern, start)


def site(folder: Path, collector: Collector) -> Server:
    (folder / "shop_settings.py").write_text(SETTINGS)
    for framework, source in SOURCES.items():
        (folder / f"{framework}_shop.py").write_text(source)
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_SERVICE_NAME": "shop",
        "OTEL_BSP_SCHEDULE_DELAY": "50", "OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none", "DJANGO_SETTINGS_MODULE": "shop_settings",
    }
    mount = f"{PLACES['fastapi']}=fastapi_shop:app"
    server = Instrumented(["django_shop:app", "--mount", mount, "--workers", "2", "--otlp", "on", "--otlp-signals", "traces",
                           "--trace-trust", "all"], folder, variables)
    server.wait_for("info all workers are ready")
    return server


def asked(server: Server, path: str) -> dict[str, str]:
    """Requests until both workers have answered two: by their trace, the caller's span."""
    callers: dict[str, str] = {}
    pids: list[bytes] = []
    while len(set(pids)) < 2 or min(map(pids.count, pids)) < 2:
        trace, caller = secrets.token_hex(16), secrets.token_hex(8)
        reply = server.fetch(path, traceparent=f"00-{trace}-{caller}-01")
        assert reply.status == 200, reply.body
        pids.append(reply.body)
        callers[trace] = caller
    return callers


def trees(collector: Collector, callers: dict[str, str]) -> dict[str, list[Span]]:
    """Waits for the spans of all traces, which must each be one tree below the caller's span."""

    def by_trace() -> dict[str, list[Span]]:
        found: dict[str, list[Span]] = {trace: [] for trace in callers}
        for span in collector.spans():
            found.get(span.trace, []).append(span)
        return found

    def is_whole(trace: str, spans: list[Span]) -> bool:
        ids = {span.id for span in spans} | {callers[trace]}
        return any("SELECT" in span.name for span in spans) and all(span.parent in ids for span in spans)

    def are_whole() -> bool:
        return all(is_whole(trace, spans) and len({span.scope for span in spans}) == 3 for trace, spans in by_trace().items())

    collector.until("all traces are whole", are_whole)
    return by_trace()


def test_one_trace_from_the_client_to_the_database(tmp_path: Path, collector: Collector) -> None:
    server = site(tmp_path, collector)
    try:
        plain = {framework: asked(server, f"{place}/items/7") for framework, place in PLACES.items()}
        internal = {framework: asked(server, f"{place}/internal/items/7") for framework, place in PLACES.items()}
        callers = {trace: caller for each in (*plain.values(), *internal.values()) for trace, caller in each.items()}
        found = trees(collector, callers)
        for framework in PLACES:
            for trace in plain[framework] | internal[framework]:
                spans = found[trace]
                [own] = [span for span in spans if span.parent == callers[trace]]
                [root] = [span for span in spans if span.parent == own.id]
                [query] = [span for span in spans if "SELECT" in span.name]
                assert (own.scope, own.kind, query.kind) == (OURS, "SERVER", "CLIENT")
                assert root.kind == ("SERVER" if trace in plain[framework] else "INTERNAL")
                assert root.scope == f"opentelemetry.instrumentation.{framework}" and query.parent == root.id
                assert own.start <= root.start <= query.start <= query.end <= root.end
                assert own.resource["service.name"] == root.resource["service.name"] == "shop"
                if framework == "fastapi":
                    assert own.name.startswith("GET /") and own.name.endswith("items/{number}")
        assert len({span.resource["service.instance.id"] for span in collector.spans() if span.scope == OURS}) == 2
        assert server.stop() == 0, server.said
    finally:
        server.kill()


#: As older versions of the agent do it: their folder is first on PYTHONPATH, and taken out there at the start of the process.
OLDER = """
import os
here = os.path.dirname(os.path.abspath(__file__))
others = [each for each in os.environ["PYTHONPATH"].split(os.pathsep) if each != here]
os.environ["PYTHONPATH"] = os.pathsep.join(others)
loaded = True
"""
ASKED = """
import sitecustomize

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "4")])
    return [str(sitecustomize.loaded).encode()]
"""


def test_workers_have_an_agent_that_takes_itself_out_of_the_path(tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent/sitecustomize.py").write_text(OLDER)
    (tmp_path / "asked.py").write_text(ASKED)
    path = os.pathsep.join([str(tmp_path / "agent"), str(tmp_path)])
    server = Server(["asked:app", "--workers", "2"], tmp_path, {"PYTHONPATH": path})
    try:
        server.wait_for("info all workers are ready")
        assert server.fetch("/").body == b"True"
    finally:
        server.kill()
