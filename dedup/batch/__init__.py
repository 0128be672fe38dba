"""Texts and pages that are there already: collections, columns of a data frame, files of fingerprints."""
