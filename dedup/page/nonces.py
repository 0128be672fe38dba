"""Nonces in data: what looks as if it were new whenever a page is served, and says nothing of it.

Ids of any kind are nonces.  So are numbers, times and codes whose keys speak of tokens, sessions, builds or times; but
other values of such keys are read: a conference has sessions, a game builds.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from dedup.page.ids import is_opaque

#: Characters of the longest nonce whose key says nothing of it; longer ones are data that is packed, such as an image.
MAX_NONCE = 160

#: Tells whether a value looks like a nonce; None: no value does.
Looks = Callable[[str], re.Match[str] | None] | None

#: Words of keys whose values are nonces if they are one word.
_NONCES = re.compile("csrf|etag|integrity|jwt|nonce|sess|wpnonce|xsrf").fullmatch
#: Words of keys whose values may be nonces.
_PASSING = re.compile(
    "build|checksum|cookie|digest|expires|expiry|generated|guid|hash|key|lastmod|modified|session|sid|signature|"
    "times?|timestamp|tokens?|trace|ts|updated|uuid|visitor"
).fullmatch
_KEY_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
#: A number, a time, a code.
_SHAPES = (
    r"[\d.]+|\d{4}-\d\d-\d\d[T ]\d\d:\d\d.{0,20}|\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d.{0,6}|"
    r"(?=\S{0,63}\d)(?=\S{0,63}[A-Za-z])\S{6,}|\S{16,}"
)
_CODE, _WORD = re.compile(_SHAPES).fullmatch, re.compile(rf"\S*|{_SHAPES}").fullmatch
#: In a program: a key and its value; and what may be an id.
_PAIR = re.compile(r"""\b([A-Za-z_]\w{1,63}+)["']?\s{0,9}[:=]\s{0,9}(?:"([^"\n]*)"|'([^'\n]*)'|(\d[\d.]*))""")
_ID = re.compile(r"[\w+-]{10,}={0,2}", re.ASCII)


def is_nonce(value: str, looks: Looks) -> bool:
    """Returns whether a value looks like a nonce, whatever its key, or by what `nonces_of` says of its key."""
    return _is_id(value) or (looks is not None and looks(value) is not None)


def _is_id(value: str) -> bool:
    return len(value) <= MAX_NONCE and is_opaque(value)


def nonces_of(key: str) -> Looks:
    """Returns what tells nonces among the values of a key.

    >>> [key for key in ("csrfToken", "build_id", "updatedAt", "candidate", "hashtags", "title") if nonces_of(key)]
    ['csrfToken', 'build_id', 'updatedAt']
    """
    return _nonces_of(key) if len(key) <= 64 else None  # longer ones are no names


@lru_cache(maxsize=1 << 12)
def _nonces_of(key: str) -> Looks:
    words = [word.lower() for word in _KEY_WORDS.findall(key)]
    return _WORD if any(map(_NONCES, words)) else _CODE if any(map(_PASSING, words)) else None


def without_nonces(program: str) -> str:
    """Returns a program without nonces, and with no more than one space between two words.

    >>> without_nonces("load('/x.js?v=9f86d081884c7d659a2f',  {time: 17, size: 9})")
    "load('/x.js?v=', {time, size: 9})"
    """
    program = _PAIR.sub(_without_value, program)
    return " ".join(_ID.sub(lambda found: "" if _is_id(found[0]) else found[0], program).split())


def _without_value(pair: re.Match[str]) -> str:
    value = next((group for group in pair.groups()[1:] if group is not None), "")
    looks = nonces_of(pair[1])
    return pair[1] if looks and looks(value) else pair[0]
