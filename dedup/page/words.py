"""Text -> words, folded, whatever the script."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain, islice, pairwise

from dedup.compiled import fast
from dedup.page.limits import MAX_TOKENS

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

_BEFORE_THAI = "\u0e00"
_ASCII_TOKENS = re.compile(r"/\S*|\w+", re.ASCII)
# Invisible characters, which vanish, and those that NFKC would turn into slashes.
_INVISIBLE = re.compile(
    "[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\uff0f\u2100\u2101\u2105\u2106]"
)


#: Octets that are no signs: letters, digits and spaces of ASCII, and what controls a terminal.
PLAIN = bytes([*range(33), *b"_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 127])
#: Letters and digits that are not ASCII, and a space that some put for others.
_FOREIGN = re.compile(r"(?:[^\W\x00-\x7f]|\xa0)+")


def signs_of(text: str) -> bytes:
    """Returns what of a text is no letter or digit of ASCII, and no space: in UTF-8, without a mark between.

    >>> signs_of("Rating: ★★☆, -5 °C").decode()
    ':★★☆,-°'
    """
    return text.encode("utf-8", "replace").translate(None, PLAIN)


def without_letters(signs: bytes) -> bytes:
    """Returns signs without letters that are not ASCII: these are in the tokens, whatever their case.

    >>> without_letters(signs_of("ÜBER 5 ★, über")).decode()
    '★,'
    """
    if signs.isascii():
        return signs
    found: bytes = fast.without_letters(signs, _without_letters) if fast else _without_letters(signs)
    return found


def _without_letters(signs: bytes) -> bytes:
    return _FOREIGN.sub("", signs.decode("utf-8", "replace")).encode()


def is_url(token: str) -> bool:
    """Returns whether a token is a URL token.

    >>> is_url("/docs/"), is_url("docs")
    (True, False)
    """
    return token.startswith("/")


@cache
def _unicode_patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Patterns of the runs of combining marks over the limit, in the basic plane and beyond; of tokens, where a run of a
    script without spaces is one; and of the characters of such a run."""
    codes = [code for code in range(0x300, 0x10000) if unicodedata.category(chr(code))[0] == "M"]
    # Ranges are compiled in a tenth of the time.
    starts = [code for before, code in pairwise((0, *codes)) if code != before + 1]
    ends = [code for code, after in pairwise((*codes, 0)) if after != code + 1]
    marks = "".join(f"{chr(start)}-{chr(end)}" for start, end in zip(starts, ends, strict=True))
    letter = rf"[^\W{SPACELESS}]"
    character = rf"[{SPACELESS}][{marks}]*+"
    tokens = rf"/\S*|(?:{character})++|{letter}+(?:[{marks}]+{letter}*)*"
    over = f"{{{MAX_MARKS + 1},}}"
    # Halfwidth voicing marks are letters that become marks.
    return (
        re.compile(f"[{marks}\uff9e\uff9f]{over}"),
        re.compile(f"[\U00010a01-\U0001e94a]{over}"),
        re.compile(tokens),
        re.compile(character),
    )


def _normalise(text: str) -> str:
    """Returns the NFKC of a text whose runs of combining marks are cut to the limit."""
    long_marks, beyond, _, _ = _unicode_patterns()
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

    Where no spaces are written, each two neighbours are a token:

    >>> split_tokens("ไทย 漢字かな 字 हिन्दी")
    ['ไท', 'ทย', '漢字', '字か', 'かな', '字', 'हिन्दी']
    """
    if text.isascii():
        return _ASCII_TOKENS.findall(text.lower())
    text = _INVISIBLE.sub(lambda found: " " if found[0] in "\uff0f\u2100\u2101\u2105\u2106" else "", text)
    _, _, token, character = _unicode_patterns()
    tokens: list[str] = []
    for found in token.findall(_normalise(_normalise(text).casefold())):
        if found > _BEFORE_THAI and character.match(found):
            characters = character.findall(found)
            tokens += [a + b for a, b in pairwise(characters)] or characters
        else:
            tokens.append(found)
    return tokens


# --- The same, faster, of the text of a page ----------------------------------------------------------

#: Letters and digits of ASCII, folded, and the octets of other characters.  All others are separators.
_FOLD = bytes(
    byte if byte >= 128 or chr(byte) == "_" or chr(byte).isalnum() else ord(" ") for byte in range(256)
).lower()
#: Separators that many pages have, which would otherwise be looked up word by word.
_SEPARATORS = "\xa0\xa3\xa9\xab\xae\xb0\xb7\xbb\xd7\u2013\u2014\u2018\u2019\u201c\u201d\u2022\u2026\u2192"
#: Where in Unicode there are mostly signs.
_SIGNS = (0xA0, 0x100), (0x2010, 0x2800), (0x3000, 0x3040), (0xFF00, 0xFF20)
#: Characters that are normalised at a time: one may become 18, and a page of those would not fit into memory.
BATCH = 65_536
#: Words that are remembered, and characters of the longest of them.
REMEMBERED, SHORT = 1 << 14, 32

#: Signs of ASCII that count in the names of pages, such as `operator*` and `!=`; others only separate words.
SIGNS = "!#$%&()*+<=>?@[\\]^{|}~"

_SIGNED = re.compile(f"[{re.escape(SIGNS)}]+")
_WORDS = re.compile(rf".{{1,{BATCH}}}", re.DOTALL)
#: The tokens of words that were met, by what they are written like.
remembered: dict[str, tuple[str, ...]] = {}


def fold_text(text: str) -> bytes:
    """Returns the tokens of a text in which slashes only separate words: in UTF-8, a NUL after each; not many more than `MAX_TOKENS`.

    Most words are ASCII and are folded as octets.  Any other is looked up in a memory, or else goes through
    `split_tokens`, at most `BATCH` characters at a time.

    >>> fold_text("Full-STRASSE / Käse – 漢字").decode().split("\\0")
    ['full', 'strasse', 'käse', '漢字', '']
    """
    if not text.isascii():
        for separator in _SEPARATORS:
            text = text.replace(separator, " ")
    octets = text.encode("utf-8", "replace").translate(_FOLD)
    if not octets.isascii():
        octets = "\0".join(_fold_words(octets.decode().split())).encode()
    elif b"  " in octets:
        octets = b"\0".join(octets.split())
    else:  # which takes less time than an object for each word
        octets = octets.strip().replace(b" ", b"\0")
    return octets + b"\0" if octets else b""


def fold_name(text: str) -> bytes:
    """Returns the same of the name of a page, in which runs of `SIGNS` are tokens.

    >>> fold_name("operator!= (C++)").decode().split("\\0")
    ['operator', '!=', '(', 'c', '++)', '']
    """
    pieces, end = [], 0
    for signs in _SIGNED.finditer(text):
        pieces += [fold_text(text[end : signs.start()]), signs[0].encode() + b"\0"]
        end = signs.end()
    return b"".join([*pieces, fold_text(text[end:])])


def _fold_words(words: list[str]) -> list[str]:
    """Returns the tokens of words that ASCII separates.  Words that are not ASCII are folded here."""
    tokens: list[str] = []
    folded = iter(fold_each([word for word in words if not word.isascii()]))
    for word in words:
        if word.isascii():
            tokens.append(word)
        elif (found := next(folded, None)) is not None and len(tokens) <= MAX_TOKENS:
            tokens += found
        else:
            break
    return tokens


def fold_each(words: list[str]) -> list[tuple[str, ...]]:
    """Returns the tokens of words that are not ASCII, word by word, and returns those after `MAX_TOKENS` are left out."""
    if any(len(word) > BATCH for word in words):
        cut = [_cut_up(word) if len(word) > BATCH else [word] for word in words]
        folded = iter(fold_each(list(chain.from_iterable(cut))))
        return [tuple(chain.from_iterable(islice(folded, len(pieces)))) for pieces in cut]
    known = {word: remembered.get(word) for word in words}
    for batch in _batches(word for word, tokens in known.items() if tokens is None):
        known.update(zip(batch, _split_each(batch), strict=True))
    tokens: list[tuple[str, ...]] = []
    left = MAX_TOKENS
    for word in words:
        tokens.append(known[word] or ())
        left -= len(tokens[-1])
        if left < 0:
            break
    return tokens


def _cut_up(word: str) -> list[str]:
    """Returns the parts of a long word, which are the same whichever of its separators the caller knows."""
    words = word.translate(dict.fromkeys(map(ord, separators()), " ")).split()
    return list(chain.from_iterable(map(_WORDS.findall, words)))


def _batches(words: Iterable[str]) -> Iterator[list[str]]:
    """Yields the words in batches of `BATCH` characters, or just more."""
    batch: list[str] = []
    size = 0
    for word in words:
        batch.append(word)
        size += len(word)
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@cache
def separators() -> str:
    """Signs that are known to separate words only."""
    signs = [chr(code) for start, end in _SIGNS for code in range(start, end)]
    tokens = split_tokens(" / ".join(f"a{sign}b" for sign in signs))
    each = " ".join(tokens).split(" / ")
    return "".join(sign for sign, found in zip(signs, each, strict=True) if found == "a b")


def _split_each(words: list[str]) -> list[tuple[str, ...]]:
    """Returns the tokens of each word."""
    tokens = split_tokens(" / ".join([*words, ""]))
    found, start = [], 0
    for word in words:
        end = tokens.index("/", start)
        found.append(tuple(tokens[start:end]))
        start = end + 1
        if len(word) <= SHORT:
            _remember(word, found[-1])
    return found


def _remember(word: str, tokens: tuple[str, ...]) -> None:
    if len(remembered) >= REMEMBERED:
        remembered.clear()
    remembered[word] = tokens
