"""Packs a fingerprint, and what else the verdict on its page needs, for another process."""

import msgspec
import numpy as np

from dedup.fingerprint.fingerprint import Called, Fingerprint, Own
from dedup.page.html import Page

__all__ = ["pack", "unpack"]

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


def pack(page: Page, made: Fingerprint) -> bytes:
    """Packs a page into about 8 bytes for each word.  The tokens themselves are packed of short pages only."""
    own = made.own
    return _encode(
        (
            (
                made.simhash,
                made.sketch,
                made.tokens,
                made.links,
                made.reason,
                made.digest,
                made.bands,
                made.view,
            ),
            (made.called.to_bytes(), made.said),
            None if own is None else own.main.tobytes(),
            [*page.tokens] if made.reason == "short" else (),
            page.canonical,
        )
    )


def unpack(octets: bytes) -> tuple[Page, Fingerprint]:
    """Returns what was packed."""
    first, (called, said), own, tokens, canonical = _decode(octets)
    simhash, sketch, count, links, reason, digest, bands, view = first
    made = Fingerprint(
        simhash,
        sketch,
        count,
        links,
        reason,
        digest,
        tuple(bands),
        view=view,
        called=Called.from_bytes(called),
        said=said,
        own=None if own is None else Own(np.frombuffer(own, np.uint64)),
    )
    return Page(list(tokens), links, reason, canonical=canonical), made
