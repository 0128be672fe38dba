"""Why a page is kept beside one that it is like: what differs is content, or it is not known to be noise."""

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from dedup.filter.noise.answers import said_in
from dedup.filter.noise.lines import Line
from dedup.filter.noise.tokens import values_in
from dedup.printing import many

NOISE = ""  #: there is no reason to keep it
OTHER = "most of what is its own is not on the other"
#: It may be a copy.
UNASKED = "its noise is not known, and no more requests may be made for that"
FAILED = "its noise is not known: it could not be fetched again, or showed something else then"
BARE = "all that stays on both may be what pages of their kind have in common"
UNKNOWN = {UNASKED, FAILED, BARE}
STAYED = "what changes on other pages of its kind stayed when it was fetched again"
GONE = "the page that it copies is not kept any more"


def told(a: Sequence[Line], b: Sequence[Line], how: str) -> str:
    """Returns in how many words two pages differ, and what is known of these.

    >>> one, other = ([Line("p", (word, "lamp"), "p")] for word in ("brass", "iron"))
    >>> told(one, other, "stayed"), told(one, one, "stayed")
    ('differs in 1 word that stayed', 'differs in tags or places that stayed')
    >>> one, other = ([Line("p", ("<script", " nonce=", at, "<>"), "p")] for at in "ab")
    >>> told(one, other, "stayed")
    'differs in the attribute nonce that stayed'
    """
    both = {*a} & {*b}
    one, other = (
        Counter(token for line in lines if line not in both for token in said_in(line.tokens))
        for lines in (a, b)
    )
    words = max((one - other).total(), (other - one).total())
    names = sorted({name for name, _ in _attributes(a, both) ^ _attributes(b, both)})
    attributes = f"the attribute{'s' * (len(names) > 1)} {' and '.join(names[:2])}" if names else ""
    return f"differs in {many(words, 'word') if words else attributes or 'tags or places'} that {how}"


def _attributes(lines: Sequence[Line], but: AbstractSet[Line]) -> set[tuple[str, tuple[str, ...]]]:
    """Returns the attributes in lines, but for some of these, with their values."""
    return {
        (line.tokens[start - 1].strip(" ="), line.tokens[start:end])
        for line in lines
        if line not in but
        for start, end in values_in(line.tokens)
    }
