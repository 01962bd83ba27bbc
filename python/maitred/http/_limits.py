"""Limits of calls and of pools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

Seconds = tuple[Optional[float], Optional[float], Optional[float], Optional[float], Optional[float], Optional[float]]

#: The sign of an argument that was not given.
UNSET: float = float("nan")


class Timeout:
    """The time limits of a call in seconds; None is no limit.

    ``Timeout(5)`` limits each phase and the whole call to five seconds; ``Timeout(5, total=60)`` names one that differs.

    - ``pool``: waiting for a connection, when all that may be are used
    - ``connect``: looking the name up and connecting, all addresses together
    - ``tls``: the TLS handshake
    - ``first_byte``: from the last byte of the request to the first byte of the response
    - ``progress``: between two bytes that the server takes or sends
    - ``total``: the whole call, up to the last byte of the response
    """

    __slots__ = ("seconds",)

    seconds: Seconds

    def __init__(
        self,
        seconds: float | None = None,
        *,
        pool: float | None = UNSET,
        connect: float | None = UNSET,
        tls: float | None = UNSET,
        first_byte: float | None = UNSET,
        progress: float | None = UNSET,
        total: float | None = UNSET,
    ) -> None:
        def limit(name: str, value: float | None) -> float | None:
            value = seconds if value is UNSET else value
            if value is not None and not value >= 0:
                raise ValueError(f"the timeout {name} is {value}, and has to be seconds from 0 on, or None")
            return value

        self.seconds = (
            limit("pool", pool),
            limit("connect", connect),
            limit("tls", tls),
            limit("first_byte", first_byte),
            limit("progress", progress),
            limit("total", total),
        )

    @classmethod
    def of(cls, timeout: Timeout | float | None) -> Timeout:
        """The limits that an argument ``timeout`` means."""
        return timeout if isinstance(timeout, Timeout) else cls(timeout)

    def __repr__(self) -> str:
        names = ("pool", "connect", "tls", "first_byte", "progress", "total")
        return f"Timeout({', '.join(f'{name}={value}' for name, value in zip(names, self.seconds))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timeout) and self.seconds == other.seconds

    def __hash__(self) -> int:
        return hash(self.seconds)


#: No call waits for ever. A response that is read for longer than five minutes wants a ``total`` of its own.
DEFAULT_TIMEOUT = Timeout(pool=10, connect=5, tls=5, first_byte=30, progress=30, total=300)


@dataclass(frozen=True)
class Limits:
    """The limits of a client's pool, and of the bodies that it reads."""

    per_host: int = 100
    """The most connections to one server."""
    total: int = 1000
    """The most connections in all; an idle one to another server gives way."""
    idle: float = 4.0
    """Seconds for which a connection is kept idle, if its server names no shorter or longer time."""
    age: float = 300.0
    """Seconds after which a connection is not used again: its name may point elsewhere by now."""
    max_size: int | None = None
    """The most bytes of a body that is read as a whole, decoded; None is no limit."""
    max_ratio: float = 200.0
    """How many times larger than received a decoded body may become, beyond the first 16 MiB."""
