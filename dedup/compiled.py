"""The part of the filter that is compiled where the package was built with a C compiler; it only saves time."""

import logging
import sys
from importlib import import_module
from types import ModuleType

logger = logging.getLogger(__name__)

#: The version of the compiled module that does the same as this package.
VERSION = 20


def _load() -> ModuleType | None:
    try:
        fast = import_module("dedup.fast")
    except ImportError:
        return None
    except ValueError as error:  # it was built against another lxml
        logger.warning("The compiled part of shingleback is not used (%s): install the package anew", error)
        return None
    if fast.VERSION != VERSION:
        logger.warning(
            "The compiled part of shingleback is not used, since it was built from older sources: "
            "install the package anew, as with 'pip install -e .'"
        )
        return None
    # Its hashes are read as octets are laid out on nearly all machines.
    return fast if sys.byteorder == "little" else None


#: The module, or None.
fast = _load()
