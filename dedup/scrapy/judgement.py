"""What the filter made of a page, as callbacks and errbacks see it."""

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

if TYPE_CHECKING:  # this module is imported at every command of Scrapy
    from dedup.filter import Outcome
    from dedup.fingerprint.detector import Fingerprint
    from dedup.index import Verdict

__all__ = [
    "FLAG",
    "Judgement",
    "NearDuplicate",
    "judgement",
    "lead_on",
    "outcome_of",
    "remember",
]

#: The flag of a response that is a near-duplicate and is not dropped.
FLAG = "near-duplicate"


class NearDuplicate(IgnoreRequest):
    """What the errback of a request is given when its page was dropped."""

    def __init__(self, url: str, duplicate_of: str, distance: int, resemblance: float) -> None:
        super().__init__(f"{url} is a near-duplicate of {duplicate_of} ({distance} bits apart)")
        self.url = url
        self.duplicate_of = duplicate_of
        self.distance = distance
        self.resemblance = resemblance


class Parked(IgnoreRequest):
    """What the errback of a request is given when its link is not downloaded, or not now."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"{url} is parked: {why}")
        self.url = url


class Judgement(NamedTuple):
    """What the filter made of a page."""

    fingerprint: "Fingerprint"
    verdict: "Verdict"


_outcomes: "WeakKeyDictionary[Response, Outcome]" = WeakKeyDictionary()


def judgement(response: Response) -> Judgement | None:
    """What the filter made of a response, for callbacks; None if it was not judged."""
    outcome = _outcomes.get(response)
    return None if outcome is None else Judgement(outcome.fingerprint, outcome.verdict)


def outcome_of(response: Response) -> "Outcome | None":
    """All that the filter made of a response, with the tokens that it was judged by."""
    return _outcomes.get(response)


def remember(response: Response, outcome: "Outcome") -> None:
    """Keeps an outcome for as long as its response lives (responses take no attributes)."""
    _outcomes[response] = outcome


def lead_on(response: Response) -> None:
    """Has a near-duplicate go to its callback after all, for the sake of its links."""
    _outcomes[response] = replace(_outcomes[response], leads_on=True)
