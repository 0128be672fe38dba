"""Why a page is kept beside one that it is like: what differs is content, or it is not known to be noise."""

from collections import Counter
from collections.abc import Sequence

from dedup.filter.noise.answers import said_in
from dedup.filter.noise.lines import Line
from dedup.printing import many

NOISE = ""  #: there is no reason to keep it
OTHER = "most of what is its own is not on the other"
#: It is not known what is noise on it.
UNASKED = "its noise is not known, and no more requests may be made for that"
FAILED = "its noise is not known, as a request for that failed"
STAYED = "what changes on other pages of its kind stayed when it was fetched again"
GONE = "the page that it copies is not kept any more"


def told(a: Sequence[Line], b: Sequence[Line], how: str) -> str:
    """Returns in how many words two pages differ, and what is known of these.

    >>> one, other = ([Line("p", (word, "lamp"), "p")] for word in ("brass", "iron"))
    >>> told(one, other, "stayed"), told(one, one, "stayed")
    ('differs in 1 word that stayed', 'differs in tags, attributes or places that stayed')
    """
    both = {*a} & {*b}
    one, other = (
        Counter(token for line in lines if line not in both for token in said_in(line.tokens))
        for lines in (a, b)
    )
    words = max((one - other).total(), (other - one).total())
    return f"differs in {many(words, 'word') if words else 'tags, attributes or places'} that {how}"
