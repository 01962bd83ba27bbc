"""Flask: one page from a Jinja template."""

from flask import Flask, render_template

application = Flask(__name__)
_TAGS = ("new", "heavy <b>", "of a longer sort")
ROWS = [{"name": f"Item {number:03d} & more", "price": 1.5 * number, "tags": _TAGS} for number in range(40)]


@application.get("/listing/<int:number>")
def listing(number):
    return render_template("listing.html", title=f"Listing {number}", rows=ROWS)
