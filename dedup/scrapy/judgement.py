"""What the filter made of a page, as callbacks and errbacks see it."""

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response, TextResponse

if TYPE_CHECKING:  # this module is imported at every command of Scrapy
    from dedup.filter import Outcome
    from dedup.fingerprint.detector import Fingerprint
    from dedup.history.changes import Change
    from dedup.index import Index, Verdict

__all__ = [
    "FLAG",
    "Judgement",
    "NearDuplicate",
    "change_of",
    "judgement",
    "lead_on",
    "outcome_of",
    "own_text",
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
_indexes: "WeakKeyDictionary[Response, Index]" = WeakKeyDictionary()


def judgement(response: Response) -> Judgement | None:
    """What the filter made of a response, for callbacks; None if it was not judged."""
    outcome = _outcomes.get(response)
    return None if outcome is None else Judgement(outcome.fingerprint, outcome.verdict)


def outcome_of(response: Response) -> "Outcome | None":
    """All that the filter made of a response, with the tokens that it was judged by."""
    return _outcomes.get(response)


def remember(response: Response, outcome: "Outcome", index: "Index") -> None:
    """Keeps an outcome for as long as its response lives (responses take no attributes)."""
    _outcomes[response] = outcome
    _indexes[response] = index


def change_of(response: Response) -> "Change | None":
    """What has become of a page since an earlier crawl; None if nothing has, or if no history is kept."""
    outcome = _outcomes.get(response)
    return None if outcome is None else outcome.change


def own_text(response: Response) -> str:
    """What a page says itself, without the chrome of its host as the crawl knows it by now: see `dedup.own_text`."""
    from dedup.index.own_text import own_text

    return (
        own_text(response.text, response.url, _indexes.get(response))
        if isinstance(response, TextResponse)
        else ""
    )


def lead_on(response: Response) -> None:
    """Has a near-duplicate go to its callback after all, for the sake of its links."""
    _outcomes[response] = replace(_outcomes[response], leads_on=True)
