"""The task that brings the parts of a body which an awaitable call sends."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import AsyncIterable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from maitred._engine import HttpBody


async def pump(parts: AsyncIterable[bytes] | Iterable[bytes], body: HttpBody) -> None:
    """Gives ``parts`` to ``body`` as fast as the server takes them.

    An exception of ``parts`` is the call's. The rest of the parts is not asked for when the server wants no more. Without a
    connection none is asked for, and ``parts`` can be sent again.
    """
    if not await body.wanted():
        return
    try:
        if isinstance(parts, AsyncIterable):
            async for part in parts:
                if not (taken := body.give(part)) or taken is not True and not await taken:
                    return
        else:
            for part in parts:
                if not (taken := body.give(part)) or taken is not True and not await taken:
                    return
        body.end()
    except CancelledError:
        raise
    except BaseException as error:
        body.fail(error)
        if not isinstance(error, Exception):
            raise
    finally:
        if (close := getattr(parts, "aclose", None)) is not None:
            await close()
