"""The contract of an index spelled out: a list of kept pages, compared one by one."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index import Verdict
from tests.support.fingerprints import fingerprint_of, flip


@dataclass
class Model:
    """The contract without any table: every claim is compared with every kept page."""

    detector: Detector
    group: Callable[[str], object] = lambda url: None
    kept: dict[str, tuple[str, Fingerprint]] = field(default_factory=dict)  # in the order of their claims
    done: set[str] = field(default_factory=set)

    def matches(self, url: str, fingerprint: Fingerprint) -> list[Verdict]:
        """Gives a verdict for each page that this one duplicates, the nearest first."""
        found = []
        for other_url, other in self.kept.values():
            near = (other.simhash ^ fingerprint.simhash).bit_count() <= self.detector.max_distance
            if near and self.group(url) == self.group(other_url):
                seen = self.detector.compare(other, fingerprint)
                if seen.duplicate:
                    found.append(
                        Verdict(
                            "duplicate",
                            other_url,
                            seen.distance,
                            seen.resemblance,
                            of_simhash=other.simhash,
                            rule="exact"
                            if replace(other, tokens=fingerprint.tokens) == fingerprint
                            else self.detector.method,
                        )
                    )
        return sorted(found, key=lambda match: (match.distance, -match.resemblance))  # a stable sort

    def claim(self, page_id: str, url: str, fingerprint: Fingerprint) -> Verdict:
        if page_id in self.kept:
            return Verdict("same")
        if matches := self.matches(url, fingerprint):
            return matches[0]
        self.kept[page_id] = url, fingerprint
        return Verdict("new")

    def confirm(self, page_id: str) -> None:
        if page_id in self.kept:
            self.done.add(page_id)

    def release(self, page_id: str) -> None:
        if page_id not in self.done:
            self.kept.pop(page_id, None)

    def reopen(self, *, forget_all: bool = False) -> None:
        if forget_all:
            self.done.clear()
        self.kept = {page_id: kept for page_id, kept in self.kept.items() if page_id in self.done}


#: The site of each host that `crawl_of_verbs` visits.
SITES = {
    "a.example.co.uk": "example.co.uk",
    "b.example.co.uk": "example.co.uk",
    "other.co.uk": "other.co.uk",
    "example.org": "example.org",
    "www.example.org:8080": "example.org",
    "192.0.2.1": "192.0.2.1",
    "192.0.2.2": "192.0.2.2",
}
#: For each scope: the name of the group in which a URL is compared.
GROUPS: dict[str, Callable[[str], object]] = {
    "all": lambda url: None,
    "host": lambda url: url.split("/")[2],
    "site": lambda url: SITES[url.split("/")[2]],
}


def crawl_of_verbs(seed: int, claims: int) -> Iterator[tuple[str, ...]]:
    """Yields verbs with their arguments at random; one claim in three is near an earlier page."""
    rng = random.Random(seed)
    earlier: list[Fingerprint] = [fingerprint_of(0)]
    page_ids = ["never claimed"]
    while claims:
        chance = rng.random()
        if chance < 0.2:
            yield "confirm", rng.choice(page_ids[-20:])
        elif chance < 0.3:
            yield "release", rng.choice(page_ids[-20:])
        else:
            claims -= 1
            old, new = flip(rng.choice(earlier).simhash, rng.randint(0, 5), rng), rng.getrandbits(64)
            fingerprint = fingerprint_of(
                rng.choice([old, new]), changed=rng.choice([0, 30, 60, 90, 120, 300])
            )
            page_id = rng.choice(page_ids) if rng.random() < 0.1 else f"page {claims}"
            earlier.append(fingerprint)
            page_ids.append(page_id)
            yield "claim", page_id, f"http://{rng.choice(list(SITES))}/{claims}", fingerprint
