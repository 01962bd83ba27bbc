"""Charts as SVG text: bars with whiskers, and lines; nothing but strings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 760
LEFT, RIGHT, TOP, BOTTOM = 190, 90, 46, 44
#: Distinguishable with any colour vision (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
DASHES = ("", "7 4", "2 3")


@dataclass(frozen=True)
class Bar:
    label: str
    value: float
    low: float
    high: float
    #: How much of the value, from zero on, is drawn paler.
    part: float = 0.0


@dataclass(frozen=True)
class Line:
    label: str
    points: Sequence[tuple[float, float]]
    colour: int = 0
    dash: int = 0


def bars(title: str, unit: str, groups: Sequence[tuple[str, Sequence[Bar]]]) -> str:
    """Horizontal bars in groups, each group with its own scale from zero; whiskers from low to high.

    Without a unit of all groups, their headings name it.
    """
    parts, y = [], TOP
    names = list(dict.fromkeys(bar.label for _, group in groups for bar in group))
    for heading, group in groups:
        top = max((bar.high for bar in group), default=0.0) or 1.0
        parts.append(_text(10, y + 14, f"{heading} ({unit})" if unit else heading, weight="bold"))
        y += 24
        for bar in group:
            scale = (WIDTH - LEFT - RIGHT) / top
            colour = COLOURS[names.index(bar.label) % len(COLOURS)]
            middle = y + 9
            parts += [
                _text(LEFT - 8, y + 13, bar.label, anchor="end"),
                f'<rect x="{LEFT}" y="{y}" width="{bar.value * scale:.1f}" height="18" fill="{colour}"/>',
                f'<rect x="{LEFT}" y="{y}" width="{bar.part * scale:.1f}" height="18" fill="#fff" fill-opacity="0.6"/>'
                if bar.part else "",
                f'<path d="M{LEFT + bar.low * scale:.1f} {middle}H{LEFT + bar.high * scale:.1f}" stroke="#222" '
                'stroke-width="2"/>',
                _text(LEFT + bar.high * scale + 6, y + 13, _number(bar.value)),
            ]
            y += 24
        y += 12
    return _document(title, y + 6, parts)


def lines(title: str, x_name: str, y_name: str, series: Sequence[Line], log_x: bool = False,
          log_y: bool = False, height: int = 420) -> str:
    """Lines over a common pair of axes; a logarithmic axis leaves values of zero out."""
    points = [point for line in series for point in line.points
              if (not log_x or point[0] > 0) and (not log_y or point[1] > 0)]
    if not points:
        return _document(title, TOP, [])
    legend = 20 * len(series)
    bottom = TOP + legend + height - BOTTOM
    x_axis = _Axis([p[0] for p in points], log_x, 70, WIDTH - 30, from_zero=False)
    y_axis = _Axis([p[1] for p in points], log_y, bottom, TOP + legend + 16, from_zero=True)
    parts = []
    for value in sorted({p[0] for p in points}) if len({p[0] for p in points}) <= 8 else x_axis.ticks():
        x = x_axis.place(value)
        parts += [_rule(x, bottom, x, TOP + legend + 16), _text(x, bottom + 16, _number(value), anchor="middle")]
    for value in y_axis.ticks():
        y = y_axis.place(value)
        parts += [_rule(70, y, WIDTH - 30, y), _text(64, y + 4, _number(value), anchor="end")]
    for index, line in enumerate(series):
        stroke = f'stroke="{COLOURS[line.colour % len(COLOURS)]}" stroke-width="2" fill="none"'
        if DASHES[line.dash % len(DASHES)]:
            stroke += f' stroke-dasharray="{DASHES[line.dash % len(DASHES)]}"'
        places = [f"{x_axis.place(x):.1f} {y_axis.place(y):.1f}" for x, y in line.points
                  if (not log_x or x > 0) and (not log_y or y > 0)]
        y = TOP + 10 + 20 * index
        parts += [f'<path d="M{"L".join(places)}" {stroke}/>' if places else "",
                  f'<path d="M80 {y}H120" {stroke}/>', _text(128, y + 4, line.label)]
    parts += [_text((70 + WIDTH) / 2, bottom + 34, x_name, anchor="middle"),
              _text(10, TOP + legend + 8, y_name)]
    return _document(title, bottom + BOTTOM, parts)


class _Axis:
    def __init__(self, values: Sequence[float], log: bool, start: float, end: float, from_zero: bool) -> None:
        self._log, self._start, self._end = log, start, end
        low, high = min(values), max(values)
        if from_zero:
            low, high = (10 ** math.floor(math.log10(low)), high * 1.1) if log else (0.0, high * 1.05)
        self._low, self._high = low, high if high > low else low + 1

    def place(self, value: float) -> float:
        low, high = self._low, self._high
        if self._log:
            value, low, high = math.log(value), math.log(low), math.log(high)
        return self._start + (value - low) / (high - low) * (self._end - self._start)

    def ticks(self) -> list[float]:
        if self._log:
            first, last = math.floor(math.log10(self._low)), math.ceil(math.log10(self._high))
            steps = (1, 2, 5) if last - first <= 4 else (1,)
            values = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        else:
            rough = (self._high - self._low) / 5
            step = 10 ** math.floor(math.log10(rough))
            step *= next(factor for factor in (1, 2, 5, 10) if factor * step >= rough)
            values = [math.ceil(self._low / step) * step + step * index for index in range(12)]
        return [value for value in values if self._low <= value <= self._high]


def _document(title: str, height: float, parts: Sequence[str]) -> str:
    body = "\n".join(part for part in parts if part)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
            f'height="{height:.0f}" font-family="sans-serif" font-size="12" role="img">\n'
            f"<title>{escape(title)}</title>\n"
            f'<rect width="100%" height="100%" fill="#fff"/>\n{_text(10, 24, title, weight="bold", size=15)}\n'
            f"{body}\n</svg>\n")


def _text(x: float, y: float, text: str, anchor: str = "start", weight: str = "normal", size: int = 12) -> str:
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" font-size="{size}" '
            f'fill="#222">{escape(text)}</text>')


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="#ddd"/>'


def _number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
