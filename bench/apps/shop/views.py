from django.db.models import Avg, Count
from django.shortcuts import get_object_or_404, render

from shop.models import Category, Product, Review

SHOWN = 7


def category(request, number):
    """Ten queries: the category, its products, the reviews of each of seven, and a summary."""
    shown = get_object_or_404(Category, pk=number)
    products = list(Product.objects.filter(category=shown).order_by("name")[:SHOWN])
    entries = [(product, list(product.review_set.order_by("-stars")[:3])) for product in products]
    summary = Review.objects.filter(product__category=shown).aggregate(count=Count("id"), stars=Avg("stars"))
    return render(request, "category.html", {"category": shown, "entries": entries, "summary": summary})


def products(request, number):
    """One query and a template."""
    listed = Product.objects.filter(category=number).order_by("name")
    return render(request, "products.html", {"number": number, "products": listed})
