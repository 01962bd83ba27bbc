"""Sequences of bytes that are UTF-8, and that are none: those of Markus Kuhn's decoder test, as Autobahn groups them (6.5 to 6.23).

Which of them are UTF-8 (RFC 3629) is for Python's decoder to say.
"""

from __future__ import annotations

GREEK = "\u03ba\u1f79\u03c3\u03bc\u03b5".encode()

#: The last continuation is missing.
CUT = [b"\xc0", b"\xe0\x80", b"\xf0\x80\x80", b"\xf8\x80\x80\x80", b"\xfc\x80\x80\x80\x80"]
CUT += [b"\xdf", b"\xef\xbf", b"\xf7\xbf\xbf", b"\xfb\xbf\xbf\xbf", b"\xfd\xbf\xbf\xbf\xbf"]


def surrogate(code: int) -> bytes:
    return chr(code).encode("utf-8", "surrogatepass")


def lonely(first: int, last: int) -> bytes:
    """Each start of a sequence before a space."""
    return b"".join(bytes([start, 0x20]) for start in range(first, last))


#: Of each plane the two last code points, which stand for no character and are valid.
LAST_OF_BLOCKS = [chr(plane << 16 | 0xFFFE | one).encode() for plane in range(17) for one in (0, 1)]

SEQUENCES: list[list[bytes]] = [
    # 6.5: valid ones
    [f"hello{character}world".encode() for character in "$\u00a2\u20ac\U00024b62"] + [GREEK],
    # 6.6: all prefixes of a valid one
    [GREEK[:size] for size in range(1, len(GREEK) + 1)],
    # 6.7: the first one of each length
    [b"\x00", b"\xc2\x80", b"\xe0\xa0\x80", b"\xf0\x90\x80\x80"],
    # 6.8: of five and six bytes, which there are not
    [b"\xf8\x88\x80\x80\x80", b"\xfc\x84\x80\x80\x80\x80"],
    # 6.9: the last one of each length
    [b"\x7f", b"\xdf\xbf", b"\xef\xbf\xbf", b"\xf4\x8f\xbf\xbf"],
    # 6.10: of four bytes and more, beyond the last code point
    [b"\xf7\xbf\xbf\xbf", b"\xfb\xbf\xbf\xbf\xbf", b"\xfd\xbf\xbf\xbf\xbf\xbf"],
    # 6.11: other boundaries
    [b"\xed\x9f\xbf", b"\xee\x80\x80", b"\xef\xbf\xbd", b"\xf4\x8f\xbf\xbf", b"\xf4\x90\x80\x80"],
    # 6.12: continuations of nothing
    [b"\x80", b"\xbf", *((b"\x80\xbf" * 3)[:size] for size in range(2, 7)), bytes(range(0x80, 0xBF))],
    # 6.13: starts of nothing
    [lonely(*starts) for starts in ((0xC0, 0xDF), (0xE0, 0xEF), (0xF0, 0xF7), (0xF8, 0xFB), (0xFC, 0xFD))],
    # 6.14 and 6.15
    CUT,
    [b"".join(CUT)],
    # 6.16: bytes that never come
    [b"\xfe", b"\xff", b"\xfe\xfe\xff\xff"],
    # 6.17: longer than needed: a slash
    [b"\xc0\xaf", b"\xe0\x80\xaf", b"\xf0\x80\x80\xaf", b"\xf8\x80\x80\x80\xaf", b"\xfc\x80\x80\x80\x80\xaf"],
    # 6.18: the largest that is longer than needed
    [b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xf0\x8f\xbf\xbf", b"\xf8\x87\xbf\xbf\xbf", b"\xfc\x83\xbf\xbf\xbf\xbf"],
    # 6.19: longer than needed: NUL
    [b"\xc0\x80", b"\xe0\x80\x80", b"\xf0\x80\x80\x80", b"\xf8\x80\x80\x80\x80", b"\xfc\x80\x80\x80\x80\x80"],
    # 6.20: halves of pairs of UTF-16
    [surrogate(code) for code in (0xD800, 0xDB7F, 0xDB80, 0xDBFF, 0xDC00, 0xDF80, 0xDFFF)],
    # 6.21: pairs of them
    [surrogate(high) + surrogate(low) for high in (0xD800, 0xDB7F, 0xDB80, 0xDBFF) for low in (0xDC00, 0xDFFF)],
    # 6.22: no characters, and valid
    LAST_OF_BLOCKS,
    # 6.23: the specials
    [chr(code).encode() for code in range(0xFFF9, 0x10000)],
]
