"""Decoding of ``Content-Encoding``.

Promises: no more is decoded than is asked for, at most three codings are undone, and a body that grows beyond its limits is an
error, also between two codings. The work for a body is at most in proportion to the bytes received. gzip and deflate are always there; br and zstd where a module for them is.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from typing import Any, Protocol

from maitred.http._errors import DecodingError, TooLarge

MOST_CODINGS = 3

#: Up to here a small body that grows much is no danger.
ALWAYS = 16 * 1024 * 1024

#: A body may have so many members (of gzip) or frames (of zstd), and further ones as far as it could bring them uncoded. Each costs a
#: new decompressor, and within another coding a million of empty ones are a hundred bytes.
MOST_MEMBERS = 1024
#: The fewest bytes of a member: a skippable frame (RFC 8878, section 3.1.2). An empty member of gzip has 20.
LEAST_MEMBER = 8

_STEP = 64 * 1024


class Coding(Protocol):
    """One coding."""

    #: How many parts, each with a beginning and an end of its own, have begun behind the first.
    members: int

    def decode(self, data: bytes, most: int) -> bytes:
        """Takes further data, possibly none, and returns at most ``most`` bytes. None of them: more data is needed, or it is the end."""

    def finish(self) -> None:
        """All data was taken. Raises ``DecodingError`` if something is missing."""


class _Inflate:
    """gzip (RFC 1952), or deflate, which servers send with the frame of zlib (RFC 1950) and without."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rest = b""
        self.begun = False
        self.members = 0
        self.inner: Any = zlib.decompressobj(31) if name == "gzip" else None

    def decode(self, data: bytes, most: int) -> bytes:
        data = self.rest + data if self.rest else data
        self.rest = b""
        while data:
            if self.inner is None:
                if len(data) < 2:
                    self.rest = data
                    return b""
                has_frame = data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
                self.inner = zlib.decompressobj(15 if has_frame else -15)
            if self.inner.eof:
                data = self.behind(data)
                continue
            self.begun = True
            try:
                out: bytes = self.inner.decompress(data, most)
            except zlib.error as error:
                raise DecodingError(f"the body is not {self.name}, as its Content-Encoding says: {error}") from None
            data = self.inner.unused_data if self.inner.eof else self.inner.unconsumed_tail
            if out:
                self.rest = data
                return out
        return b""

    def behind(self, data: bytes) -> bytes:
        """A further member of gzip; nothing else can stand behind the end but zeros."""
        data = data.lstrip(b"\0")
        if data and self.name == "gzip" and b"\x1f\x8b".startswith(data[:2]):
            self.inner = zlib.decompressobj(31)
            self.members += 1
        elif data:
            raise DecodingError(f"the body goes on behind the end of its {self.name}")
        return data

    def finish(self) -> None:
        if self.rest and not self.begun or self.begun and not self.inner.eof:
            raise DecodingError(f"the body ends within its {self.name}")


class _Module:
    """A decompressor with ``decompress(data, max_length)`` of the standard library's kind."""

    def __init__(self, name: str, make: Callable[[], Any], wrong: type[Exception]) -> None:
        self.name = name
        self.make = make
        self.wrong = wrong
        self.inner = make()
        self.begun = False
        self.members = 0

    def decode(self, data: bytes, most: int) -> bytes:
        self.begun = self.begun or bool(data)
        try:
            while True:
                if self.inner.eof:
                    data = self.inner.unused_data + data
                    if not data:
                        return b""
                    self.inner = self.make()
                    self.members += 1
                out: bytes = self.inner.decompress(data, most)
                data = b""
                if out or not self.inner.eof:
                    return out
        except self.wrong as error:
            raise DecodingError(f"the body is not {self.name}, as its Content-Encoding says: {error}") from None

    def finish(self) -> None:
        if self.begun and not self.inner.eof:
            raise DecodingError(f"the body ends within its {self.name}")


class _Brotli:
    """br by the package ``brotli`` from 1.2 on, which can be told how much to decode."""

    def __init__(self, module: Any) -> None:
        self.wrong = module.error
        self.inner = module.Decompressor()
        self.begun = False
        self.members = 0

    def decode(self, data: bytes, most: int) -> bytes:
        self.begun = self.begun or bool(data)
        try:
            if data and not self.inner.can_accept_more_data():
                raise DecodingError("more was decoded than was taken")
            out: bytes = self.inner.process(data, output_buffer_limit=most)
        except self.wrong as error:
            raise DecodingError(f"the body is not br, as its Content-Encoding says: {error}") from None
        return out

    def finish(self) -> None:
        if self.begun and not self.inner.is_finished():
            raise DecodingError("the body ends within its br")


def _known() -> dict[str, Callable[[], Coding]]:
    known: dict[str, Callable[[], Coding]] = {
        "gzip": lambda: _Inflate("gzip"),
        "x-gzip": lambda: _Inflate("gzip"),
        "deflate": lambda: _Inflate("deflate"),
    }
    brotli = _module("brotli")
    if brotli is not None and hasattr(brotli.Decompressor, "can_accept_more_data"):
        known["br"] = lambda: _Brotli(brotli)
    for name in ("compression.zstd", "backports.zstd"):
        zstd = _module(name)
        if zstd is not None:
            known["zstd"] = lambda: _Module("zstd", zstd.ZstdDecompressor, zstd.ZstdError)
            break
    return known


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


KNOWN = _known()

#: The value of ``Accept-Encoding``.
ACCEPT = ", ".join(name for name in ("gzip", "deflate", "br", "zstd") if name in KNOWN)


class Decoder:
    """The codings of one body, undone one after the other."""

    def __init__(self, codings: str, max_size: int | None, max_ratio: float) -> None:
        names = [name for name in (part.strip().lower() for part in codings.split(",")) if name and name != "identity"]
        if len(names) > MOST_CODINGS:
            raise DecodingError(f"the body has {len(names)} codings, and at most {MOST_CODINGS} are undone")
        unknown = [name for name in names if name not in KNOWN]
        if unknown:
            raise DecodingError(f"the body has the coding {unknown[0]!r}, and known are {ACCEPT}; iter_raw() has it as received")
        self.stages = [KNOWN[name]() for name in reversed(names)]
        self.received = 0
        # Of each stage; without a coding, of the body itself.
        self.decoded = [0] * max(len(self.stages), 1)
        self.max_size = max_size
        self.max_ratio = max_ratio
        self.data = b""

    def feed(self, data: bytes) -> None:
        """Takes received data; to be called when :meth:`read` returns none."""
        self.received += len(data)
        self.data = data

    def read(self, most: int) -> bytes:
        """At most ``most`` further bytes; none when more data is needed."""
        data, self.data = self.data, b""
        if not self.stages:
            data, self.data = data[:most], data[most:]
            self._count(0, data)
            return data
        return self._through(len(self.stages) - 1, data, most)

    def _through(self, stage: int, data: bytes, most: int) -> bytes:
        """Output of this stage; ``data`` is for the first one."""
        if stage == 0:
            return self._decode(stage, data, most)
        if out := self._decode(stage, b"", most):
            self.data = data
            return out
        while True:
            part = self._through(stage - 1, data, _STEP)
            data = b""
            if not part:
                return b""
            if out := self._decode(stage, part, most):
                return out

    def _decode(self, stage: int, data: bytes, most: int) -> bytes:
        coding = self.stages[stage]
        out = coding.decode(data, most)
        if coding.members > MOST_MEMBERS + self.received // LEAST_MEMBER:
            raise DecodingError(f"the body has {coding.members} members within its codings, and {self.received} bytes were received")
        self._count(stage, out)
        return out

    def _count(self, stage: int, data: bytes) -> None:
        self.decoded[stage] += len(data)
        decoded, most = self.decoded[stage], self.max_size
        if most is not None and stage < len(self.stages) - 1:
            # What is coded can be a little larger than what it stands for, and is read ahead.
            most = 2 * most + _STEP
        if most is not None and decoded > most:
            raise TooLarge(f"the body is larger than max_size, {self.max_size} bytes")
        if decoded > ALWAYS and decoded > self.max_ratio * self.received:
            raise TooLarge(f"the body is more than {self.max_ratio:g} times larger than received (max_ratio)")

    def finish(self) -> None:
        """All was received."""
        for stage in self.stages:
            stage.finish()
