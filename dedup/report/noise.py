"""What drops say was noise, by URL pattern, and the regular expressions that leave it out of the comparison."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby

from dedup.droplog.record import Record
from dedup.page.patterns import pattern

#: The most runs of words of a pattern.
MAX_RUNS = 20
_LETTER = re.compile(r"[^\W\d_]")
_DIGITS = re.compile(r"\d+")


def noise_by_pattern(pairs: Iterable[Record]) -> list[tuple[str, int, list[tuple[str, str, int]]]]:
    """Returns patterns of URLs, those with the most drops by noise first: the pattern, its drops, and its runs of words.

    A run has an example, the regular expression that finds it, and the number of drops that have it.
    """
    drops: Counter[str] = Counter()
    runs: defaultdict[str, Counter[str]] = defaultdict(Counter)
    examples: dict[str, str] = {}
    for pair in pairs:
        if pair["rule"] == "probe" and (noise := pair.get("noise")):
            kind, found = pattern(pair["url"]), dict(_runs(noise))
            drops[kind] += 1
            runs[kind].update(found.keys())
            examples = found | examples
    return [
        (kind, count, [(examples[each], each, number) for each, number in runs[kind].most_common(MAX_RUNS)])
        for kind, count in drops.most_common()
    ]


def _runs(noise: str) -> Iterator[tuple[str, str]]:
    r"""Yields the expression of each run of words, in which numbers stand for any number, and the run; URLs end one.

    >>> dict(_runs("/2026/01 12 /09 /11 184 page made /lamp.svg?3"))
    {'(?i)(?<!\\w)\\d+\\W+page\\W+made(?!\\w)': '184 page made'}
    """
    for is_url, words in groupby(noise.split(), lambda word: "/" in word):
        run = list(words)
        if not is_url and _LETTER.search(" ".join(run)):  # the expression of a bare number is any number's
            found = (r"\d+".join(map(re.escape, _DIGITS.split(word))) for word in run)
            yield r"(?i)(?<!\w)" + r"\W+".join(found) + r"(?!\w)", " ".join(run)
