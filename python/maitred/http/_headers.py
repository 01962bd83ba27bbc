"""Fields of a response: a multi-map whose names are compared without regard to case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

Pairs = list[tuple[bytes, bytes]]


class Headers(Mapping[str, str]):
    """The fields of a response. ``headers["name"]`` joins the values of several fields with commas; ``get_all`` has each."""

    __slots__ = ("_found", "raw")

    def __init__(self, raw: Pairs) -> None:
        self.raw = raw
        """Names and values in their order and spelling."""
        self._found: dict[str, list[str]] | None = None

    def _all(self) -> dict[str, list[str]]:
        found = self._found
        if found is None:
            found = self._found = {}
            for name, value in self.raw:
                found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        return found

    def __getitem__(self, name: str) -> str:
        return ", ".join(self._all()[name.lower()])

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._all()

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def get_all(self, name: str) -> list[str]:
        """The values of all fields of this name; Set-Cookie has to be read in this way."""
        return list(self._all().get(name.lower(), ()))

    def multi_items(self) -> list[tuple[str, str]]:
        """All fields in their order, with names in lower case."""
        return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in self.raw]

    def __repr__(self) -> str:
        return f"Headers({self.multi_items()})"
