"""Which of the pages that say the same is preferred: for archives, and for the drop log of a crawl.

>>> prefer = preference("https")
>>> max(["http://a.org/", "https://a.org/lamp", "https://a.org/"], key=lambda url: prefer(url, "", 0))
'https://a.org/lamp'
"""

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from math import isnan

from dedup.errors import DedupError, SettingsError
from dedup.page.ids import strip_session
from dedup.page.urls import strip_user

#: Gets the URL of a page, the canonical URL that it names or "", and how much it says; the greater, the better.
Preference = Callable[[str, str, float], float]

#: What may be preferred, beside ``MODULE:FUNCTION``, a function of URLs that gives numbers.
PREFERENCES: dict[str, Preference] = {
    "canonical": lambda url, canonical, size: (
        0 if not canonical else 1 if plain(canonical) == plain(url) else -1
    ),
    "https": lambda url, canonical, size: url[:6].lower() == "https:",
    "shortest": lambda url, canonical, size: -len(url),
    "longest": lambda url, canonical, size: size,
}


def is_preference(which: str) -> bool:
    """Whether this is a word for a preference, or names a function."""
    return which in PREFERENCES or ":" in which


@lru_cache(maxsize=16)
def preference(which: str) -> Preference:
    """The preference of that name.  Raises `SettingsError` without one, and the preference if its function fails."""
    if found := PREFERENCES.get(which):
        return found
    module, mark, name = which.partition(":")
    allowed = f"{', '.join(PREFERENCES)}, or MODULE:FUNCTION"
    if not mark:
        raise SettingsError(name="prefer", value=which, allowed=allowed)
    try:
        function = getattr(import_module(module), name)
    except Exception as error:  # noqa: BLE001 (whatever a module does when it is imported)
        raise SettingsError(
            f"{which!r} names no function that can be imported: {type(error).__name__}: {error}; allowed: {allowed}"
        ) from None

    def prefer(url: str, canonical: str, size: float) -> float:
        try:
            found = float(function(url))
        except Exception as error:  # noqa: BLE001 (a function of the user)
            raise DedupError(
                f"{which} failed on {strip_user(url)!a}: {type(error).__name__}: {error}"
            ) from None
        if isnan(found):
            raise DedupError(f"{which} gave no number for {strip_user(url)!a}")
        return found

    return prefer


def plain(url: str) -> str:
    """A URL without what doesn't tell pages apart: scheme, user, session, fragment, a slash at the end.

    >>> plain("https://me@A.org/lamp/?PHPSESSID=1F#top"), plain("http://a.org/lamp")
    ('a.org/lamp', 'a.org/lamp')
    """
    host, slash, rest = strip_session(strip_user(url)).partition("://")[2].partition("/")
    return f"{host.lower()}{slash}{rest}".rstrip("/")
