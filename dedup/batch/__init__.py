"""Texts and pages that are there already: collections, columns of data frames, arrays of fingerprints."""

from dedup.batch.hamming import clusters, near_pairs, query
from dedup.batch.pairs import Clusters, Pairs

__all__ = ["Clusters", "Pairs", "clusters", "near_pairs", "query"]
