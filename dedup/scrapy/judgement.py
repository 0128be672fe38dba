"""What the filter made of a page, as callbacks and errbacks see it."""

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary, ref

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response, TextResponse

if TYPE_CHECKING:  # this module is imported at every command of Scrapy
    from dedup.filter import Outcome
    from dedup.filter.change import Change
    from dedup.fingerprint.fingerprint import Fingerprint
    from dedup.index import Index, Verdict

#: The flag of a response that is a near-duplicate and is not dropped.
FLAG = "near-duplicate"
#: Where a request says what is to be done with its page, and where its callback finds what was.
META = "dedup"


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
    from dedup.batch.own_text import own_text

    return (
        own_text(response.text, response.url, _indexes.get(response))
        if isinstance(response, TextResponse)
        else ""
    )


class Seen:
    """What callbacks find in ``response.meta["dedup"]``: what the filter made of the page, worked out when it is asked for.

    It is of one response, and counts for no other request: copied, stored or sent to another worker it is None.
    """

    def __init__(self, response: Response) -> None:
        self._response = ref(response)  # whose request has this

    @property
    def own_text(self) -> str:
        """What the page says itself: `own_text`; "" if the response is gone."""
        response = self._response()
        return "" if response is None else own_text(response)

    @property
    def change(self) -> "Change | None":
        """What has become of the page: `change_of`."""
        response = self._response()
        return None if response is None else change_of(response)

    @property
    def judgement(self) -> Judgement | None:
        """Fingerprint and verdict: `judgement`."""
        response = self._response()
        return None if response is None else judgement(response)

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return type(None), ()


def show(response: Response) -> None:
    """Puts that into the meta of a response, unless its request says there what is to be done with it."""
    if response in _outcomes and response.meta.get(META) in (None, True):
        response.meta[META] = Seen(response)


def hide(request: Request) -> None:
    """Takes it out of the meta of a request that a callback has made, which was copied from that of its page."""
    if isinstance(request.meta.get(META), Seen):
        del request.meta[META]


def lead_on(response: Response) -> None:
    """Has a near-duplicate go to its callback after all, for the sake of its links."""
    _outcomes[response] = replace(_outcomes[response], leads_on=True)
