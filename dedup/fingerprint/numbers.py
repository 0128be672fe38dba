"""Tokens -> the numbers of a fingerprint: its simhash, and the sample of its shingles.

They are made in numpy, or, for features as they are by default, by what is compiled, if that is installed.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.features import Features
from dedup.fingerprint.shingles import Hashes, hash_tokens, memory_of
from dedup.fingerprint.sketch import Sketcher
from dedup.page.words import is_url

try:
    import shingleback_fast as _fast
except ImportError:  # nothing but time depends on it
    _fast = None

__all__ = ["IN_MAIN", "IN_VIEW", "Maker", "Numbers"]

#: Marks of shingles: they are outside marked chrome; and the same, or there is too little outside.
IN_VIEW, IN_MAIN = 1, 2
#: The version of what is compiled that makes the same numbers as this module.
FAST_VERSION = 2
if _fast is not None and FAST_VERSION != _fast.VERSION:
    _fast = None

_DEFAULT = Features()
Ranges = tuple[tuple[int, int], ...]


class Numbers(NamedTuple):
    """The numbers of a page's tokens, and of the data in its scripts."""

    words: int
    left: int  #: words outside marked chrome
    simhash: int | None  #: None for a page without words
    least: Hashes  #: the least value of each slot, shape (slots,)
    marked: npt.NDArray[np.uint8]  #: how its shingle is marked, shape (slots,)
    different: int  #: different shingles


class Maker(NamedTuple):
    """Makes numbers by these settings."""

    features: Features
    sketcher: Sketcher
    keep_urls: bool
    size: int  #: tokens per shingle
    least_words: int  #: a page of fewer words outside marked chrome is its own main view
    seed: int  #: of the hashes of tokens

    def make(self, tokens: list[str], data: Sequence[str], chrome: Ranges) -> Numbers:
        """The numbers of tokens, of which some are in marked chrome, and of data.  O(n log n)."""
        features = self.features
        plain = (features.simhash_size, features.simhash_urls, features.weights, features.sketch_urls)
        default = (_DEFAULT.simhash_size, _DEFAULT.simhash_urls, _DEFAULT.weights, _DEFAULT.sketch_urls)
        return (self.make_fast if _fast and plain == default else self.make_in_numpy)(tokens, data, chrome)

    def make_fast(self, tokens: list[str], data: Sequence[str], chrome: Ranges) -> Numbers:
        """The same, compiled, for features as they are by default.  O(n)."""
        known, slots, key = memory_of(self.seed), self.sketcher.slots, self.sketcher.key
        words, left, simhash, least, marked, different = _fast.numbers(
            tokens, list(data), chrome, known, self.keep_urls, self.size, self.least_words, slots, key
        )
        return Numbers(
            words,
            left,
            simhash if words else None,
            np.frombuffer(least, np.uint64),
            np.frombuffer(marked, np.uint8),
            different,
        )

    def make_in_numpy(self, tokens: list[str], data: Sequence[str], chrome: Ranges) -> Numbers:
        """The same, for all features."""
        hashes, is_word = self.hash(tokens)
        words = hashes[is_word]
        outside = np.ones(len(tokens), np.bool_)
        for start, end in chrome:
            outside[start:end] = False
        left = int(np.count_nonzero(outside & is_word))
        marks = self.features.within(outside, is_word, self.size) * np.uint8(IN_VIEW | IN_MAIN)
        if left < self.least_words:
            marks |= np.uint8(IN_MAIN)
        shingles = self.features.shingles(hashes, words, self.size)
        if data:
            more = self.shingles(list(data))
            shingles = np.concatenate((shingles, more))
            marks = np.concatenate((marks, np.full(len(more), IN_VIEW | IN_MAIN, np.uint8)))
        simhash = self.features.simhash(hashes, words)
        return Numbers(len(words), left, simhash, *self.sketcher.sample(shingles, marks[: len(shingles)]))

    def shingles(self, tokens: list[str]) -> Hashes:
        """The shingles of tokens that are sketched: uint64, shape (n,)."""
        if not tokens:
            return np.empty(0, np.uint64)
        hashes, is_word = self.hash(tokens)
        return self.features.shingles(hashes, hashes[is_word], self.size)

    def hash(self, tokens: list[str]) -> tuple[Hashes, npt.NDArray[np.bool_]]:
        """Hashes of all tokens, and which of them are words."""
        hashes = hash_tokens(tokens, self.seed)
        if not self.keep_urls:
            return hashes, np.ones(len(tokens), np.bool_)
        octets = b"\0" + "\0".join(tokens).encode()
        if (
            octets.count(0) != len(tokens) or octets[-1] == 0
        ):  # a token has a NUL in it, or the last one is empty
            return hashes, np.array([not is_url(token) for token in tokens], np.bool_)
        each = np.frombuffer(octets, np.uint8)
        is_word: npt.NDArray[np.bool_] = each[np.flatnonzero(each == 0) + 1] != ord("/")
        return hashes, is_word
