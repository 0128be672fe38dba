"""Generated text in scripts with and without spaces, and what becomes of a page that is edited or translated."""

import random
from functools import cache
from itertools import accumulate


def _span(first: str, last: str) -> list[str]:
    return [chr(code) for code in range(ord(first), ord(last) + 1)]


_spaced = str.split
_CONSONANTS = _span("\u0915", "\u0928") + _span("\u092a", "\u0939")
#: Of each language what its words are made of, and what is between two words.
LANGUAGES: dict[str, tuple[list[str], str]] = {
    "Latin": (_spaced("ba ce dor fi gan hul ka len mi nor pa quo ris so tam ul ver wy zan bri é ñ"), " "),
    "another Latin": (_spaced("ak eb ig od uf az ey iv ox un sch tz pf ei au ä ö ü kno gra"), " "),
    "Cyrillic": (_spaced("ба ве го ди жу зы ка ле мо ну пи ры са те фу хо ша щё ю й"), " "),
    "Arabic": (_span("\u0628", "\u063a") + _span("\u0641", "\u064a"), " "),
    "Devanagari": ([a + b for a in _CONSONANTS[::3] for b in ("", "\u093e", "\u093f", "\u0947")], " "),
    "Hangul": ([chr(0xAC00 + 28 * 7 * n + n % 28) for n in range(57)], " "),
    "Thai": (_span("\u0e01", "\u0e2e"), ""),
    "Han": ([chr(0x4E00 + 37 * n) for n in range(400)], ""),
    "kana": (_span("\u3042", "\u3093") + _span("\u30a2", "\u30f3"), ""),
}


def paragraphs(language: str, seed: object, count: int = 20, words: int = 30) -> list[str]:
    """Text of a vocabulary of 600 words, which follows Zipf's law."""
    space, rng = LANGUAGES[language][1], random.Random(f"{language} {seed}")
    known = _vocabulary(language)
    return [space.join(rng.choices(known, cum_weights=_WEIGHTS, k=words)) for _ in range(count)]


_WEIGHTS = list(accumulate(1 / (at + 3) for at in range(600)))


@cache
def _vocabulary(language: str) -> list[str]:
    letters, rng = LANGUAGES[language][0], random.Random(language)
    return ["".join(rng.choices(letters, k=rng.randint(2, 4))) for _ in range(600)]


def page(texts: list[str]) -> str:
    """A page of such paragraphs; its address, links, images and numbers are those of its translations, too."""
    body = "".join(
        f'<h2>{at}</h2><p>{text} <a href="/part/{at}">{at * 17}</a><img src="figure{at}.png"></p>'
        for at, text in enumerate(texts)
    )
    return f"<!DOCTYPE html><meta charset=utf-8><article>{body}</article><footer>2026</footer>"


def edited(language: str, texts: list[str], seed: int) -> list[str]:
    """A copy of which a word in two paragraphs was exchanged, and that has a counter."""
    rng, copy = random.Random(seed), list(texts)
    other = paragraphs(language, f"edit {seed}", 2, 1)
    for at, word in zip(rng.sample(range(len(copy)), 2), other, strict=True):
        middle = len(copy[at]) // 2
        copy[at] = copy[at][:middle] + word + copy[at][middle:]
    return [*copy[:-1], f"{copy[-1]} {rng.randrange(10_000)}"]


def translated(texts: list[str], language: str, seed: object, share: float) -> list[str]:
    """The same page, a share of it (from the top) in another language."""
    count = round(share * len(texts))
    return paragraphs(language, f"translation {seed}", count) + texts[count:]
