"""How candidates are found: one module for each METHOD, behind the protocol of `base`.

A method says under which keys a page is filed, and which pages those keys find.  The blog's example of
"minhash" is 20 bands of 5 min-hashes; AltaVista's "supershingle" asks for two of six supershingles of 14
min-hashes each, Bing's variant for four of six, of 5 each (Manasse, "Finding similar things quickly").  The
chance that they find a page, by its resemblance:

>>> from dedup.fingerprint.methods.minhash import Bands
>>> from dedup.fingerprint.methods.supershingle import Megashingles
>>> blog, altavista, bing = Bands(20, 5), Megashingles(14, 2), Megashingles(5, 4)
>>> for resemblance in (0.5, 0.75, 0.9, 0.95):
...     print(resemblance, *(f"{method.probability(resemblance):.3f}" for method in (blog, altavista, bing)))
0.5 0.470 0.000 0.000
0.75 0.996 0.005 0.031
0.9 1.000 0.415 0.525
0.95 1.000 0.879 0.866

To add a method: its module here, its line in `METHODS`, its settings in `Detector`.
"""

from dedup.fingerprint.methods.base import Method

__all__ = ["METHODS", "Method"]

#: What makes a method, by its name, and the settings that it is made from; a module is imported when its method is first used.
METHODS: dict[str, tuple[str, tuple[str, ...]]] = {
    "simhash": ("dedup.fingerprint.methods.simhash:Simhash", ("max_distance",)),
    "minhash": ("dedup.fingerprint.methods.minhash:plan_bands", ("min_resemblance", "recall")),
    "supershingle": (
        "dedup.fingerprint.methods.supershingle:Megashingles",
        ("supershingle_size", "megashingle_size"),
    ),
}
