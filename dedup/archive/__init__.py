"""Cleans archives: the filter of a crawl judges pages that are in files already.

`Cleaning` does all of it.  Readers and fingerprints can be used without it:

>>> from pathlib import Path
>>> from dedup import Detector
>>> from dedup.archive import fingerprint, open_input
>>> captures = [item.capture for item in open_input(Path("README.md"), "x.jsonl")]  # it is no JSON
>>> any(captures)
False
"""

from dedup.archive.capture import Capture, Item, Reader, fingerprint
from dedup.archive.cleaning import Cleaning, Result
from dedup.archive.inputs import open_input

__all__ = ["Capture", "Cleaning", "Item", "Reader", "Result", "fingerprint", "open_input"]
