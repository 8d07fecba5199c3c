"""What differs between the figures of an oracle and those of the program."""

from __future__ import annotations

from collections import Counter
from typing import Any, Iterator

# Differences of one figure that are printed.
SHOWN = 3


def differences(wanted: dict, said: dict) -> Iterator[str]:
    names = list(wanted) + [name for name in said if name not in wanted]
    for name in names:
        a, b = wanted.get(name), said.get(name)
        if isinstance(a, Counter) and isinstance(b, Counter):
            yield from of_multisets(name, a, b)
        elif a != b and not (absent(a) and absent(b)):
            yield f"{name}: {short(a)}, program {short(b)}"


def absent(value: Any) -> bool:
    return value is None or value == 0 or value == []


def of_multisets(name: str, a: Counter, b: Counter) -> Iterator[str]:
    for who, more in (("oracle", a - b), ("program", b - a)):
        for what, count in sorted(more.items(), key=str)[:SHOWN]:
            yield f"{name}: {count} of {short(what)} more for the {who}"
        if len(more) > SHOWN:
            yield f"{name}: and {len(more) - SHOWN} others more for the {who}"


def short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 240 else f"{text[:200]}... ({len(text)} characters)"
