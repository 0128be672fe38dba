"""A page before its judges."""

from dataclasses import dataclass

from dedup.droplog.record import Record
from dedup.filter.bodies import Content
from dedup.filter.visit import Visit
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index import Verdict
from dedup.page.html import Page
from dedup.settings import Action

_NOTHING = Verdict.unjudged(None)


@dataclass(slots=True)
class Case:
    """A page before its judges."""

    visit: Visit
    action: Action  #: what is done with it if it is a near-duplicate
    page: Page
    fingerprint: Fingerprint
    body: Content | None = None  #: what is known of its bytes
    is_read: bool = True  #: false if they were met before: then the page has no tokens
    verdict: Verdict = _NOTHING
    claimed: Verdict = _NOTHING  #: what the index has said
    record: Record | None = None  #: if it is a near-duplicate
