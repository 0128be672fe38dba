"""URLs: the token that stands for an HREF or SRC, and the parts of an address that are shown or compared.

A URL token starts with a slash, which no word does.  It is the same on every mirror and in every version of a
page.  Its rules are in the contract of `dedup.page.html`.
"""

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, urljoin

__all__ = [
    "MAX_URL",
    "ORIGIN",
    "base_of",
    "folder",
    "host",
    "is_opaque",
    "join",
    "plain_folder",
    "strip_ids",
    "strip_session",
    "strip_user",
    "url_token",
    "url_tokens",
    "usable_base",
]

#: Longer URLs are dropped; browsers and servers have refused them since MSIE (2,083).
MAX_URL = 2_000
#: An address in more folders than this is a trap.  Links are not resolved against it, since each link would
#: take time for every folder.
MAX_FOLDERS = 20
_BEFORE = r"(?:;|(?<=[?&]))(?=[acfgjmopsuz])"  # a glance at the first letter, for values full of semicolons
#: Parameters that go whatever their value: campaigns, and session ids of a name that nothing else has.
_SESSION = re.compile(
    _BEFORE + r"(?:jsessionid|phpsessid|aspsessionid\w*|asp\.net_sessionid|cfid(?=[^&;?#]*[&;]cftoken=)|"
    r"cftoken|zenid|oscsid|utm_\w+|gclid|fbclid|msclkid)=[^&;?#]*&?",
    re.IGNORECASE,
)
#: Parameters that may name a story: they go if their values look like ids, short ones included.
_MAYBE_SESSION = re.compile(
    _BEFORE + r"(?:sessionid|session_id|sessid|sid|cfid)=(?:(?=[a-z]*\d)(?=\d*[a-z])[0-9a-z]{8,}|\d{10,}|"
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:&|$|(?=[;?#]))",
    re.IGNORECASE,
)
#: Characters of the shortest value that looks like an id.
SHORTEST_ID = 10
#: A value that looks like nothing but an id: a long number, letters and digits mixed, a UUID.
_ID = re.compile(
    r"(?:\([A-Za-z]\()?"  # as ASP.NET puts session ids into paths
    r"(?:\d{10,}|(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[0-9A-Za-z]{16,}|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})"
    r"(?:\)\)|(?:=|%3D){1,2})?"
)
#: The same in base64, unless a part of it is a word or a number: then people have written it.
_BASE64 = re.compile(r"(?=[^A-Z]*[A-Z])(?=[^a-z]*[a-z])(?=\D*\d)[0-9A-Za-z_+-]{20,}(?:=|%3D){0,2}")
_WRITTEN = re.compile(r"(?<![^_-])(?:[A-Z]?[a-z]{3,}|[A-Z]{3,}|\d+)(?![^_-])")
_MAY_BE_OPAQUE = re.compile(r"\d{10}|[\w+-]{16}", re.ASCII)
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_ASCII = "".join(map(chr, range(0x21, 0x7F)))
_PART = r"[\w!$%'()*+,~@=:-][\w!$%'()*+,.~@=:-]*"
#: Host, steps up, path and query of a URL of HTTP, or of a part of one, without characters that are stripped or quoted,
#: and without empty parts of a path; and the address of a folder likewise.
_PLAIN = re.compile(
    rf"(?:https?://([\w.-]+(?::\d+)?)(?=/))?((?:\.\./)*)(/?(?:{_PART}/)*(?:{_PART})?)"
    r"(\?[\w!$%'()*+,.~@/=:;?&-]*)?(?:#.*)?",
    re.ASCII | re.DOTALL,
).fullmatch
_PLAIN_FOLDER = re.compile(
    r"https?://[\w.:-]+/(?:[\w!$%'()*+,~@=-][\w!$%'()*+,.~@=-]*/)*", re.ASCII
).fullmatch
_NO_PARAMETER = re.compile(r"[^?;&]*").fullmatch
_NOTHING_MORE = re.compile(r"[^?;&#]*").fullmatch
_USER = re.compile(r"^([a-z][a-z0-9+.-]*://)[^/?#]*@", re.IGNORECASE)
#: The scheme and the host of a URL; the group is the host with its port.
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(?:[^/?#]*@)?([^/?#]*)", re.IGNORECASE | re.ASCII)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def url_token(value: str, base: str) -> str | None:
    """The URL token of an attribute's value on a page at ``base``; None if it is not kept.

    >>> url_token("../b.html;jsessionid=1F?x=1#c", "http://Example.org/a/i.html")
    '/b.html?x=1'
    >>> {url_token(value, f"http://example.org/{version}/a/i.html")
    ...  for version in ("v1", "v2") for value in ("b.html", f"/{version}/a/b.html")}
    {'/b.html'}
    >>> url_token("https://other.org/?utm_source=a&q=1", "http://example.org/")
    '//other.org/?q=1'
    >>> url_token("#top", "http://example.org/"), url_token("mailto:a@b.c", "http://example.org/")
    (None, None)
    """
    found = url_tokens(value, base, folder(base))
    return found and found[0]


def url_tokens(value: str, base: str, folder: str) -> tuple[str, str] | None:
    """The same token, and what `strip_ids` leaves of it; ``folder`` is that of the base."""
    value = value.strip()
    if not value or value[0] == "#" or len(value) > MAX_URL:
        return None
    # All but a bare query resolve alike for every page of a folder, and are remembered for all of them.
    return _resolve(value, base if value[0] == "?" else folder)


def folder(base: str) -> str:
    """The address of a page without the last part of its path.

    >>> folder("http://example.org/a/b"), folder("http://example.org")
    ('http://example.org/a/', 'http://example.org')
    """
    return base[: base.rfind("/") + 1] if base.count("/") > 2 else base


def plain_folder(folder: str) -> tuple[bytes, bytes]:
    """Host, in lower case, and path of a folder's address against which plain URLs are easily resolved; else both empty.

    >>> plain_folder("http://Example.org/docs/a/"), plain_folder("http://example.org/a b/")
    ((b'example.org', b'/docs/a/'), (b'', b''))
    """
    own = _own(folder)
    return (own.host.encode(), "/".join((*own.folders, "")).encode()) if own.is_plain else (b"", b"")


def strip_session(url: str) -> str:
    """A URL without session ids, campaign parameters and fragment.

    >>> strip_session("http://example.org/a;jsessionid=1F?sid=9f86d081&page=3#top")
    'http://example.org/a?page=3'
    >>> strip_session("http://example.org/story?sid=17")
    'http://example.org/story?sid=17'
    """
    if _NOTHING_MORE(url):
        return url
    return _MAYBE_SESSION.sub("", _strip_named(url)).rstrip("?&")


def _strip_named(url: str) -> str:
    return _SESSION.sub("", url.partition("#")[0]).rstrip("?&")


def is_opaque(value: str) -> bool:
    """Whether a value looks like nothing but an id, such as that of a session.

    >>> ids = "9f86d081884c7d65", "1763767000123", "9f86d081-884c-7d65-9a2f-eaa0c55ad015", "aGVsbG8gd29ybGQ-x_4kQ"
    >>> [is_opaque(value) for value in ids]
    [True, True, True, True]
    >>> [value for value in ("17", "storm-2-0-released-today", "Release_Notes_For_Storm_2") if is_opaque(value)]
    []
    """
    if not SHORTEST_ID <= len(value) <= MAX_URL:
        return False
    return bool(_ID.fullmatch(value) or (_BASE64.fullmatch(value) and not _WRITTEN.search(value)))


def strip_ids(token: str) -> str:
    """A URL token without what looks like an id: parameters are left out, a part of its path becomes a star.

    >>> strip_ids("/s/9f86d081884c7d65/a.html?tok=4c7d659a2feaa0c5&page=2"), strip_ids("/b.html?id=17")
    ('/s/*/a.html?page=2', '/b.html?id=17')
    """
    if not _NO_PARAMETER(token):
        token = _MAYBE_SESSION.sub("", token).rstrip("?&")
    if not _MAY_BE_OPAQUE.search(token):
        return token
    path, mark, query = token.partition("?")
    path = "/".join(map(_strip_part, path.split("/")))
    query = "&".join(part for part in query.split("&") if not is_opaque(part.partition("=")[2] or part))
    return path + mark * bool(query) + query


def _strip_part(part: str) -> str:
    """A part of a path and its parameters, which semicolons divide."""
    if len(part) < SHORTEST_ID:
        return part
    name, *parameters = part.split(";")
    kept = ["*" if is_opaque(name) else name]
    kept += (each for each in parameters if not is_opaque(each.partition("=")[2] or each))
    return ";".join(kept)


def strip_user(url: str) -> str:
    """A URL without user and password.

    >>> strip_user("http://me:secret@example.org/@a"), strip_user("mailto:me@example.org")
    ('http://example.org/@a', 'mailto:me@example.org')
    """
    return _USER.sub(r"\1", url) if "@" in url else url


def host(url: str) -> str:
    """The host of a URL with its port, its ASCII letters in lower case; empty if it has none.

    evidence.lua reads the same.

    >>> host("https://me@Example.org:8000/a"), host("/a")
    ('example.org:8000', '')
    """
    origin = ORIGIN.match(url)
    name = origin[1] if origin else ""
    return name.lower() if name.isascii() else name.translate(_LOWER)


@lru_cache(maxsize=1 << 14)
def _resolve(value: str, base: str) -> tuple[str, str] | None:
    if (token := _plain(value, base)) is None:
        if (found := _resolved(value, base)) is None:
            return None
        host, path = found
        own = _own(base)
        token = f"//{host}{path}" if host and host != own.host else _unshared(path, own)
    return token, strip_ids(token)


def _unshared(path: str, own: "_Own") -> str:
    """A path without the folders that it shares with a page's own."""
    shared = 0
    folders = path.partition("?")[0].split("/")
    del folders[-1]
    for mine, its in zip(own.folders, folders, strict=False):
        if mine != its:
            break
        shared += len(its) + 1
    return path[shared - 1 :]


def _plain(value: str, base: str) -> str | None:
    """The token of a value that is easily resolved, as most are; None of any other."""
    own = _own(base)
    if not own.is_plain or not (parts := _PLAIN(value)):
        return None
    host, steps, path, query = parts.groups("")
    if query and (query[-1] in "?&" or _SESSION.search(query)):
        return None
    if path[:1] == "/":
        if steps:
            return None
        if host and host.lower() != own.host:
            return f"//{host.lower()}{path}{query}"
        return _unshared(path + query, own)
    if not path or ":" in path:
        return None
    if steps:
        left = max(1, len(own.folders) - len(steps) // 3)
        if left < len(own.folders) and path.startswith(own.folders[left] + "/"):  # back into the page's own
            return _unshared("/".join((*own.folders[:left], path + query)), own)
    return f"/{path}{query}"


def _resolved(value: str, base: str) -> tuple[str, str] | None:
    """Host and path of any value; None if it is no URL of HTTP."""
    joined = join(base, value)
    if scheme := _SCHEME.match(joined):
        if scheme[0].lower() not in {"http:", "https:"}:
            return None
        joined = joined[scheme.end() :]
    joined = "%20".join(_strip_named(joined).split())
    if not joined.isascii():
        joined = quote(joined, safe=_ASCII)  # so that folding can't break it up
    return _split(joined)


class _Own(NamedTuple):
    """A page's own address."""

    host: str
    folders: list[str]
    is_plain: (
        bool  #: whether it is one of HTTP, of which nothing is stripped or quoted, and ends with a slash
    )


@lru_cache(maxsize=16)
def _own(base: str) -> _Own:
    host, path = _split(base.partition(":")[2] or base)
    return _Own(host, path.split("/")[:-1], _PLAIN_FOLDER(base) is not None)


def _split(address: str) -> tuple[str, str]:
    """Host, in lower case, and path of an address without scheme; the path starts with a slash."""
    if not address.startswith("//"):
        return "", address if address.startswith("/") else "/" + address
    end = min((at for at in (address.find("/", 2), address.find("?", 2)) if at > 0), default=len(address))
    path = address[end:]
    return address[2:end].lower(), path if path.startswith("/") else "/" + path


def usable_base(url: str) -> str:
    """An address that links can be resolved against; "" for one that is too long or too deep.

    >>> usable_base("http://example.org/a/"), usable_base("http://example.org/" + "a/" * 50)
    ('http://example.org/a/', '')
    """
    return url if len(url) <= MAX_URL and url.count("/") <= MAX_FOLDERS + 3 else ""


def base_of(url: str, value: str) -> str:
    """The address against which the links of a page at ``url`` are resolved if its base element has this value."""
    return usable_base(join(url, value)) or url


def join(base: str, value: str) -> str:
    """The URL that a value names on a page at ``base``; the value itself if it can't be resolved."""
    try:
        return urljoin(base, value)
    except ValueError:  # such as http://[, which names no page, but is a feature of this one
        return value
