"""Packs a fingerprint, and what else the verdict on its page needs, for another process."""

from operator import attrgetter

import msgspec
import numpy as np

from dedup.fingerprint.fingerprint import Called, Fingerprint, Own
from dedup.page.html import Page

_stored = attrgetter("simhash", "sketch", "tokens", "links", "reason", "digest", "bands", "markup")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


def pack(page: Page, made: Fingerprint) -> bytes:
    """Packs a page into about 8 bytes for each word.  The tokens themselves are packed of short pages only."""
    own = made.own and made.own.main.tobytes()
    words = [*page.tokens] if made.reason == "short" else ()
    return _encode((_stored(made), made.called.to_bytes(), own, words, page.canonical))


def unpack(octets: bytes) -> tuple[Page, Fingerprint]:
    """Returns what was packed."""
    (*first, bands, markup), called, own, words, canonical = _decode(octets)
    main = None if own is None else Own(np.frombuffer(own, np.uint64))
    values = *first, tuple(bands), markup, Called.from_bytes(called), main
    made = Fingerprint(*values)
    return Page(words, made.links, made.reason, canonical=canonical), made


def canonical_of(octets: bytes) -> str:
    """Returns the canonical URL of a page that was packed."""
    return str(_decode(octets)[-1])
