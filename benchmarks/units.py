"""Figures as people read them."""

from __future__ import annotations


def figure(value: float, unit: str) -> str:
    """A raw value with its unit: 4.32 M/s, 85 ns, 12.4 kB."""
    if unit == "":
        return f"{value:g}" if value == int(value) else f"{value:.2f}"
    if unit == "s":
        return _scaled(value, ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")))
    if unit in ("/s", "B/s"):
        suffix = unit
        return _scaled(value, ((1e9, "G" + suffix), (1e6, "M" + suffix), (1e3, "k" + suffix), (1.0, suffix)))
    if unit == "B":
        return _scaled(value, ((1e6, "MB"), (1e3, "kB"), (1.0, "B")))
    return f"{value:.3g} {unit}"


def _scaled(value: float, steps: tuple[tuple[float, str], ...]) -> str:
    for size, unit in steps:
        if abs(value) >= size:
            return f"{_three(value / size)} {unit}"
    size, unit = steps[-1]
    return f"{_three(value / size)} {unit}"


def _three(value: float) -> str:
    """Three digits, never in exponent form."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ratio_text(ratio: float) -> str:
    return f"{ratio:.2f}x" if ratio < 10 else f"{ratio:.1f}x"
