"""Frames of WebSockets and what is in them (RFC 6455 §5, RFC 7692 §7): made by hand, so that they may be wrong, and looked at as they come."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

MASK = b"\x37\xfa\x21\x3d"
LARGEST_CONTROL = 125

#: What is left out of a compressed message (RFC 7692 §7.2.1).
TAIL = b"\x00\x00\xff\xff"
RSV1 = 4

#: ("text", str), ("binary", bytes), ("ping", bytes), ("pong", bytes), ("close", (code, reason)).
Event = tuple[str, Any]
NO_CODE = 1005


class Opcode(IntEnum):
    CONTINUATION = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10


# What is sent


def frame(
    opcode: int, payload: bytes = b"", fin: bool = True, rsv: int = 0, mask: bytes | None = MASK, length: int | None = None, form: int | None = None
) -> bytes:
    """One frame. ``length`` is said where it is not that of the payload, ``form`` is the 7-bit length (126, 127) where it is not the shortest."""
    said = len(payload) if length is None else length
    if form is None:
        form = said if said < 126 else 126 if said < 1 << 16 else 127
    more = struct.pack(">H", said) if form == 126 else struct.pack(">Q", said) if form == 127 else b""
    head = bytes([fin << 7 | rsv << 4 | opcode, (mask is not None) << 7 | form]) + more
    return head + payload if mask is None else head + mask + masked(payload, mask)


def masked(payload: bytes, mask: bytes = MASK) -> bytes:
    size = len(payload)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")


def text(message: str | bytes, fin: bool = True) -> bytes:
    """Also of bytes that are no UTF-8."""
    return frame(Opcode.TEXT, message.encode() if isinstance(message, str) else message, fin)


def binary(message: bytes, fin: bool = True) -> bytes:
    return frame(Opcode.BINARY, message, fin)


def more(payload: bytes | str, fin: bool = True) -> bytes:
    return frame(Opcode.CONTINUATION, payload.encode() if isinstance(payload, str) else payload, fin)


def ping(payload: bytes = b"") -> bytes:
    return frame(Opcode.PING, payload)


def pong(payload: bytes = b"") -> bytes:
    return frame(Opcode.PONG, payload)


def close(code: int | None = 1000, reason: str | bytes = b"") -> bytes:
    said = b"" if code is None else struct.pack(">H", code)
    return frame(Opcode.CLOSE, said + (reason.encode() if isinstance(reason, str) else reason))


def fragments(opcode: int, payload: bytes, size: int, rsv: int = 0) -> Iterable[bytes]:
    """The frames of a message, each with so many bytes at most."""
    parts = [payload[at : at + size] for at in range(0, len(payload), size)] or [b""]
    for number, part in enumerate(parts):
        first = number == 0
        yield frame(opcode if first else Opcode.CONTINUATION, part, number == len(parts) - 1, rsv if first else 0)


def chops(data: bytes, size: int) -> Iterable[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


# What comes


@dataclass(frozen=True)
class Frame:
    opcode: int
    payload: bytes
    fin: bool = True
    rsv: int = 0

    @property
    def is_control(self) -> bool:
        return self.opcode >= Opcode.CLOSE


def split(received: bytearray) -> Frame | None:
    """The frame at the beginning, which is taken away; none while it is incomplete. The rules for a server's frames hold (§5.1, §5.2, §5.5)."""
    if len(received) < 2:
        return None
    first, second = received[0], received[1]
    assert not second & 0x80, "a server does not mask"
    size, at = second & 0x7F, 2
    if size >= 126:
        form, least = (">H", 126) if size == 126 else (">Q", 1 << 16)
        at += struct.calcsize(form)
        if len(received) < at:
            return None
        (size,) = struct.unpack_from(form, received, 2)
        assert size >= least, f"{size} has a shorter form"
    if len(received) < at + size:
        return None
    found = Frame(first & 0xF, bytes(received[at : at + size]), bool(first & 0x80), first >> 4 & 7)
    del received[: at + size]
    assert found.opcode in Opcode._value2member_map_, f"there is no opcode {found.opcode}"
    assert not found.is_control or (found.fin and size <= LARGEST_CONTROL and not found.rsv), f"no control frame: {found}"
    return found


# Compression


@dataclass
class Deflate:
    """permessage-deflate as the server has agreed to it."""

    server_window: int = 15
    client_window: int = 15
    server_takes_over: bool = True
    client_takes_over: bool = True
    said: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._deflater = self._new_deflater()
        self._inflater = zlib.decompressobj(-self.server_window)

    @classmethod
    def agreed(cls, extensions: str) -> Deflate:
        name, *parameters = (part.strip() for part in extensions.split(";"))
        assert name == "permessage-deflate" and "," not in extensions, extensions
        pairs = [re.fullmatch(r'(\w+)(?:=("?)(\w+)\2)?', each) for each in parameters]
        said = {pair[1]: pair[3] or "" for pair in pairs if pair}
        assert len(said) == len(parameters), extensions
        known = {"server_no_context_takeover", "client_no_context_takeover", "server_max_window_bits", "client_max_window_bits"}
        assert set(said) <= known, extensions
        windows = {name: int(value) for name, value in said.items() if name.endswith("bits")}
        assert all(8 <= bits <= 15 for bits in windows.values()), extensions
        return cls(
            windows.get("server_max_window_bits", 15),
            windows.get("client_max_window_bits", 15),
            "server_no_context_takeover" not in said,
            "client_no_context_takeover" not in said,
            said,
        )

    def _new_deflater(self) -> Any:
        # zlib makes no raw stream with a window of 8 bits; one of 9 that is never longer is one, but this client has no need of it.
        return zlib.compressobj(1, zlib.DEFLATED, -max(self.client_window, 9))

    def compress(self, payload: bytes) -> bytes:
        if not self.client_takes_over:
            self._deflater = self._new_deflater()
        made: bytes = self._deflater.compress(payload) + self._deflater.flush(zlib.Z_SYNC_FLUSH)
        assert made.endswith(TAIL)
        return made[:-4] or b"\x00"

    def decompress(self, payload: bytes) -> bytes:
        """Fails where the server refers to more than the window, or to earlier messages where it may not."""
        if not self.server_takes_over:
            self._inflater = zlib.decompressobj(-self.server_window)
        made: bytes = self._inflater.decompress(payload + TAIL)
        if self._inflater.eof:  # A last block, which is allowed (RFC 7692 §7.2.3.4).
            self._inflater = zlib.decompressobj(-self.server_window)
        return made
