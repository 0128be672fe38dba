"""Text -> words, folded, whatever the script."""

import re
import unicodedata
from functools import cache

__all__ = ["is_url", "split_tokens"]

#: Unicode's stream-safe limit (UAX #15): longer runs of combining marks are cut, since normalising
#: them takes quadratic time.
MAX_MARKS = 30
#: Han (with its iteration marks), kana, Thai, Lao, Burmese, Khmer, of the basic plane: the regular
#: expressions below are compiled to bitmaps as long as no class reaches beyond it (10 times faster).
SPACELESS = (
    "\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd-\u0ec6"
    "\u1000-\u102a\u103f\u1050-\u1055\u1780-\u17b3"
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
)

_ASCII_TOKENS = re.compile(r"/\S*|\w+", re.ASCII)
# Invisible characters, which vanish, and those that NFKC would turn into slashes.
_INVISIBLE = re.compile(
    "[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\uff0f\u2100\u2101\u2105\u2106]"
)


def is_url(token: str) -> bool:
    """Whether a token is a URL token.

    >>> is_url("/docs/"), is_url("docs")
    (True, False)
    """
    return token.startswith("/")


@cache
def _unicode_patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Patterns of the runs of combining marks over the limit, in the basic plane and beyond, and of tokens."""
    marks = "".join(chr(c) for c in range(0x300, 0x10000) if unicodedata.category(chr(c))[0] == "M")
    letter = rf"[^\W{SPACELESS}]"
    tokens = rf"/\S*|[{SPACELESS}][{marks}]*|{letter}+(?:[{marks}]+{letter}*)*"
    over = f"{{{MAX_MARKS + 1},}}"
    # Halfwidth voicing marks are letters that become marks.
    return (
        re.compile(f"[{marks}\uff9e\uff9f]{over}"),
        re.compile(f"[\U00010a01-\U0001e94a]{over}"),
        re.compile(tokens),
    )


def _normalise(text: str) -> str:
    """The NFKC of a text whose runs of combining marks are cut to the limit."""
    long_marks, beyond, _ = _unicode_patterns()
    text = long_marks.sub(_cut, text)
    if len(text.encode("utf-16-le", "replace")) > 2 * len(text):  # characters beyond the basic plane
        text = beyond.sub(_cut, text)
    return unicodedata.normalize("NFKC", text)


def _cut(run: re.Match[str]) -> str:
    return run[0][:MAX_MARKS]


def split_tokens(text: str) -> list[str]:
    """Folds text and splits it into tokens; a slash begins a URL token, which ends at the next white space.

    >>> split_tokens("Ｆｕｌｌ STRASSE Straße x\u0301")
    ['full', 'strasse', 'strasse', 'x́']
    >>> split_tokens("ไทย 漢字かな हिन्दी")
    ['ไ', 'ท', 'ย', '漢', '字', 'か', 'な', 'हिन्दी']
    """
    if text.isascii():
        return _ASCII_TOKENS.findall(text.lower())
    text = _INVISIBLE.sub(lambda found: " " if found[0] in "\uff0f\u2100\u2101\u2105\u2106" else "", text)
    return _unicode_patterns()[2].findall(_normalise(_normalise(text).casefold()))
