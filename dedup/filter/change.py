"""What has become of a page since an earlier crawl."""

from collections.abc import Sequence
from typing import NamedTuple

#: What can be said of a page, in the order in which it is shown.
WORDS = ("new", "changed", "moved", "hidden", "gone")


class Said(NamedTuple):
    """One place at which a page says something else."""

    old: str  #: the words of before, which may be none
    new: str
    before: str = ""  #: the words around
    after: str = ""


class Change(NamedTuple):
    """What has become of a page since an earlier crawl."""

    word: str  #: one of `WORDS`
    url: str
    edits: Sequence[Said] = ()  #: of a changed page: the old words and the new ones, place by place
    other: str = ""  #: where it was before it moved
    is_redirected: bool = False  #: true if it moved, and its old address leads to the new one
    crawl: int = 0  #: the number of the crawl that has found it; 0: the one under way
