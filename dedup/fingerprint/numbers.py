"""Tokens -> the numbers of a fingerprint: its simhash, and the sample of its shingles.

They are made in numpy, or, for the features of a crawl, by what is compiled, if that is installed.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from dedup.compiled import fast
from dedup.fingerprint.features import Features
from dedup.fingerprint.shingles import Hashes, hash_octets
from dedup.fingerprint.sketch import EMPTY, Sketcher
from dedup.page.tokens import Ranges, Tokens, each_of, join
from dedup.page.words import is_url

__all__ = ["IN_MAIN", "IN_VIEW", "Maker", "Numbers"]

#: Marks of shingles: they are outside marked chrome; and the same, or there is too little outside.
IN_VIEW, IN_MAIN = 1, 2
Bools = npt.NDArray[np.bool_]


class Numbers(NamedTuple):
    """The numbers of a page's tokens, and of the data in its scripts."""

    words: int
    left: int  #: words outside marked chrome
    simhash: int | None  #: None for a page without words
    different: int  #: different shingles
    sketch: bytes
    ids: npt.NDArray[np.uint16]  #: 16 bits of each slot's shingle, shape (slots,)
    filled: Bools  #: whether a slot has one, shape (slots,)
    main: Bools  #: whether it is outside marked chrome, if enough is; shape (slots,)
    view: Bools  #: whether it is outside marked chrome, shape (slots,)


class Maker(NamedTuple):
    """Makes numbers by these settings."""

    features: Features
    sketcher: Sketcher
    keep_urls: bool
    size: int  #: tokens per shingle
    least_words: int  #: a page of fewer words outside marked chrome is its own main view
    seed: int  #: of the hashes of tokens

    def make(self, tokens: Sequence[str], data: Sequence[str], chrome: Ranges) -> Numbers:
        """The numbers of tokens, of which some are in marked chrome, and of data.  O(n log n)."""
        if fast and type(self.features) is Features:
            octets, more = join(tokens), join(data)
            if _can_split(octets, tokens) and _can_split(more, data):
                return self.make_fast(octets, len(tokens), more, len(data), chrome)
        return self.make_in_numpy(tokens, data, chrome)

    def make_fast(self, octets: bytes, count: int, data: bytes, more: int, chrome: Ranges) -> Numbers:
        """The same, compiled, for the features of a crawl, of tokens that are joined by NULs.  O(n)."""
        assert fast
        slots = self.sketcher.slots
        words, left, simhash, different, sketch, ids, flags = fast.numbers(
            *(octets, count, data, more, chrome, self.keep_urls, self.size, self.least_words),
            *(slots, self.sketcher.bits, self.sketcher.key, self.seed, xxhash.xxh3_64_intdigest),
        )
        filled, main, view = np.frombuffer(flags, np.bool_).reshape(3, slots)
        own = np.frombuffer(ids, np.uint16)
        return Numbers(words, left, simhash if words else None, different, sketch, own, filled, main, view)

    def make_in_numpy(self, tokens: Sequence[str], data: Sequence[str], chrome: Ranges) -> Numbers:
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
            more = self.shingles(data)
            shingles = np.concatenate((shingles, more))
            marks = np.concatenate((marks, np.full(len(more), IN_VIEW | IN_MAIN, np.uint8)))
        least, marked, different = self.sketcher.sample(shingles, marks[: len(shingles)])
        return Numbers(
            len(words),
            left,
            self.features.simhash(hashes, words),
            different,
            self.sketcher.pack(least),
            (least >> np.uint64(32)).astype(np.uint16),
            least != EMPTY,
            marked & IN_MAIN != 0,
            marked & IN_VIEW != 0,
        )

    def shingles(self, tokens: Sequence[str]) -> Hashes:
        """The shingles of tokens that are sketched: uint64, shape (n,)."""
        if not tokens:
            return np.empty(0, np.uint64)
        hashes, is_word = self.hash(tokens)
        return self.features.shingles(hashes, hashes[is_word], self.size)

    def hash(self, tokens: Sequence[str]) -> tuple[Hashes, Bools]:
        """Hashes of all tokens, and which of them are words."""
        hashes = hash_octets(each_of(tokens), self.seed)
        if not self.keep_urls:
            return hashes, np.ones(len(tokens), np.bool_)
        octets = join(tokens)
        if not tokens or not _can_split(octets, tokens):
            return hashes, np.array([not is_url(token) for token in tokens], np.bool_)
        around = np.frombuffer(b"\0%b\0" % octets, np.uint8)
        is_word: Bools = around[np.flatnonzero(around == 0)[:-1] + 1] != ord("/")
        return hashes, is_word


def _can_split(octets: bytes, tokens: Sequence[str]) -> bool:
    """Whether tokens that were joined by NULs can be told apart: none of them has a NUL in it."""
    return isinstance(tokens, Tokens) or octets.count(0) == max(0, len(tokens) - 1)
