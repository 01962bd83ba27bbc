"""What a server says of itself: its metrics, in the Prometheus text format (version 0.0.4)."""

from __future__ import annotations

import http.client
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .load import WrongAnswer

PATH = "/metrics"
OPTION = "--metrics-path"
#: The option with its value.
WORDS = (OPTION, PATH)
#: What the figures about requests that waited although a thread was idle have in their names.
AUDIT = "idle_while_waiting"

_LINE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
#: Units that a name ends with, before `_total`.
_UNITS = {"nanoseconds": 1e-9, "microseconds": 1e-6, "milliseconds": 1e-3, "seconds": 1.0}


@dataclass(frozen=True)
class Sample:
    """One line."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float

    @property
    def text(self) -> str:
        """Name and labels."""
        labels = ",".join(f"{name}={value}" for name, value in self.labels)
        return f"{self.name}{{{labels}}}" if labels else self.name

    @property
    def seconds(self) -> float:
        """The value of a duration."""
        unit = self.name.removesuffix("_total").rpartition("_")[2]
        return self.value * _UNITS.get(unit, 1.0)


@dataclass(frozen=True)
class Lock:
    """The counts of a named lock; `wait` and `longest` in seconds."""

    acquisitions: int = 0
    contended: int = 0
    wait: float = 0.0
    #: Since the server started, whatever is subtracted.
    longest: float = 0.0

    def __add__(self, other: Lock) -> Lock:
        return Lock(self.acquisitions + other.acquisitions, self.contended + other.contended, self.wait + other.wait,
                    max(self.longest, other.longest))

    def __sub__(self, earlier: Lock) -> Lock:
        return Lock(self.acquisitions - earlier.acquisitions, self.contended - earlier.contended,
                    self.wait - earlier.wait, self.longest)


def read(port: int) -> list[Sample]:
    """All samples of the server at this port.  Raises `WrongAnswer` if it has none to show."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", PATH)
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
        if answer.status != 200:
            raise WrongAnswer(f"{PATH} was answered with {answer.status}")
        return parse(text)
    except http.client.HTTPException as error:
        raise WrongAnswer(f"{PATH} was not answered: {error!r}") from error
    finally:
        connection.close()


def parse(text: str) -> list[Sample]:
    """Lines that are no samples are left out."""
    found = (_LINE.fullmatch(line) for line in text.splitlines() if not line.startswith("#"))
    return [Sample(line[1], tuple(_LABEL.findall(line[2] or "")), float(line[3])) for line in found if line]


def locks(samples: Sequence[Sample]) -> dict[str, Lock]:
    """The samples that have a label `lock`, by its value."""
    table: dict[str, dict[str, float]] = {}
    for sample in samples:
        name = dict(sample.labels).get("lock")
        if name is None:
            continue
        counts = table.setdefault(name, {})
        if "wait" in sample.name:
            counts["longest" if "max" in sample.name or "longest" in sample.name else "wait"] = sample.seconds
        elif "contended" in sample.name:
            counts["contended"] = sample.value
        elif "acquisitions" in sample.name:
            counts["acquisitions"] = sample.value
    return {name: Lock(int(counts.get("acquisitions", 0)), int(counts.get("contended", 0)), counts.get("wait", 0.0),
                       counts.get("longest", 0.0)) for name, counts in table.items()}


def named(samples: Sequence[Sample], word: str) -> list[Sample]:
    """The samples with this word in their names; of a histogram, sum and count only."""
    return [sample for sample in samples if word in sample.name and not sample.name.endswith("_bucket")]
