"""Tokens -> Fingerprint -> Comparison: the algorithms of the papers, and the detector that joins them."""
