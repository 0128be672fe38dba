"""How much is done, in calls instead of seconds: the same on every machine, however busy it is."""

import sys
from collections.abc import Callable
from typing import Any

#: Four times as much may take so many times as many calls: 4 if their number is linear, 16 if it is quadratic.
MOST = 6


def calls(step: Callable[[Any], object], given: Any) -> int:
    """The number of functions that are called, in Python or from there; not what is compiled calls by itself."""
    count = 0

    def counted(frame: object, event: str, value: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        step(given)
    finally:
        sys.setprofile(before)
    return count


def grows(step: Callable[[Any], object], make: Callable[[int], Any], size: int) -> float:
    """How many times as many calls four times as much takes; a few, which are there in any case, count for nothing."""
    step(make(2 * size))  # loads what is loaded at the first use
    return calls(step, make(4 * size)) / (calls(step, make(size)) + 20)
