"""Patterns of URLs: what is alike in those of one kind."""

import re

from dedup.page.urls import origin

_PARTS = re.compile(r"%[0-9a-f]{2}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-z]+", re.IGNORECASE)
_HEX = re.compile(r"[0-9a-f]{8,}", re.IGNORECASE)
_DIGITS = re.compile(r"[0-9]+")


def pattern(url: str) -> str:
    """A URL with ``*`` for what varies among URLs of its kind.

    What varies are the values of parameters, numbers, and ids (from 8 hexadecimal digits, or from 16 letters and
    digits).

    >>> pattern("http://a1.org/news/2026-11/id17;jsessionid=1F?page=2&back=/x/y#top")
    'http://a1.org/news/*-*/id*;jsessionid=*?page=*&back=*'
    >>> pattern("http://a.org/3f2a77b0/deadline/a%20b?7"), pattern("http://[")
    ('http://a.org/*/deadline/a%20b?*', 'http://[')
    """
    start = len(origin(url))
    path, mark, query = url[start:].partition("#")[0].partition("?")
    general = re.sub(r"=[^/;]*", "=*", path) + mark + re.sub(r"=[^&;]*", "=*", query)
    return url[:start] + _PARTS.sub(lambda part: _general(part[0]), general)


def _general(part: str) -> str:
    if part[0] == "%":  # an escape, as in %20
        return part
    if "-" in part or (_DIGITS.search(part) and (_HEX.fullmatch(part) or len(part) >= 16)):
        return "*"
    return _DIGITS.sub("*", part)
