"""Where kept pages are filed: one contract (`base`), in memory and in a file (`local`), in Redis."""

from typing import Any

from dedup.errors import SettingsError
from dedup.fingerprint.detector import Detector
from dedup.index.contract import ADDRESSES, Entry, Index, Verdict, redact

__all__ = ["Entry", "Index", "Verdict", "open_index"]


def open_index(address: str, detector: Detector, *, namespace: str = "dedup", **options: Any) -> Index:
    """The index at an address; ``namespace`` tells several in one Redis apart.

    ``memory:``, ``file:PATH``, ``redis://[user:password@]host[:port][/db]``, ``rediss://...`` (TLS) or
    ``unix:///path/to/socket``.  Options: ``scope``, ``expected_pages``, ``tables`` (see the settings).
    The store is reached at the first claim, or by ``await index.open()``.

    >>> import asyncio
    >>> async def twice():
    ...     detector = Detector(min_tokens=3)
    ...     index = open_index("memory:", detector)
    ...     for name, page in [("a", "<p>one and the same"), ("b", "<p>One and the SAME"), ("b", "<p>else")]:
    ...         verdict = await index.claim(name, f"http://{name}/", detector.fingerprint(page))
    ...         print(verdict.status, verdict.of, verdict.distance, verdict.reason)
    ...     await index.confirm("a")
    ...     await index.close()
    >>> asyncio.run(twice())
    new None None None
    duplicate http://a/ 0 None
    unjudged None None short
    """
    if not isinstance(address, str):
        raise SettingsError(f"INDEX is {address!r}; allowed: {ADDRESSES}")
    scheme, colon, rest = address.partition(":")
    known = scheme in {"memory", "file"} or (scheme in {"redis", "rediss", "unix"} and rest[:2] == "//")
    if not colon or not known:
        raise SettingsError(f"INDEX is {redact(address)!r}; allowed: {ADDRESSES}")
    if (
        not isinstance(namespace, str)
        or not namespace
        or not namespace.isprintable()
        or set(namespace) & set("{}")
    ):
        raise SettingsError(f"NAMESPACE is {namespace!r}; allowed: printable text without braces")
    if scheme in {"memory", "file"}:
        from dedup.index.local.index import LocalIndex

        if scheme == "memory" and rest:
            raise SettingsError(f"INDEX is {address!r}; 'memory:' takes no path, 'file:PATH' does")
        if scheme == "file" and not rest:
            raise SettingsError("INDEX is 'file:'; it needs a path, as in 'file:crawl.sqlite'")
        return LocalIndex(rest or None, detector, **options)
    from dedup.index.redis.index import RedisIndex

    return RedisIndex(address, namespace, detector, **options)
