"""b-bit storage: signatures in one, two, four or eight bits a value (Li and König 2010).

Few bits of each value tell the same from different, less those that are alike by chance: once in 2^b.  That
is known, so it can be taken out of the estimate, and many short values say more than a few long ones.
"""

import numpy as np
import numpy.typing as npt

from dedup.errors import SettingsError
from dedup.fingerprint.shingles import mix

#: Bits of a value that fit an octet evenly.
BITS = (1, 2, 4, 8)


def pack(signature: npt.NDArray[np.unsignedinteger], bits: int) -> bytes:
    """``bits`` bits of each of r values: r * bits / 8 bytes, the first value in the lowest bits.  O(r).

    The bits are those of a value mixed with its place, not its own lowest ones: a value that stands in many
    places, as in the signature of a short page, is else alike by chance in all of them or in none.

    Raises `SettingsError` if ``bits`` is not one of `BITS` or the values don't fill whole bytes.

    >>> from dedup.fingerprint.signatures import signature
    >>> [len(pack(signature(np.arange(900, dtype=np.uint64), 128), bits)) for bits in BITS]
    [16, 32, 64, 128]
    """
    if bits not in BITS or len(signature) * bits % 8:
        raise SettingsError(
            f"{len(signature)} values of {bits!r} bits can't be packed; allowed: 1, 2, 4 or 8 bits, whole bytes"
        )
    places = mix(np.arange(1, len(signature) + 1, dtype=np.uint64))
    values = mix(signature.astype(np.uint64) ^ places) >> np.uint64(64 - bits)
    lanes = values.astype(np.uint8).reshape(-1, 8 // bits) << np.arange(0, 8, bits, dtype=np.uint8)
    octets: npt.NDArray[np.uint8] = np.bitwise_or.reduce(lanes, axis=1)
    return octets.tobytes()


def agreement(a: bytes, b: bytes, bits: int) -> float:
    """The share of values that are alike in two packed signatures, by chance or not.  O(r).

    >>> agreement(bytes([0b_01_10_00_11]), bytes([0b_01_11_00_11]), bits=2)
    0.75
    """
    differ = np.frombuffer(a, np.uint8) ^ np.frombuffer(b, np.uint8)
    lanes = differ[:, np.newaxis] >> np.arange(0, 8, bits, dtype=np.uint8) & np.uint8((1 << bits) - 1)
    return float((lanes == 0).mean())


def estimate(a: bytes, b: bytes, bits: int) -> float:
    """The resemblance R that two packed signatures speak for: (match - 2^-b) / (1 - 2^-b).  O(r).

    Li and König 2010, section 2, for sets that are small in the universe, as sets of 64-bit hashes are.
    Unbiased, so for pages that have nothing in common it is as often below 0 as above.  Its standard
    error for r selectors is sqrt(P (1 - P) / r) / (1 - 2^-b) with P = R + (1 - R) / 2^b.

    >>> from dedup.fingerprint.signatures import signature
    >>> a, b = (np.arange(start, start + 900, dtype=np.uint64) for start in (0, 100))  # resemblance .8
    >>> [round(estimate(pack(signature(a, 4096), b_), pack(signature(b, 4096), b_), b_), 2) for b_ in BITS]
    [0.8, 0.8, 0.8, 0.8]
    """
    chance = 2.0**-bits
    return (agreement(a, b, bits) - chance) / (1 - chance)
