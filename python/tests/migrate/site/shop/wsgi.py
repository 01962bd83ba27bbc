import os

from shop.told import told


def application(environ, start_response):
    if environ["PATH_INFO"] == "/missing":
        start_response("404 Not Found", [("Content-Type", "text/plain"), ("Content-Length", "7")])
        return [b"no such"]
    fields = {name[5:].lower().replace("_", "-"): value for name, value in environ.items() if name.startswith("HTTP_")}
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    answer = told(
        environ["REQUEST_METHOD"], environ["SCRIPT_NAME"], environ["PATH_INFO"], environ["QUERY_STRING"], environ["wsgi.url_scheme"],
        body, fields,
    )
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(answer))), ("X-Mode", os.environ.get("SHOP_MODE", "none"))]
    start_response("200 OK", headers)
    return [answer]


def create_app():
    return application
