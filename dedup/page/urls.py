"""URLs: the token that stands for an HREF or SRC, and the parts of an address that are shown or compared.

A URL token starts with a slash, which no word does.  It is the same on every mirror and in every version of a
page.  Its rules are in the contract of `dedup.page.html`.
"""

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, urljoin

from xxhash import xxh3_64_intdigest

from dedup.page.ids import MAX_URL, strip_ids, strip_named

#: An address in more folders than this is a trap.  Links are not resolved against it, since each link would
#: take time for every folder.
MAX_FOLDERS = 20
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_ASCII = "".join(map(chr, range(0x21, 0x7F)))
#: The address of a folder of HTTP in which nothing is stripped or quoted, and no part is empty.
_PLAIN_FOLDER = re.compile(
    r"https?://[\w.:-]+/(?:[\w!$%'()*+,~@=-][\w!$%'()*+,.~@=-]*/)*", re.ASCII
).fullmatch
_USER = re.compile(r"^([a-z][a-z0-9+.-]*://)[^/?#]*@", re.IGNORECASE)
#: The scheme and the host of a URL; the group is the host with its port.
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(?:[^/?#]*@)?([^/?#]*)", re.IGNORECASE | re.ASCII)
#: As ASP.NET puts session ids into paths.
_SESSION_PART = re.compile(r"/\([A-Za-z]\([0-9A-Za-z]{16,}\)\)")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def digest(text: str) -> int:
    """Returns 64 bits of XXH3, which are the same in every process."""
    return xxh3_64_intdigest(text.encode("utf-8", "replace"))


def url_tokens(value: str, base: str, folder: str) -> tuple[str, str] | None:
    """Returns the URL token of an attribute's value on a page at ``base``, and what `strip_ids` leaves of it; None if it is not kept.

    ``folder`` is that of the base.

    >>> url_tokens("../b.html;jsessionid=1F?x=1#c", "http://Example.org/a/i.html", "http://Example.org/a/")
    ('/b.html?x=1', '/b.html?x=1')
    >>> {url_tokens(value, f"http://example.org/{version}/a/i.html", f"http://example.org/{version}/a/")
    ...  for version in ("v1", "v2") for value in ("b.html", f"/{version}/a/b.html")}
    {('/b.html', '/b.html')}
    >>> url_tokens("https://other.org/?utm_source=a&q=1", "http://example.org/", "http://example.org/")
    ('//other.org/?q=1', '//other.org/?q=1')
    >>> [url_tokens(value, "http://example.org/", "http://example.org/") for value in ("#top", "mailto:a@b.c")]
    [None, None]
    """
    value = value.strip()
    if not value or value[0] == "#" or len(value) > MAX_URL:
        return None
    # All but a bare query resolve alike for every page of a folder, and are remembered for all of them.
    return _resolve(value, base if value[0] == "?" else folder)


def source_tokens(value: str, base: str, folder: str) -> tuple[str, str] | None:
    """Returns the same of what a page shows, such as an image: ids go from its query alone, since its path may be nothing else.

    >>> source_tokens("/img/9f86d081884c7d65.png?tok=4c7d659a2feaa0c5", "", "")[1]
    '/img/9f86d081884c7d65.png'
    """
    if (found := url_tokens(value, base, folder)) is None:
        return None
    path, mark, query = found[0].partition("?")
    stripped = strip_ids(mark + query) if mark else ""
    return found[0], (_SESSION_PART.sub("/*", path) if "/(" in path else path) + stripped


def folder(base: str) -> str:
    """Returns the address of a page without the last part of its path.

    >>> folder("http://example.org/a/b"), folder("http://example.org")
    ('http://example.org/a/', 'http://example.org')
    """
    return base[: base.rfind("/") + 1] if base.count("/") > 2 else base


def plain_folder(folder: str) -> tuple[bytes, bytes]:
    """Host, in lower case, and path of a folder's address against which plain URLs are easily resolved; else both empty.

    >>> plain_folder("http://Example.org/docs/a/"), plain_folder("http://example.org/a b/")
    ((b'example.org', b'/docs/a/'), (b'', b''))
    """
    if not _PLAIN_FOLDER(folder):
        return b"", b""
    own = _own(folder)
    return own.host.encode(), "/".join((*own.folders, "")).encode()


def strip_user(url: str) -> str:
    """Returns a URL without user and password.

    >>> strip_user("http://me:secret@example.org/@a"), strip_user("mailto:me@example.org")
    ('http://example.org/@a', 'mailto:me@example.org')
    """
    return _USER.sub(r"\1", url) if "@" in url else url


def origin(url: str) -> str:
    """Returns the scheme, user and host of a URL; empty if it has none.

    >>> origin("https://me@example.org:8000/a"), origin("/a")
    ('https://me@example.org:8000', '')
    """
    found = _ORIGIN.match(url)
    return found[0] if found else ""


def host(url: str) -> str:
    """Returns the host of a URL with its port, its ASCII letters in lower case; empty if it has none.

    >>> host("https://me@Example.org:8000/a"), host("/a")
    ('example.org:8000', '')
    """
    found = _ORIGIN.match(url)
    name = found[1] if found else ""
    return name.lower() if name.isascii() else name.translate(_LOWER)


@lru_cache(maxsize=1 << 14)
def _resolve(value: str, base: str) -> tuple[str, str] | None:
    """Returns the token of a value that is no empty one, and what `strip_ids` leaves of it; None if it is not kept."""
    if (found := _resolved(value, base)) is None:
        return None
    host, path = found
    own = _own(base)
    token = f"//{host}{path}" if host and host != own.host else _unshared(path, own)
    return token, strip_ids(token)


def _unshared(path: str, own: "_Own") -> str:
    """Returns a path without the folders that it shares with a page's own."""
    shared = 0
    folders = path.partition("?")[0].split("/")
    del folders[-1]
    for mine, its in zip(own.folders, folders, strict=False):
        if mine != its:
            break
        shared += len(its) + 1
    return path[shared - 1 :]


def _resolved(value: str, base: str) -> tuple[str, str] | None:
    """Host and path of any value; None if it is no URL of HTTP."""
    joined = join(base, value) or value  # such as http://[, which names no page, but is a feature of this one
    if scheme := _SCHEME.match(joined):
        if scheme[0].lower() not in {"http:", "https:"}:
            return None
        joined = joined[scheme.end() :]
    joined = "%20".join(strip_named(joined).split())
    if not joined.isascii():
        joined = quote(joined, safe=_ASCII, errors="backslashreplace")  # so that folding can't break it up
    return _split(joined)


class _Own(NamedTuple):
    """A page's own address."""

    host: str
    folders: list[str]


@lru_cache(maxsize=16)
def _own(base: str) -> _Own:
    host, path = _split(base.partition(":")[2] or base)
    return _Own(host, path.split("/")[:-1])


def _split(address: str) -> tuple[str, str]:
    """Returns the host, in lower case, and the path of an address without scheme, and returns the path starts with a slash."""
    if not address.startswith("//"):
        return "", address if address.startswith("/") else "/" + address
    end = min((at for at in (address.find("/", 2), address.find("?", 2)) if at > 0), default=len(address))
    path = address[end:]
    return address[2:end].lower(), path if path.startswith("/") else "/" + path


def usable_base(url: str) -> str:
    """Returns an address that links can be resolved against; "" for one that is too long or too deep.

    >>> usable_base("http://example.org/a/"), usable_base("http://example.org/" + "a/" * 50)
    ('http://example.org/a/', '')
    """
    return url if len(url) <= MAX_URL and url.count("/") <= MAX_FOLDERS + 3 else ""


def base_of(url: str, value: str) -> str:
    """Returns the address against which the links of a page at ``url`` are resolved if its base element has this value."""
    return usable_base(join(url, value)) or url


def join(base: str, value: str) -> str:
    """Returns the URL that a value names on a page at ``base``; "" if it names none."""
    try:
        return urljoin(base, value)
    except ValueError:  # such as http://[
        return ""
