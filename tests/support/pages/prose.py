"""Endless text for generated pages."""

import random
from itertools import accumulate

_COMMON = (
    "the of and to in a is that for it was on with as are by at from this be or an which not have has but "
    "they its one all can more when were will there their if out about then so into only over such"
)
_SYLLABLES = "ba ce dor fi gan hul ka len mi nor pa quo ris so tam ul ver wy zan bri cho dre flo gra"


class Prose:
    """Endless text of common English words and a vocabulary of its own, which follows Zipf's law.

    >>> len(Prose(random.Random(1)).text(20).split())
    20
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        common, syllables = _COMMON.split(), _SYLLABLES.split()
        own = ["".join(rng.choices(syllables, k=rng.randint(2, 4))) for _ in range(rng.randint(80, 900))]
        weights = [1 / (at + 1) for at in range(len(common))] + [3 / (at + 9) for at in range(len(own))]
        self.words, self._weights = common + own, list(accumulate(weights))

    def text(self, count: int) -> str:
        """Writes this number of words, in sentences."""
        words = self.rng.choices(self.words, cum_weights=self._weights, k=count)
        start = 0
        while start < count:
            end = min(start + self.rng.randint(5, 18), count)
            words[start], words[end - 1] = words[start].capitalize(), words[end - 1] + "."
            start = end
        return " ".join(words)

    def blocks(self, count: int, block: str = "<p>{}</p>", longest: int = 90) -> str:
        """Writes about this number of words, in blocks."""
        sizes = [self.rng.randint(5, longest) for _ in range(1 + 2 * count // longest)]
        return "\n".join(block.format(self.text(size)) for size in sizes)

    def links(self, count: int, longest: int) -> str:
        """Writes a list of links, of at most this number of words."""
        titles = [self.text(self.rng.randint(1, longest))[:-1] for _ in range(count)]
        return " ".join(f'<li><a href="{address(title)}">{title}</a></li>' for title in titles)


def address(title: str) -> str:
    return "/" + "-".join(title.lower().split())
