from os import environ

wsgi_app = "shop.web:app"
bind = "127.0.0.1:" + environ.get("PORT", "8000")
worker_class = "uvicorn.workers.UvicornWorker"
workers = int(environ.get("WEB_CONCURRENCY", 1))
forwarded_allow_ips = "127.0.0.1"
graceful_timeout = 10
secure_scheme_headers = {"X-FORWARDED-PROTO": "https"}
