"""The table of docs/lifecycle.md: what happens to a page, what it is before, and what it becomes."""

import re
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from dedup.index.lifecycle import State

TEXT = (Path(__file__).parents[2] / "docs" / "lifecycle.md").read_text("utf-8")


class Event(StrEnum):
    """What can happen to a page.  Only a run that has claimed a page, as it is filed, can confirm or release it."""

    CLAIM = "claim"  #: A run claims the page.
    CHANGE = "change"  #: A run claims the page, whose content is not the one that is filed.
    CONFIRM = "confirm"  #: The run confirms it.
    RELEASE = "release"  #: The run releases it.
    ANNUL = (
        "annul"  #: Another run has waited for long enough to be told what became of the claim, and was not.
    )
    REPLACE = (
        "replace"  #: A run confirms another page, with this one's content, that it met instead of this one.
    )
    ADD = "add"  #: The page is filed without a verdict: it comes from another index.
    FORGET = "forget"  #: The page is taken out.
    FINISH = "finish"  #: The run of the page finishes.
    STOP = "stop"  #: The run of the page is closed before it has finished.
    DIE = "die"  #: The run of the page ends without a word.
    BEGIN = "begin"  #: Another run begins: what the page is to that one.


class Row(NamedTuple):
    """What an event makes of a page.  A page of which no row speaks stays what it is."""

    event: Event
    before: State
    after: State

    @property
    def name(self) -> str:
        """How scripts and tests call it."""
        return f"{self.event} {self.before}"


_STATES = "|".join(State)
#: Every change, and every claim.
ROWS = [
    Row(Event(event), State(before), State(then))
    for event, before, then in re.findall(rf"(?m)^\| (\w+) \| ({_STATES}) \| ({_STATES}) \| .+ \|$", TEXT)
]
_AFTER = {(row.before, row.event): row.after for row in ROWS}


def after(state: State, event: Event) -> State:
    """What an event makes of a page.

    >>> after(State.EARLIER, Event.CLAIM).value, after(State.SAFE, Event.DIE).value
    ('reclaimed', 'safe')
    """
    return _AFTER.get((state, event), state)
