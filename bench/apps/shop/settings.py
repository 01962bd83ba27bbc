"""What `startproject` writes, less what the page does not touch.

`BENCH_DATABASE` is the file of SQLite's database; `BENCH_POSTGRES` the folder of PostgreSQL's socket, and then that is used.
"""

import os
from pathlib import Path

SECRET_KEY = "not a secret: the bench is loaded from this machine only"
DEBUG = False
ALLOWED_HOSTS = ["localhost"]
ROOT_URLCONF = "shop.urls"
WSGI_APPLICATION = "shop.wsgi.application"
INSTALLED_APPS = ["shop"]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [Path(__file__).parent / "templates"],
    }
]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("BENCH_DATABASE", ":memory:"),
        "CONN_MAX_AGE": 600,
    }
}
if "BENCH_POSTGRES" in os.environ:
    DATABASES["default"] |= {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "bench",
        "USER": "bench",
        "HOST": os.environ["BENCH_POSTGRES"],
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
