"""An application below a URL path: the proxy in front leaves the prefix, or takes it off, and both are the same page."""

from __future__ import annotations

import json

import pytest
from conftest import Serve, needs

WSGI = {
    "flask": """
from flask import Flask, jsonify, redirect, request, url_for
app = Flask(__name__)

@app.get("/page/<name>")
def page(name):
    return jsonify(name=name, url=url_for("page", name=name))

@app.get("/old")
def old():
    return redirect(url_for("page", name="a"))
""",
    "django": """
import django
from django.conf import settings
settings.configure(SECRET_KEY="for tests", ALLOWED_HOSTS=["127.0.0.1"], ROOT_URLCONF=__name__)
django.setup()
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponseRedirect, JsonResponse
from django.urls import path, reverse

def page(request, name):
    return JsonResponse({"name": name, "url": reverse("page", args=[name])})

def old(request):
    return HttpResponseRedirect(reverse("page", args=["a"]))

urlpatterns = [path("page/<name>", page, name="page"), path("old", old)]
app = get_wsgi_application()
""",
}

ASGI = {
    "django": WSGI["django"].replace("app = get_wsgi_application()", "app = get_asgi_application()"),
    "fastapi": """
from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse
app, inner = FastAPI(), FastAPI()

@inner.get("/{name}", name="page")
async def page(request: Request, name: str):
    return {"name": name, "url": request.scope["root_path"] + "/" + name}

@app.get("/old")
async def old(request: Request):
    return RedirectResponse(request.scope["root_path"] + "/page/a", 302)

app.mount("/page", inner)
""",
    "starlette": """
from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse
from starlette.routing import Mount, Route

async def page(request):
    name = request.path_params["name"]
    return JSONResponse({"name": name, "url": str(request.url_for("pages:page", name=name).path)})

async def old(request):
    return RedirectResponse(request.url_for("pages:page", name="a").path, 302)

app = Starlette(routes=[Mount("/page", routes=[Route("/{name}", page, name="page")], name="pages"), Route("/old", old)])
""",
    "quart": """
from quart import Quart, redirect, url_for
app = Quart(__name__)

@app.get("/page/<name>")
async def page(name):
    return {"name": name, "url": url_for("page", name=name)}

@app.get("/old")
async def old():
    return redirect(url_for("page", name="a"))
""",
    "litestar": """
from litestar import Litestar, Request, get
from litestar.response import Redirect

@get("/page/{name:str}")
async def page(request: Request, name: str) -> dict[str, str]:
    return {"name": name, "url": request.scope["root_path"] + "/page/" + name}

@get("/old")
async def old(request: Request) -> Redirect:
    return Redirect(request.scope["root_path"] + "/page/a", status_code=302)

app = Litestar([page, old])
""",
}

CASES = [("wsgi", name) for name in WSGI] + [("asgi", name) for name in ASGI]


@pytest.mark.parametrize(("interface", "framework"), CASES)
def test_both_forms_are_the_same(serve: Serve, interface: str, framework: str) -> None:
    needs(framework)
    source = (WSGI if interface == "wsgi" else ASGI)[framework]
    server = serve("--root-path", "/shop", "--interface", interface, source=source, checked=False)
    for prefix in ("/shop", ""):
        page = server.fetch(f"{prefix}/page/a")
        assert page.status == 200, (prefix, server.said)
        assert json.loads(page.body) == {"name": "a", "url": "/shop/page/a"}
        moved = server.fetch(f"{prefix}/old")
        assert (moved.status, moved.headers["Location"]) == (302, "/shop/page/a")
        assert server.fetch(f"{prefix}/none").status == 404
