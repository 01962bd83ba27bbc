"""Writes into every story what other encoders make of its blocks, and has other decoders read what ours makes of them.

    python make.py WITH_OURS

needs the package `hpack` and the library nghttp2. WITH_OURS is the program of `examples/deflate.rs`. A story is:

    # What it is about.

    size 100                  the reader's SETTINGS_HEADER_TABLE_SIZE from here on
    hpack 8286...             the block by hpack,
    nghttp2 8286...           by nghttp2,
    maitred 8286...           and by our encoder
      :method: GET            its fields
"""

import ctypes
import ctypes.util
import pathlib
import subprocess
import sys

import hpack

NGHTTP2 = ctypes.CDLL(ctypes.util.find_library("nghttp2"))


class Field(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("value", ctypes.c_char_p),
        ("name_length", ctypes.c_size_t),
        ("value_length", ctypes.c_size_t),
        ("flags", ctypes.c_uint8),
    ]


class Nghttp2Encoder:
    def __init__(self):
        self.deflater = ctypes.c_void_p()
        assert NGHTTP2.nghttp2_hd_deflate_new(ctypes.byref(self.deflater), ctypes.c_size_t(4096)) == 0

    def resize(self, size):
        assert NGHTTP2.nghttp2_hd_deflate_change_table_size(self.deflater, ctypes.c_size_t(size)) == 0

    def encode(self, fields):
        array = (Field * len(fields))(*(Field(name, value, len(name), len(value), 0) for name, value in fields))
        out = ctypes.create_string_buffer(65536)
        deflate = NGHTTP2.nghttp2_hd_deflate_hd
        deflate.restype = ctypes.c_ssize_t
        length = deflate(self.deflater, out, ctypes.c_size_t(len(out)), array, ctypes.c_size_t(len(fields)))
        assert length >= 0, length
        return out.raw[:length]


class Nghttp2Decoder:
    def __init__(self):
        self.inflater = ctypes.c_void_p()
        assert NGHTTP2.nghttp2_hd_inflate_new(ctypes.byref(self.inflater)) == 0

    def resize(self, size):
        assert NGHTTP2.nghttp2_hd_inflate_change_table_size(self.inflater, ctypes.c_size_t(size)) == 0

    def decode(self, block):
        fields, rest = [], block
        inflate = NGHTTP2.nghttp2_hd_inflate_hd2
        inflate.restype = ctypes.c_ssize_t
        while True:
            field, flags = Field(), ctypes.c_int(0)
            used = inflate(self.inflater, ctypes.byref(field), ctypes.byref(flags), rest, ctypes.c_size_t(len(rest)), 1)
            assert used >= 0, used
            rest = rest[used:]
            if flags.value & 2:
                fields.append((field.name[: field.name_length], field.value[: field.value_length]))
            if flags.value & 1:
                NGHTTP2.nghttp2_hd_inflate_end_headers(self.inflater)
                return fields


class HpackEncoder(hpack.Encoder):
    def resize(self, size):
        self.header_table_size = size


class HpackDecoder(hpack.Decoder):
    def resize(self, size):
        self.max_allowed_table_size = size

    def decode(self, block):
        return [(bytes(name), bytes(value)) for name, value in super().decode(block, raw=True)]


def blocks_of(text):
    """Each block's size or None, and its fields."""
    for block in text.split("\n\n")[1:]:
        size, fields = None, []
        for line in block.splitlines():
            first, _, rest = line.partition(" ")
            if first == "size":
                size = int(rest)
            elif not first:
                # The name of a pseudo-field begins with a colon.
                colon = line.index(":", 3)
                name, value = line[2:colon], line[colon + 2 :]
                fields.append((name.encode(), value.encode()))
        yield size, fields


def rewrite(path, program):
    text = path.read_text()
    ours = subprocess.run([program], input=text.encode(), capture_output=True, check=True).stdout.split()
    encoders = {"hpack": HpackEncoder(), "nghttp2": Nghttp2Encoder()}
    decoders = [HpackDecoder(), Nghttp2Decoder()]
    parts = [text.split("\n\n")[0]]
    for (size, fields), own in zip(blocks_of(text), ours, strict=True):
        lines = []
        if size is not None:
            lines.append(f"size {size}")
            for one in (*encoders.values(), *decoders):
                one.resize(size)
        lines += [f"{name} {encoder.encode(fields).hex()}" for name, encoder in encoders.items()]
        for decoder in decoders:
            read = decoder.decode(bytes.fromhex(own.decode()))
            assert read == fields, f"{path}: {type(decoder).__name__} reads {read} instead of {fields}"
        lines.append(f"maitred {own.decode()}")
        lines += [f"  {name.decode()}: {value.decode()}".rstrip() for name, value in fields]
        parts.append("\n".join(lines))
    path.write_text("\n\n".join(parts) + "\n")


def main():
    for path in sorted(pathlib.Path(__file__).parent.glob("*.story")):
        rewrite(path, sys.argv[1])
        print(path.name)


main()
