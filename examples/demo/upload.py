"""The file in the body of a form (RFC 7578), read block by block: a large one is never in memory as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from email.message import EmailMessage
from email.parser import HeaderParser
from typing import IO

BLOCK = 64 * 1024
#: Bytes of the fields of a part; browsers send some hundred.
FIELDS_LIMIT = 16 * 1024


class NoFile(Exception):
    """The body is no form with a file."""


def file_of(body: IO[bytes], content_type: str) -> tuple[str, Iterator[bytes]]:
    """Name and blocks of the first file; of a body that is no form, of all of it, without a name."""
    message = EmailMessage()
    message["Content-Type"] = content_type or "application/octet-stream"
    if message.get_content_type() != "multipart/form-data":
        return "", iter(lambda: body.read(BLOCK), b"")
    boundary = message.get_param("boundary")
    if not isinstance(boundary, str) or not boundary:
        raise NoFile("the form names no boundary")
    parts = Parts(body, b"\r\n--" + boundary.encode("latin-1", "replace"))
    while True:
        fields = HeaderParser().parsestr(parts.fields().decode("utf-8", "replace"))
        if (name := fields.get_filename()) is not None:
            return name, parts.data()
        for _ in parts.data():
            pass


class Parts:
    """The parts of a form, one after the other."""

    def __init__(self, body: IO[bytes], separator: bytes) -> None:
        self.body, self.separator = body, separator
        # The first separator may be without the line break before it.
        self.buffer = b"\r\n"
        for _ in self.data():
            pass

    def more(self) -> bool:
        block = self.body.read(BLOCK)
        self.buffer += block
        return bool(block)

    def fields(self) -> bytes:
        """The fields of the next part."""
        while len(self.buffer) < 2 and self.more():
            pass
        if self.buffer.startswith(b"--"):
            raise NoFile("the form has no file")
        while (end := self.buffer.find(b"\r\n\r\n")) < 0:
            if len(self.buffer) > FIELDS_LIMIT or not self.more():
                raise NoFile("the form is not complete")
        fields, self.buffer = self.buffer[:end], self.buffer[end + 4 :]
        return fields.removeprefix(b"\r\n")

    def data(self) -> Iterator[bytes]:
        """What is left before the next separator."""
        while (end := self.buffer.find(self.separator)) < 0:
            # The rest may be the beginning of one.
            sure = max(len(self.buffer) - len(self.separator) + 1, 0)
            block, self.buffer = self.buffer[:sure], self.buffer[sure:]
            if block:
                yield block
            if not self.more():
                raise NoFile("the form is not complete")
        block, self.buffer = self.buffer[:end], self.buffer[end + len(self.separator) :]
        if block:
            yield block
