"""Bodies of requests, and the fields that describe them (``Content-Type``, ``Content-Length``)."""

from __future__ import annotations

import json as json_module
import os
import stat
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from typing import IO, Any, Union

from maitred.http._url import Params, encoded

Content = Union[str, bytes, bytearray, memoryview, IO[bytes], Iterable[bytes], AsyncIterable[bytes]]
Body = Union[bytes, Iterable[bytes], AsyncIterable[bytes], None]

_BLOCK = 64 * 1024


def body_of(content: Content | None, data: Params | None, json: Any, has_json: bool) -> tuple[Body, list[tuple[bytes, bytes]]]:
    """The body, and fields that belong to it."""
    if (content is not None) + (data is not None) + has_json > 1:
        raise TypeError("content, data and json are three ways to give one body: give one of them")
    if has_json:
        text = json_module.dumps(json, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode(), [(b"Content-Type", b"application/json")]
    if data is not None:
        return encoded(data).encode(), [(b"Content-Type", b"application/x-www-form-urlencoded")]
    if content is None or isinstance(content, bytes):
        return content, []
    if isinstance(content, str):
        return content.encode(), []
    if isinstance(content, (bytearray, memoryview)):
        return bytes(content), []
    if isinstance(content, AsyncIterable):
        return content, []
    if (read := getattr(content, "read", None)) is not None:
        return _blocks(read), _length(content)
    if isinstance(content, Iterable):
        return content, []
    raise TypeError(f"the content is of type {type(content).__name__}, and has to be bytes, str, a file or an iterable of bytes")


def _blocks(read: Callable[[int], bytes | str]) -> Iterator[bytes]:
    while block := read(_BLOCK):
        yield block.encode() if isinstance(block, str) else block


def _length(file: Any) -> list[tuple[bytes, bytes]]:
    """The length of a regular file from its position on; other files are sent in chunks."""
    try:
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode) and "b" in getattr(file, "mode", "b"):
            return [(b"Content-Length", b"%d" % max(status.st_size - file.tell(), 0))]
    except (AttributeError, OSError, ValueError):
        pass
    return []
