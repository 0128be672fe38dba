"""Cleans archives: the filter of a crawl judges pages that are in files already.

`Cleaning` does all of it.  Readers and fingerprints can be used without it:

>>> from pathlib import Path
>>> from dedup import Detector
>>> from dedup.contrib.archives import fingerprint, open_input
>>> captures = [item.capture for item in open_input(Path("README.md"), "x.jsonl")]  # it is no JSON
>>> any(captures)
False
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dedup.contrib.archives.capture import Capture, Item, Reader, fingerprint
    from dedup.contrib.archives.cleaning import Cleaning, Result
    from dedup.contrib.archives.inputs import open_input

__all__ = ["Capture", "Cleaning", "Item", "Reader", "Result", "fingerprint", "open_input"]

#: The module that each name is loaded from.
_HOMES = {
    **dict.fromkeys(("Capture", "Item", "Reader", "fingerprint"), "dedup.contrib.archives.capture"),
    **dict.fromkeys(("Cleaning", "Result"), "dedup.contrib.archives.cleaning"),
    "open_input": "dedup.contrib.archives.inputs",
}


def __getattr__(name: str) -> object:
    """Loads a public name at its first use: every command of Scrapy imports ours, which is in this package."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
