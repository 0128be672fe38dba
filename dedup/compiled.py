"""What is compiled, where the package shingleback-fast is installed; nothing but time depends on it."""

import logging
import sys
from types import ModuleType

__all__ = ["fast"]

logger = logging.getLogger(__name__)

#: The version of the compiled module that does the same as this package.
VERSION = 6


def _load() -> ModuleType | None:
    try:
        import shingleback_fast
    except ImportError:
        return None
    if shingleback_fast.VERSION != VERSION:
        logger.warning(
            "The package shingleback-fast that is installed is not used, since it was built for another version of "
            "shingleback: build it anew with 'make fast'"
        )
        return None
    # Its hashes are read as octets are laid out on nearly all machines.
    return shingleback_fast if sys.byteorder == "little" else None


#: The module, or None.
fast = _load()
