# The shop's server, behind nginx on the same machine.
import multiprocessing
import os

wsgi_app = "shop.wsgi"
chdir = "/srv/shop"

bind = ["127.0.0.1:8000", "unix:/srv/shop/gunicorn.sock"]
backlog = 512
workers = min(multiprocessing.cpu_count() * 2 + 1, 2)
worker_class = "sync"
max_requests = 1000
max_requests_jitter = 50
timeout = 60
graceful_timeout = 20

loglevel = os.environ.get("LOG_LEVEL", "warning")
accesslog = "-"
access_log_format = '%(h)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s %({x-request-id}i)s'
pidfile = "/srv/shop/gunicorn.pid"
raw_env = ["SHOP_MODE=production"]
proc_name = "shop"


def post_fork(server, worker):
    server.log.info("worker %s", worker.pid)


def when_ready(server):
    server.log.info("ready")
