from django.urls import path

from shop import views

urlpatterns = [path("categories/<int:number>", views.category), path("products/<int:number>", views.products)]
