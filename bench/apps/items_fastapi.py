"""FastAPI and SQLAlchemy (asyncpg): a category with its products and their reviews, from the tables of `shop`.

`BENCH_POSTGRES` is the folder of the database's socket.
"""

import os

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, ConfigDict
from sqlalchemy import ForeignKey, select
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship, selectinload


class Base(DeclarativeBase):
    pass


class Category(Base):
    __tablename__ = "shop_category"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    products: Mapped[list["Product"]] = relationship(order_by="Product.name")


class Product(Base):
    __tablename__ = "shop_product"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    category_id: Mapped[int] = mapped_column(ForeignKey("shop_category.id"))


class ProductOut(BaseModel):
    model_config = ConfigDict(from_attributes=True)
    id: int
    name: str


class CategoryOut(BaseModel):
    model_config = ConfigDict(from_attributes=True)
    id: int
    name: str
    products: list[ProductOut]


# Without overflow: its connections would be made and closed all the time, and the page would be about that.
engine = create_async_engine(
    f"postgresql+asyncpg://bench@/bench?host={os.environ.get('BENCH_POSTGRES', '/nowhere')}", pool_size=10, max_overflow=0
)
session = async_sessionmaker(engine, class_=AsyncSession, expire_on_commit=False)
application = FastAPI(openapi_url=None)


@application.get("/categories/{number}")
async def category(number: int) -> CategoryOut:
    async with session() as database:
        found = await database.scalar(
            select(Category).where(Category.id == number).options(selectinload(Category.products))
        )
    if found is None:
        raise HTTPException(404)
    return CategoryOut.model_validate(found)
