"""Why a page was taken for a near-duplicate, in words: the rule, and the figures that it went by."""

from dedup.droplog.record import Record
from dedup.fingerprint.evidence import in_words
from dedup.printing import inert


def reason(record: Record) -> str:
    """Returns a clause about the dropped page, which goes on from its URL.

    >>> reason({"rule": "rare", "own": 412, "matching": 409, "new": 3, "gone": 0, "distance": 9, "resemblance": 0.99})
    'all of its own 412 shingles but 3 are on the kept page'
    """
    rule, own, new = record["rule"], record.get("own"), record.get("new")
    if rule == "exact":
        return "it is equal to the kept page"
    if rule == "no_vary_search":
        return "its site says that its URL is another one of the kept page's (No-Vary-Search), so it was not fetched"
    if rule == "address":
        return "its address means the kept page, as other pairs have shown, and all of its unique content is there"
    if rule == "soft_404":
        return "its host shows the same at an address that can't exist"
    shared = None if own is None or new is None else in_words(own, new, record.get("gone") or 0)
    if rule == "probe":
        noise = inert(record.get("noise") or "", 80)
        what = f"what differs, {noise!r}, is" if noise else "what differs is"
        noisy = f"{what} in its address, or changed when either page was fetched again"
        return f"{shared}; {noisy}" if shared else noisy
    if shared:
        return shared
    return f"{record['distance']} of 64 bits differ, and {record['resemblance']:.0%} of the shingles of both are the same"
