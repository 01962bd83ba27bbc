"""FastAPI: an endpoint that returns a dictionary, and one that validates its path, query and body."""

from fastapi import FastAPI
from pydantic import BaseModel, Field

application = FastAPI(openapi_url=None)


class Item(BaseModel):
    name: str = Field(min_length=1, max_length=100)
    price: float = Field(gt=0)
    tags: list[str] = []


class Order(BaseModel):
    customer: int
    items: list[Item] = Field(min_length=1)


@application.get("/")
async def hello() -> dict[str, str]:
    return {"message": "Hello, world!"}


@application.post("/orders/{number}")
async def order(number: int, order: Order, currency: str = "CHF") -> dict[str, object]:
    total = sum(item.price for item in order.items)
    return {"number": number, "customer": order.customer, "currency": currency, "total": round(total, 2)}
