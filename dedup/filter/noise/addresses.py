"""Addresses that mean the same: learned of a site, never listed (DUST: Bar-Yossef, Keidar, Schonfeld 2009).

A change of address, such as another folder, host or parameter, is an equivalence once several pairs of pages have shown it:
one had all unique content of the other.  A pair of which neither has ends that.  Each page is compared all the same: it is
dropped only if the kept one has all of its own.

>>> known, print_of = Addresses(), "http://a.org/print/view?id={}".format
>>> for number in (7, 8, 9):
...     known.note(f"http://a.org/view?id={number}", print_of(number), is_equal=True)
>>> known.may_mean_one(print_of(1), "http://a.org/view?id=1"), known.may_mean_one(print_of(1), "http://b.org/view?id=1")
(True, False)
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dedup.filter.noise.answers import said_in
from dedup.filter.noise.gaps import SEVERAL
from dedup.filter.noise.kept import names_of, share_name
from dedup.filter.noise.kinds import Kind, folder_of
from dedup.filter.noise.left import least_of
from dedup.filter.noise.lines import Line
from dedup.filter.noise.notes import Change
from dedup.filter.noise.tokens import SELF, values_in
from dedup.latest import Latest
from dedup.page.ids import strip_session

#: Attributes that lead to other addresses.
_TARGETS = frozenset({" href=", " src="})


class Addresses:
    """Which changes of an address lead to the same content."""

    def __init__(self) -> None:
        self.changes = Latest[tuple[str, str], Change]()

    def note(self, url: str, other: str, *, is_equal: bool) -> None:
        """Notes whether of two pages one had the unique content of the other, if their addresses share a name."""
        if not share_name(url, other):
            return
        changes, shared = changes_between(url, other)
        if not is_equal and len(changes) > 1:
            return  # nobody knows which of them tells the pages apart
        for key in changes:
            change = self.changes[key] = self.changes.get(key) or Change()
            change.differs |= not is_equal
            if is_equal and len(change.names) < SEVERAL:
                change.names.add((*shared, *names_of(url)[0][0]))

    def may_mean_one(self, url: str, other: str) -> bool:
        """Returns whether all changes between two addresses have led to the same content, as far as is known."""
        changes = [self.changes.get(key) for key in changes_between(url, other)[0]]
        return bool(changes) and all(
            change is not None and len(change.names) >= SEVERAL and not change.differs for change in changes
        )


def changes_between(url: str, other: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Returns in what two addresses differ that share a name, and the last folders that they share, too.

    They differ in the host, and on the second one's host in the folders before these, and in the names of parameters.

    >>> changes_between("http://m.a.org/view?id=7", "http://a.org/print/view?id=7&x=1")[0]
    [('a.org', 'm.a.org'), ('a.org/', 'a.org/print'), ('a.org?id', 'a.org?id&x')]
    >>> changes_between("http://a.org/brass-lamp/view", "http://a.org/print/brass-lamp/view")
    ([('a.org/', 'a.org/print')], ['brass-lamp'])
    """
    (host, folders, names), (where, its_folders, its_names) = map(_parts, (url, other))
    shared = list[str]()
    while folders and folders[-1:] == its_folders[-1:]:
        shared.insert(0, folders.pop())
        its_folders.pop()
    found = [
        (host, where),
        (f"{where}/{'/'.join(folders)}", f"{where}/{'/'.join(its_folders)}"),
        (f"{where}?{names}", f"{where}?{its_names}"),
    ]
    return [(min(pair), max(pair)) for pair in found if pair[0] != pair[1]], shared


def _parts(url: str) -> tuple[str, list[str], str]:
    url = strip_session(url)
    host, *folders = folder_of(url).split("/")
    pairs = url.partition("?")[2].split("&")
    return host, folders, "&".join(sorted({pair.partition("=")[0] for pair in pairs if pair}))


class Unique(NamedTuple):
    """The unique content of a page: what it says that most pages of its kind don't."""

    words: Counter[tuple[str, ...]]  #: of each line of it
    among: Counter[tuple[str, ...]]  #: of each line from the first of these to the last, such as labels
    all: Counter[tuple[str, ...]]  #: of each line of the page
    values: set[tuple[str, ...]]  #: of attributes, in the same lines and in those without words
    usual: set[Line]  #: what it says as most pages of its kind do
    blocks: Counter[str]  #: in which the lines of the page are

    def is_of_one_template(self, other: "Unique") -> bool:
        """Returns whether two pages have most blocks, or most of what pages of their kinds say, in common."""
        blocks = 2 * (self.blocks & other.blocks).total() >= max(self.blocks.total(), other.blocks.total())
        return blocks or 2 * len(self.usual & other.usual) >= max(len(self.usual), len(other.usual))

    def is_on(self, other: "Unique") -> bool:
        """Returns whether another page says all of it, and what stands among it."""
        return bool(self.words) and self.among <= other.all


def unique_of(page: Sequence[Line], kind: Kind) -> Unique:
    """Returns what the lines of a page say, and show in attributes, that most pages of its kind don't; nothing if two are not known."""
    lines = least_of(page, kind.gaps, moved=False) if len(kind.sample) >= SEVERAL else []
    others = [*kind.sample.values()]
    usual = {line for line in lines if 2 * sum(hash(line) in other for other in others) > len(others)}
    # Versions of a page are called by other titles; what it says is below.
    lines = [line for line in lines if line.tokens[0] != "<title"]
    values = {value for line in lines if line not in usual for value in _values(line.tokens)}
    said = [(each, line) for line in lines if (each := tuple(said_in(line.tokens)))]
    own = [at for at, (_, line) in enumerate(said) if line not in usual]
    among = [words for words, _ in said[own[0] : own[-1] + 1]] if own else []
    words = Counter(said[at][0] for at in own)
    blocks = Counter(line.path.rpartition("/")[0] for line in page)
    return Unique(words, Counter(among), Counter(words for words, _ in said), values, usual, blocks)


def _values(tokens: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yields the values of attributes; of addresses the last parts, which are the same whatever folder they are relative to."""
    for start, end in values_in(tokens):
        if start < end and tokens[start] != SELF:
            value = tuple(tokens[start:end])
            if tokens[start - 1] in _TARGETS and "/" in value:
                value = value[len(value) - value[::-1].index("/") :]
            yield value
