"""Tokens -> the numbers of a fingerprint: its simhash, and its shingles.

They are made in numpy; for the features of a crawl by the compiled part, where there is one.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from dedup.compiled import fast
from dedup.fingerprint.features import Features
from dedup.fingerprint.shingles import Hashes, ascending, hash_octets
from dedup.fingerprint.sketch import Sketcher
from dedup.page.tokens import Ranges, Tokens, each_of, join
from dedup.page.words import is_url

Bools = npt.NDArray[np.bool_]


class Numbers(NamedTuple):
    """The numbers of a page's tokens, and of the data in its scripts."""

    words: int
    left: int  #: words outside marked chrome
    simhash: int | None  #: None for a page without words
    sketch: bytes  #: of all shingles
    #: The values of those outside marked chrome, or of all if too little is, by `Sketcher.values`: ascending, shape (n,).
    main: Hashes


class Maker(NamedTuple):
    """Makes numbers by these settings."""

    features: Features
    sketcher: Sketcher
    keep_urls: bool
    size: int  #: tokens per shingle
    least_words: int  #: a page of fewer words outside marked chrome is its own main view
    seed: int  #: of the hashes of tokens

    def make(self, tokens: Sequence[str], data: Sequence[str], chrome: Ranges) -> Numbers:
        """Returns the numbers of tokens, some of them in marked chrome, and of data.  O(n log n)."""
        octets, more = join(tokens), join(data)
        is_usual = type(self.features) is Features and _can_split(octets, tokens) and _can_split(more, data)
        if not fast or not is_usual:
            return self.make_in_numpy(tokens, data, chrome)
        kind = self.sketcher
        words, left, simhash, sketch, main = fast.numbers(
            *(octets, len(tokens), more, len(data), chrome, self.keep_urls, self.size),
            *(kind.key, kind.slots, kind.bits, self.least_words, self.seed, xxhash.xxh3_64_intdigest),
        )
        return Numbers(words, left, simhash if words else None, sketch, np.frombuffer(main, np.uint64))

    def make_in_numpy(self, tokens: Sequence[str], data: Sequence[str], chrome: Ranges) -> Numbers:
        """Returns the same, for all features."""
        hashes, is_word = self.hash(tokens)
        words = hashes[is_word]
        outside = np.ones(len(tokens), np.bool_)
        for start, end in chrome:
            outside[start:end] = False
        left = int(np.count_nonzero(outside & is_word))
        shingles, more = self.features.shingles(hashes, words, self.size), self.shingles(data)
        shown = np.ones(len(shingles) + len(more), np.bool_)
        shown[: len(shingles)] = self.features.within(outside, is_word, self.size)[: len(shingles)]
        values = self.sketcher.values(np.concatenate((shingles, more)))
        every = ascending(values)
        main = every if left < self.least_words or shown.all() else ascending(values[shown])
        simhash = self.features.simhash(hashes, words)
        return Numbers(len(words), left, simhash, self.sketcher.pack(every), main)

    def shingles(self, tokens: Sequence[str]) -> Hashes:
        """Returns the shingles of tokens that are sketched: uint64, shape (n,)."""
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
    """Returns whether tokens that were joined by NULs can be told apart: none of them has a NUL in it."""
    return isinstance(tokens, Tokens) or octets.count(0) == max(0, len(tokens) - 1)
