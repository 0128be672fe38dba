"""What is compiled, where the package shingleback-fast is installed; nothing but time depends on it."""

import sys
from types import ModuleType

__all__ = ["fast"]

#: The version of the compiled module that does the same as this package.
VERSION = 4


def _load() -> ModuleType | None:
    try:
        import shingleback_fast
    except ImportError:
        return None
    # Its hashes are read as octets are laid out on nearly all machines.
    return shingleback_fast if shingleback_fast.VERSION == VERSION and sys.byteorder == "little" else None


#: The module, or None.
fast = _load()
