"""Threads, a prefix, and TLS by gunicorn itself."""

name = "shop"
base = "/srv/shop"

wsgi_app = "shop.wsgi:create_app()"
bind = f"127.0.0.1:{8000}"
worker_class = "gthread"
threads = 2 * 4
keepalive = 75
preload_app = False
certfile = base + "/cert.pem"
keyfile = base + "/key.pem"
forwarded_allow_ips = "*"
raw_env = ["SCRIPT_NAME=/shop"]
limit_request_line = 4094
user = None
accesslog = base + "/access.log"
errorlog = "-"
