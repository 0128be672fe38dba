"""`scrapy compare A B`: how near two pages are, and which rule decides."""

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from operator import eq
from pathlib import Path
from typing import Any

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

__all__ = ["Command"]

#: Tokens that are shown of those that only one page has.
SHOWN = 20
#: Characters per shingle of characters: what suits pages (Mining of Massive Datasets, section 3.2.2).
CHARACTERS = 9
#: Min-hashes of a signature.
SELECTORS = 100


class Command(ScrapyCommand):
    """Exit status 0: near-duplicates; 1: different; 2: a page or a setting is wrong."""

    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 (as Scrapy declares it)

    def syntax(self) -> str:
        """The arguments."""
        return "[options] A B"

    def short_desc(self) -> str:
        """For the list of commands."""
        return "Compare two pages as the near-duplicate filter does"

    def long_desc(self) -> str:
        """For --help."""
        return (
            "A and B are a URL or a path each. Shows tokens, distance, resemblance (Jaccard; estimated and "
            "exact), containment, Dice, resemblance by characters, what samples of the shingles say (0 mod m, "
            "winnowing), the verdict by the project's settings and the rule that decides, and the tokens that "
            "only one page has. Exit status: 0 near-duplicates, 1 different, 2 a page can't be read or a "
            "setting is wrong."
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Reads, compares, prints."""
        from dedup.errors import DedupError

        if len(args) != 2:
            raise UsageError("compare takes two pages: A B")
        try:
            self.exitcode = 0 if self._compare(*args) else 1
        except DedupError as error:
            print(f"compare: {error}")
            self.exitcode = error.exit_status

    def _compare(self, a: str, b: str) -> bool:
        from dedup.page.html import decode
        from dedup.page.read import read
        from dedup.printing import printable
        from dedup.scrapy.settings import read_settings

        assert self.settings is not None
        self.settings.set("DEDUP_INDEX", "memory:", "cmdline")
        detector = read_settings(self.settings).detector
        sources = [_read(name, source) for name, source in (("A", a), ("B", b))]
        pages = [read(decode(html), url, detector.keep_urls) for html, url in sources]
        fingerprints = [detector.fingerprint_page(page) for page in pages]
        for name, source, page, found in zip("AB", (a, b), pages, fingerprints, strict=True):
            why = f", can't be judged: {found.reason}" if found.reason else ""
            print(f"{name:12} {source}: {len(page.tokens):,} tokens{why}")
        compared = detector.compare(*fingerprints)
        if compared.distance is not None and compared.resemblance is not None:
            for name, fingerprint in zip("AB", fingerprints, strict=True):
                print(f"simhash {name}    {fingerprint.simhash:064b}")
            differing = (fingerprints[0].simhash or 0) ^ (fingerprints[1].simhash or 0)
            print(f"distance     {differing:064b}".replace("0", ".").replace("1", "^"))
            near = "" if detector.finder.own_keys else f" (near: up to {detector.max_distance})"
            print(f"             {compared.distance} bits{near}")
            for name, text in _measures(detector, pages, compared):
                print(f"{name:12} {text}")
        print(
            f"verdict      {'near-duplicates' if compared.duplicate else 'different'}: {self._rule(detector, fingerprints, compared)}"
        )
        bags = [Counter(page.tokens) for page in pages]
        for name, only in (("A", bags[0] - bags[1]), ("B", bags[1] - bags[0])):
            if only:
                some = " ".join(token for token, _ in only.most_common(SHOWN))
                more = f" ... {len(only) - SHOWN:,} more" if len(only) > SHOWN else ""
                print(f"only in {name}    {printable(some)}{more}")
        return compared.duplicate

    @staticmethod
    def _rule(detector: Any, fingerprints: Sequence[Any], compared: Any) -> str:
        if compared.duplicate:
            return f"{detector.finder.found_by} and resemblance both say so"
        if compared.distance is None:
            return "a page has nothing to be compared"
        if not detector.is_candidate(*fingerprints):
            return str(detector.finder.not_found)
        if compared.resemblance < detector.min_resemblance:
            return "too few shingles in common"
        return "a page is too short to be judged"


def _measures(detector: Any, pages: Sequence[Any], compared: Any) -> list[tuple[str, str]]:
    """What two pages have in common, by each measure: its name and what it says."""
    from dedup.fingerprint.methods.minhash import Bands
    from dedup.fingerprint.methods.supershingle import Megashingles
    from dedup.fingerprint.shingles import dice, hash_tokens, resemblance, shingle_hashes
    from dedup.fingerprint.signatures import signature
    from dedup.lab.papers.sampling import MODULUS, SIZE, THRESHOLD, WINDOW, mod_sample, winnow
    from dedup.lab.papers.signatures import agreement
    from dedup.page.html import is_url

    sets = [detector.shingles(page) for page in pages]
    fours = [replace(detector, shingle_size=SIZE).shingles(page) for page in pages]
    texts = [" ".join(token for token in page.tokens if not is_url(token)) for page in pages]
    characters = [shingle_hashes(hash_tokens(text), CHARACTERS) for text in texts]
    alike = f"{compared.resemblance:.4f} by the sketches, {resemblance(*sets):.4f} exact"
    drawn = [signature(some, SELECTORS) for some in sets]
    sampled = _shares([mod_sample(some, MODULUS) for some in fours])
    winnowed = _shares([winnow(some, WINDOW) for some in fours])
    return [
        ("resemblance", f"{alike} (near: from {detector.min_resemblance:g})"),
        ("containment", _shares(sets)),
        ("dice", f"{dice(*sets):.4f} exact"),
        ("characters", f"{resemblance(*characters):.4f} exact resemblance, by runs of {CHARACTERS}"),
        ("min-hash", f"{agreement(*drawn):.4f} of {SELECTORS} selectors agree"),
        ("bands", _equal(Bands(20, 5), drawn)),
        ("megashingles", _equal(Megashingles(14, 2), drawn)),
        (f"0 mod {MODULUS}", f"{sampled} (Barber, by {SIZE} tokens; near: over {THRESHOLD})"),
        ("winnowing", f"{winnowed} (finds any run of {WINDOW + SIZE - 1} tokens)"),
    ]


def _equal(scheme: Any, drawn: Sequence[Any]) -> str:
    """How many keys of a scheme are equal in two signatures."""
    a, b = (scheme.keys(some[: scheme.selectors]) for some in drawn)
    return f"{sum(map(eq, a, b))} of {scheme.own_keys} equal ({scheme}; near: from 1)"


def _shares(samples: Sequence[Any]) -> str:
    """How much of each of two samples the other has."""
    from dedup.fingerprint.shingles import containment

    a, b = samples
    return ", ".join(
        f"{containment(x, y):.4f} of {names}" if len(x) else f"nothing is sampled of {names[0]}"
        for x, y, names in ((a, b, "A is in B"), (b, a, "B is in A"))
    )


def _read(name: str, source: str) -> tuple[bytes | str, str]:
    """HTML and URL of a page."""
    from dedup.errors import SettingsError
    from dedup.lab.labelled import read_page

    if not source.startswith(("http://", "https://")):
        try:
            there = Path(source).is_file()
        except OSError:
            there = False
        if not there:
            raise SettingsError(f"{name} is {source!r}, which is no file; allowed: a path, or a http(s) URL")
    return read_page(source, Path())
