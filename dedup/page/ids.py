"""Ids in URLs: what of a URL says nothing of its page, such as sessions, campaigns, and values that are nothing but ids."""

import re

#: Longer URLs are dropped; browsers and servers have refused them since MSIE (2,083).
MAX_URL = 2_000
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
_NO_PARAMETER = re.compile(r"[^?;&]*").fullmatch
_NOTHING_MORE = re.compile(r"[^?;&#]*").fullmatch


def strip_session(url: str) -> str:
    """Returns a URL without session ids, campaign parameters and fragment.

    >>> strip_session("http://example.org/a;jsessionid=1F?sid=9f86d081&page=3#top")
    'http://example.org/a?page=3'
    >>> strip_session("http://example.org/story?sid=17")
    'http://example.org/story?sid=17'
    """
    if _NOTHING_MORE(url):
        return url
    return _MAYBE_SESSION.sub("", strip_named(url)).rstrip("?&")


def have_one_address(url: str, other: str) -> bool:
    """Returns whether two URLs differ in a session or a campaign alone.

    >>> have_one_address("http://a.org/view?id=7", "http://a.org/view?id=7&utm_source=mail#top")
    True
    """
    return strip_session(url) == strip_session(other)


def strip_named(url: str) -> str:
    """Returns a URL without fragment, and without the parameters that go whatever their value."""
    return _SESSION.sub("", url.partition("#")[0]).rstrip("?&")


def is_opaque(value: str) -> bool:
    """Returns whether a value looks like nothing but an id, such as that of a session.

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
    """Returns a URL token without what looks like an id: parameters are left out, a part of its path becomes a star.

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
    """Returns a part of a path and its parameters, which semicolons divide."""
    if len(part) < SHORTEST_ID:
        return part
    name, *parameters = part.split(";")
    kept = ["*" if is_opaque(name) else name]
    kept += (each for each in parameters if not is_opaque(each.partition("=")[2] or each))
    return ";".join(kept)
