"""Data in scripts -> tokens: what a page will show once a browser has run its scripts.

Pages that are drawn by scripts often carry what they show as JSON: in scripts of the types application/json and
application/ld+json, such as ``__NEXT_DATA__``, and in assignments like ``window.__INITIAL_STATE__ = {...}``.  The
strings and numbers in there tell such pages apart, although their visible words are the same.

What changes whenever a page is served says nothing, and is left out: values whose keys speak of tokens, sessions,
builds, times or hashes, and values that look like ids or times.  Nothing here raises; the work is bounded by the
size of a script, and what comes of it by `MAX_DATA`.

>>> shop = '{"product": {"name": "Brass lamp", "price": 12.50, "csrfToken": "x", "sku": "9f86d081884c7d659a2f"}}'
>>> read_data([("application/json", shop), ("", f"window.__STATE__ = {shop};"), ("", "let name = 'x'")])[:4]
('brass', 'lamp', '12', '50')
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any

from dedup.page.ids import is_opaque
from dedup.page.words import split_tokens

__all__ = ["MAX_DATA", "read_data", "read_json"]

#: Tokens of data that are looked at, in document order.
MAX_DATA = 4_000
#: Characters of a script, and of all scripts of a page; those beyond are not looked at.  A million take up to .5 s.
MAX_SCRIPT, MAX_SCRIPTS = 1_000_000, 2_000_000
#: Characters of one string that are looked at.
MAX_STRING = 20_000
#: Values within values; data that is nested more deeply is not looked at.
MAX_DEPTH = 100
TYPES = frozenset({"application/json", "application/ld+json"})

_ASSIGNED = re.compile(
    r"[;\s]*(?:(?:var|let|const)\s|(?:window|self|globalThis)(?:\.|\[[\"']))?(__\w+)(?:[\"']\])?\s*=\s*(?=[{\[])"
)
#: Where in a script the first assignment begins at the latest.
_NEAR = 80
#: Words of keys whose values are new whenever a page is served, or say nothing of what it shows.
_PASSING = frozenset(
    [
        "nonce",
        "csrf",
        "xsrf",
        "token",
        "tokens",
        "session",
        "sess",
        "sid",
        "build",
        "time",
        "times",
        "timestamp",
        "ts",
        "date",
        "dates",
        "datetime",
        "created",
        "updated",
        "modified",
        "lastmod",
        "generated",
        "expires",
        "expiry",
        "hash",
        "checksum",
        "digest",
        "etag",
        "integrity",
        "uuid",
        "guid",
        "signature",
        "trace",
        "visitor",
        "jwt",
        "cookie",
    ]
)
_KEY_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.{0,20}|\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d.{0,6}")
# Numbers stay as they are written: reading one of many digits takes quadratic time.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str, strict=False)


def read_data(
    scripts: Iterable[tuple[str, str]],
    url_token: Callable[[str], str | None] = lambda url: None,
) -> tuple[str, ...]:
    """The tokens of the data in a page's scripts, each of them given as its type and its text.

    ``url_token`` says which token stands for a string that is a URL; None: it is left out.
    """
    tokens: list[str] = []
    left = MAX_SCRIPTS
    for kind, text in scripts:
        if len(text) > min(MAX_SCRIPT, left):
            continue
        left -= len(text)
        if not kind and "__" not in text[:_NEAR]:
            continue  # as most are
        for data in _values(kind, text):
            tokens += _tokens(data, url_token, MAX_DATA - len(tokens))
            if len(tokens) >= MAX_DATA:
                return tuple(tokens[:MAX_DATA])
    return tuple(tokens)


def read_json(text: str, most: int) -> list[str] | None:
    """The tokens of a JSON document, more than ``most`` if it has more than that; None if it is not one.

    >>> read_json('{"lamp": ["Brass", 12], "session": "x"}', 10), read_json("{lamp}", 10)
    (['brass', '12'], None)
    """
    try:
        data = _DECODER.decode(text.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return None
    return _tokens(data, lambda url: None, most)


def _values(kind: str, text: str) -> Iterator[Any]:
    """The JSON values of a script."""
    with suppress(ValueError, RecursionError):
        if kind.partition(";")[0].strip().lower() in TYPES:
            yield _DECODER.raw_decode(text.lstrip())[0]
        elif "__" in text[:_NEAR]:
            end = 0
            while found := _ASSIGNED.match(text, end):
                data, end = _DECODER.raw_decode(text, found.end())
                yield data


def _tokens(data: Any, url_token: Callable[[str], str | None], most: int) -> list[str]:
    """The tokens of a JSON value, in document order; none if it is nested too deeply, or not much over ``most``."""
    tokens: list[str] = []
    rest = [(data, 0)]
    while rest and len(tokens) <= most:
        value, depth = rest.pop()
        if depth > MAX_DEPTH:
            return []
        if isinstance(value, dict):
            rest += [(value[key], depth + 1) for key in reversed(value) if not is_passing(key)]
        elif isinstance(value, list):
            rest += [(one, depth + 1) for one in reversed(value)]
        elif isinstance(value, str):
            if value.startswith(("/", "http://", "https://")) and not any(map(str.isspace, value)):
                token = url_token(value)
                tokens += split_tokens(token) if token else ()
            elif not is_opaque(value) and not _TIME.fullmatch(value):
                tokens += split_tokens(value[:MAX_STRING].replace("/", " "))
    return tokens


def is_passing(key: str) -> bool:
    """Whether the value of a key is likely to be new whenever a page is served.

    >>> [key for key in ("csrfToken", "build_id", "updatedAt", "candidate", "hashtags", "title") if is_passing(key)]
    ['csrfToken', 'build_id', 'updatedAt']
    """
    return len(key) <= 64 and _is_passing(key)  # longer ones are no names


@lru_cache(maxsize=1 << 12)
def _is_passing(key: str) -> bool:
    return not _PASSING.isdisjoint(word.lower() for word in _KEY_WORDS.findall(key))
