"""What an application's framework calls the route of a request, for statistics and logs.

An application names a route itself with ``scope["maitred.route"] = "/search"`` (ASGI) or ``environ["maitred.route"]`` (WSGI), before its
response begins.  Else the framework's route is looked for where routers leave it:

- Starlette and FastAPI: ``scope["route"]``, before Starlette 1.0 ``scope["endpoint"]``; Litestar: ``scope["path_template"]``;
- Flask: ``url_rule`` of ``environ["werkzeug.request"]``; Bottle: ``environ["bottle.route"]``;
- Django leaves nothing there: ``maitred.instrument.django`` puts it under the first key.

Called by the engine, and only for a request to whose scope or environ the application has added something.
"""

from __future__ import annotations

from typing import Any

KEY = "maitred.route"


def of_scope(scope: dict[str, Any]) -> str | None:
    """The route of an ASGI request."""
    if named := scope.get(KEY):
        return str(named)
    prefix = scope.get("root_path", "")
    if template := scope.get("path_template"):
        return f"{prefix}{template}"
    route = scope.get("route")
    if route is None:
        if "endpoint" not in scope:
            return None
        return filled_in(scope["path"], scope.get("path_params", {}))
    parameters = scope.get("path_params", {})
    # FastAPI: a router that was included knows the whole path, its route only the end.
    context = scope.get("fastapi", {}).get("effective_route_context")
    if context is not None and getattr(context, "original_route", None) is route:
        route = context
    own = getattr(route, "param_convertors", {})
    prefix = filled_in(prefix, {name: value for name, value in parameters.items() if name not in own})
    # What is mounted, and has no routes of its own, such as a folder.
    return f"{prefix}/*" if hasattr(route, "routes") else f"{prefix}{route.path}"


def filled_in(path: str, parameters: dict[str, Any]) -> str:
    """This path with the names of parameters in the place of their values."""
    for name, value in parameters.items():
        before, found, after = (path + "/").rpartition(f"/{value}/")
        if found:
            path = f"{before}/{{{name}}}/{after}"[:-1]
    return path


def of_environ(environ: dict[str, Any]) -> str | None:
    """The route of a WSGI request."""
    if named := environ.get(KEY):
        return str(named)
    route = getattr(environ.get("werkzeug.request"), "url_rule", None) or environ.get("bottle.route")
    return None if route is None else f"{environ.get('SCRIPT_NAME', '')}{route.rule}"
