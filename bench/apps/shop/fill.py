"""`python -m shop.fill CATEGORIES` makes the tables and their rows, the same ones each time."""

import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")

import django  # noqa: E402
from django.db import connection, transaction  # noqa: E402

PRODUCTS, REVIEWS = 12, 5


def main(categories):
    from shop.models import Category, Product, Review

    with connection.schema_editor() as editor:
        for model in (Category, Product, Review):
            editor.create_model(model)
    with transaction.atomic():
        for number in range(1, categories + 1):
            category = Category.objects.create(pk=number, name=f"Category {number} <b>& more</b>")
            for place in range(PRODUCTS):
                product = Product.objects.create(category=category, name=f"Product {place:02d}", price=f"{place + 1}.90")
                Review.objects.bulk_create(
                    Review(product=product, stars=1 + (place + star) % 5, text=f"Review {star}: it is {'very ' * star}good.")
                    for star in range(REVIEWS)
                )


django.setup()
main(int(sys.argv[1]))
