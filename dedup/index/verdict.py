"""What an index says of a page that is claimed."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from dedup.fingerprint.evidence import Evidence
from dedup.fingerprint.simhash import distance
from dedup.index.entry import Entry, original_id
from dedup.printing import table

Status = Literal["new", "same", "duplicate", "unjudged"]


class Near(NamedTuple):
    """A kept page that a new one resembles enough, but whose own content it has not."""

    url: str
    evidence: Evidence | None  #: None where nothing is known of the host
    same_name: bool = False  #: both are called the same
    page_id: str = ""
    simhash: int = 0
    digest: int = 0  #: of all its tokens


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a claim."""

    status: Status  #: new: kept and filed; same: its own earlier claim; duplicate: of another page
    of: str | None = None  #: URL of the kept page that it duplicates
    distance: int | None = None  #: bits in which the two simhashes differ
    resemblance: float | None = None  #: estimated, 0..1
    reason: str | None = None  #: why it is unjudged, or why it is kept though it is equal to a kept page
    of_simhash: int | None = None  #: simhash of the kept page
    rule: str | None = None  #: what found it: "exact" (equal tokens), or the detector's method
    of_id: str | None = field(default=None, compare=False)  #: page id of the kept page
    of_run: str | None = field(default=None, compare=False)  #: the run that has filed the kept page
    #: True if the kept page has been processed; if not, it may yet be released.
    done: bool = field(default=True, compare=False)
    #: How its own shingles match; None where it is an exact one, or nothing is known of its host.
    evidence: Evidence | None = field(default=None, compare=False)
    #: What of the page was seen to be noise, or is its name; None unless that decides.
    noise: str | None = field(default=None, compare=False)
    #: If the page is new, the first of its `MAX_NEAR` nearest candidates that it resembles enough.
    near: Near | None = field(default=None, compare=False)
    #: True if the page is kept, and an earlier run, which did not die, has handed over this very content.
    known: bool = field(default=False, compare=False)
    #: True if the page is kept, and was filed before with other content.
    refiled: bool = field(default=False, compare=False)
    #: True if the page is kept, and more pages are like it than a claim looks at: it may be a near-duplicate of one of them.
    crowded: bool = field(default=False, compare=False)
    judge: str = field(default="", compare=False)  #: who has decided, in a crawl: `dedup.filter.judges`
    why: str = field(default="", compare=False)  #: what that judge has seen, in words
    beside: str = field(default="", compare=False)  #: the kept page that it was compared with

    def _repr_html_(self) -> str:
        said = ("status", "of", "rule", "distance", "resemblance", "reason", "noise")
        return table((name, value) for name in said if (value := getattr(self, name)) is not None)

    @property
    def kept(self) -> bool:
        """True if the page is kept: it is, unless it is a duplicate."""
        return self.status != "duplicate"

    @classmethod
    def unjudged(cls, reason: str | None) -> "Verdict":
        """Says that the page can't be judged: it is kept, but not filed."""
        return cls("unjudged", reason=reason)

    @classmethod
    def duplicate(
        cls,
        page: Entry,
        of: Entry,
        resemblance: float,
        *,
        rule: str,
        done: bool,
        evidence: Evidence | None = None,
    ) -> "Verdict":
        """Says that the page is a near-duplicate of a kept one, by ``rule`` unless they are equal."""
        equal = of.content == page.content
        return cls(
            "duplicate",
            of.url,
            distance(page.simhash, of.simhash),
            resemblance,
            of_simhash=of.simhash,
            rule="exact" if equal else rule,
            of_id=original_id(of.page_id),
            of_run=of.run,
            done=done,
            evidence=evidence,
        )
