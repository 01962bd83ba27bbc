"""A small Django project: one page, a template, ten queries."""
