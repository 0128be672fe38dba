"""The fingerprint of a page as bytes, with what its verdict needs besides: made in one process, read in another."""

import msgspec
import numpy as np
import numpy.typing as npt

from dedup.fingerprint.fingerprint import Called, Fingerprint, Own
from dedup.page.html import Page

__all__ = ["pack", "unpack"]

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


def pack(page: Page, made: Fingerprint) -> bytes:
    """1.5 kB of a page that can be judged.  Of its tokens, those of a short page go with it."""
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
            own
            and (
                own.ids.tobytes(),
                _bits(own.filled),
                _bits(own.main),
                _bits(own.view),
                own.shingles,
                own.has_data,
            ),
            [*page.tokens] if made.reason == "short" else (),
            page.canonical,
        )
    )


def unpack(octets: bytes) -> tuple[Page, Fingerprint]:
    """What was packed."""
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
        own=_own(*own) if own else None,
    )
    return Page(list(tokens), links, reason, canonical=canonical), made


def _bits(mask: npt.NDArray[np.bool_]) -> bytes:
    return np.packbits(mask).tobytes()


def _own(ids: bytes, filled: bytes, main: bytes, view: bytes, shingles: int, has_data: bool) -> Own:
    numbers = np.frombuffer(ids, np.uint16)

    def mask(bits: bytes) -> npt.NDArray[np.bool_]:
        return np.unpackbits(np.frombuffer(bits, np.uint8), count=len(numbers)).astype(np.bool_)

    return Own(numbers, mask(filled), mask(main), mask(view), shingles, has_data)
