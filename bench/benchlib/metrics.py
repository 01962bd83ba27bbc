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


def named(samples: Sequence[Sample], word: str) -> list[Sample]:
    """The samples with this word in their names; of a histogram, sum and count only."""
    return [sample for sample in samples if word in sample.name and not sample.name.endswith("_bucket")]
