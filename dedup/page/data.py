"""Data -> tokens: what a page will show once a browser has run its scripts, and what its scripts use.

Pages that are drawn by scripts carry what they show in scripts (as JSON, or as a value in the program: ``var x = {...}``,
``JSON.parse("...")``, ``push([...])``), and in attributes such as ``data-price``.  The strings and numbers in there tell
such pages apart, although their visible words are the same.

What can't be read (programs, styles, keys, what is beyond `MAX_DATA`) is one token, a digest of all of it, so that pages
that differ in it are not equal.  What looks like a nonce is left out of both: ids of any kind; and numbers, times and
codes whose keys speak of tokens, sessions, builds or times.  Nothing here raises; the work is bounded by the size of a page.

>>> shop = '{"product": {"name": "Brass lamp", "price": 12.50, "csrfToken": "9f86d081", "sku": "9f86d081884c7d659a2f"}}'
>>> for script in (("application/json", shop), ("", "let shop = {name: 'Brass lamp', token: '9f86d081'}")):
...     print(read_data([script]).tokens[:-1])
('brass', 'lamp', '12', '50')
('brass', 'lamp')
>>> read_data([("@data-price", "12.50"), ("@data-nonce", "9f86d081")]).tokens
('12', '50')
"""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

from dedup.page.ids import is_opaque
from dedup.page.literals import JSON, UNWRITTEN, read_literals
from dedup.page.nonces import MAX_NONCE, Looks, is_nonce, nonces_of, without_nonces
from dedup.page.words import split_tokens

#: Tokens of data that are looked at one by one, in document order; the rest are in the digest.
MAX_DATA = 4_000
#: Characters of a script, and of all scripts of a page, that are looked at: a million take up to 1 s.
MAX_SCRIPT, MAX_SCRIPTS = 1_000_000, 2_000_000
#: Characters of one string that are looked at.
MAX_STRING = 20_000
#: Values within values; data that is nested more deeply is not looked at.
MAX_DEPTH = 100
#: Characters of programs that are remembered, and how many of the short and of the long ones: most are the same on all
#: pages of a site, and to read one of 100,000 characters takes 10 ms.
SHORT, LONG = (32_768, 256), (262_144, 16)

#: Characters of attributes that are remembered, and of types of scripts, of which many are the same on many pages.
SHORT_VALUE = 64  # less than `MAX_NONCE`, so that each is read as a whole

#: Types of scripts that are JSON, beside those whose names say so.
RULES = frozenset({"importmap", "speculationrules"})
#: Where in a program the name of an application's state, which begins with "__", is at the latest.
NEAR = 80

#: What is in the digest alone: an image that is in the page itself; and titles and programs of links.
UNREAD = frozenset({"data:", "links"})

#: What the digest begins with, and no other token.
_MARK = "#"
_PROGRAM = re.compile(r"|(?:.*[/-])?(?:java|ecma|live|j)script.*|module", re.DOTALL).fullmatch
#: Not one that is a query alone, which depends on the page's own address.
_URL = re.compile(r"url\(\s*[\"']?([^\"')\s?][^\"')\s]*)")
_TAG = re.compile(r"<[^<>]*>")

Token = Callable[[str], str | None]


class Data(NamedTuple):
    """What was read of the data of a page."""

    tokens: tuple[str, ...]  #: the last is a digest of the rest, if there is any
    is_state: bool  #: true if some of them are the state of an application, from which scripts draw the page


def read_data(pieces: Iterable[tuple[str, str]], url_token: Token = lambda url: None) -> Data:
    """Returns the tokens of a page's data.

    Each piece has a kind and a text: of a script its type, of an element STYLE "style", of an attribute its name after an
    "@".  ``url_token`` says which token stands for a string that is a URL; None: it is left out.
    """
    found = _Data(url_token, MAX_DATA)
    attributes = []
    left = MAX_SCRIPTS
    for kind, text in pieces:
        if kind[:1] == "@":
            attributes.append((kind[1:], text))
        elif len(text) > min(MAX_SCRIPT, left):
            found.rest(text)
        else:
            left -= len(text)
            found.add_script(kind, text)
    found.add_attributes(attributes)
    return Data(tuple(found.settle()), found.is_state)


def read_json(text: str, most: int) -> tuple[list[str], tuple[str, ...]] | None:
    """Returns the tokens of a JSON document, more than ``most`` if it has more than that, and a digest of the rest; None if it is
    not one.

    >>> read_json('{"lamp": ["Brass", 12], "session": 3}', 10)[0], read_json("{lamp}", 10)
    (['brass', '12'], None)
    """
    try:
        data = JSON.decode(text.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return None
    found = _Data(lambda url: None, most + 1)
    if not found.add(data):
        return None
    *tokens, last = found.settle() or [""]
    return (tokens, (last,)) if is_digest(last) else ([*tokens, *filter(None, [last])], ())


def is_digest(token: str) -> bool:
    """Returns whether a token stands for what can't be read.

    >>> [is_digest(token) for token in read_data([("", "draw()")]).tokens]
    [True]
    """
    return token.startswith(_MARK)


class _Data:
    """What was found of the data of a page."""

    def __init__(self, url_token: Token, most: int) -> None:
        self._url_token, self._most = url_token, most
        self._tokens: list[str] = []
        self._rest = blake2b(digest_size=8)
        self._has_rest = self.is_state = False

    def rest(self, text: str) -> None:
        """What is not looked at one by one."""
        self._has_rest = True
        self._rest.update(text.encode("utf-8", "replace") + b"\0")

    def settle(self) -> list[str]:
        """Returns all tokens."""
        if len(self._tokens) > self._most:
            self.rest(" ".join(self._tokens[self._most :]))
        return self._tokens[: self._most] + [_MARK + self._rest.hexdigest()] * self._has_rest

    def add_script(self, kind: str, text: str) -> None:
        kind, is_program = (_known_kind if len(kind) <= SHORT_VALUE else _plain_kind)(kind)
        if is_program and not text:  # it is elsewhere
            return
        before = len(self._tokens)
        is_json = kind.endswith("json")
        if kind == "style":
            self.rest(text)
        elif is_json or kind in RULES:
            if not self._add_json(text):
                self.rest(text)
        elif is_program:
            values, rest = _read_again(text)
            for value in values:
                if not self.add(value):
                    rest = text
            if rest:
                self.rest(rest)
        else:  # a template, a formula
            self._add_string(text)
        self.is_state |= len(self._tokens) > before and (is_json or "__" in text[:NEAR])

    def _add_json(self, text: str) -> bool:
        with suppress(ValueError, RecursionError):
            return self.add(JSON.raw_decode(text.lstrip())[0])
        return False

    def add_attributes(self, attributes: list[tuple[str, str]]) -> None:
        plain: list[str] = []
        for key, text in attributes:
            first = text[:1]
            if (first == "{" or first == "[") and self._add_json(text):
                continue
            if key in UNREAD:
                self.rest(text)
            elif key == "style":
                for url in (urls := _URL.findall(text)):
                    self._add_url(url)
                if not urls:
                    self.rest(text)
            elif first == "/" or text.startswith("http"):
                self._add_leaf(text, nonces_of(key))
            elif len(text) > SHORT_VALUE or len(key) > SHORT_VALUE:
                if not is_nonce(text, nonces_of(key)):
                    plain.append(self._readable(text))
            elif not _is_nonce(key, text):
                plain.append(text)
        self._tokens += split_tokens(" ".join(plain).replace("/", " "))

    def add(self, data: Any) -> bool:
        """Returns the tokens of a value of JSON, in document order; False, and nothing, if it is nested too deeply."""
        before, names = len(self._tokens), list[str]()
        rest: list[tuple[Any, Looks, int]] = [(data, None, 0)]
        while rest:
            value, looks, depth = rest.pop()
            if depth > MAX_DEPTH:
                del self._tokens[before:]
                return False
            if isinstance(value, dict):
                names += [key for key in value if not is_opaque(key)]
                rest += [(value[key], nonces_of(key), depth + 1) for key in reversed(value)]
            elif isinstance(value, list):
                rest += [(one, looks, depth + 1) for one in reversed(value)]
            elif isinstance(value, str):
                self._add_leaf(value, looks)
            elif value is not UNWRITTEN:
                names.append(str(value))
        if names:
            self.rest(" ".join(names))
        return True

    def _add_leaf(self, value: str, looks: Looks) -> None:
        if value.startswith(("/", "http://", "https://")) and not any(map(str.isspace, value)):
            self._add_url(value)
        elif not is_nonce(value, looks):
            self._add_string(value)

    def _add_url(self, value: str) -> None:
        token = self._url_token(value)
        self._tokens += split_tokens(token) if token else ()

    def _add_string(self, value: str) -> None:
        if len(self._tokens) > self._most:
            self.rest(value)
            return
        if "<" in value and (tags := _TAG.findall(value)):
            self.rest(without_nonces(" ".join(tags)))
            value = _TAG.sub(" ", value)
        self._tokens += split_tokens(self._readable(value).replace("/", " "))

    def _readable(self, text: str) -> str:
        """Returns what of a text is read word by word."""
        if len(text) <= MAX_NONCE:
            return text
        most = 0 if text.isascii() and len(text.split(None, 1)) == 1 else MAX_STRING  # packed
        if len(text) > most:
            self.rest(text[most:])
        return text[:most]


def _plain_kind(kind: str) -> tuple[str, bool]:
    """Returns the type of a script without parameters and capitals, and returns whether it is a program."""
    plain = kind.partition(";")[0].strip().lower()
    is_other = plain == "style" or plain in RULES or plain.endswith("json")
    return plain, not is_other and _PROGRAM(plain) is not None


_known_kind = lru_cache(maxsize=64)(_plain_kind)


@lru_cache(maxsize=1 << 12)
def _is_nonce(key: str, text: str) -> bool:
    """Returns whether the value of an attribute is a nonce, once for all pages that have it."""
    return is_nonce(text, nonces_of(key))


def _read_program(text: str) -> tuple[tuple[Any, ...], str]:
    """Returns the values that are written in a program, and what is left of it without nonces."""
    values, rest, end = [], [], 0
    for start, after, value in read_literals(text):
        values.append(value)
        rest.append(text[end:start])
        end = after
    rest.append(text[end:])
    return tuple(values), without_nonces("".join(rest)).strip()


_short, _long = (lru_cache(maxsize=count)(_read_program) for _, count in (SHORT, LONG))


def _read_again(text: str) -> tuple[tuple[Any, ...], str]:
    """Returns the same, once for all pages that have the program."""
    read = _short if len(text) <= SHORT[0] else _long if len(text) <= LONG[0] else _read_program
    return read(text)
