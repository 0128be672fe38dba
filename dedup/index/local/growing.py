"""Arrays that grow in their place: the memory that is reserved beyond their rows is taken only when it is written to."""

import mmap
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

#: Not shared with a process that is forked.
PRIVATE: dict[str, Any] = (
    {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
)

_T = TypeVar("_T", np.uint64, np.uint32)


class Growing(Generic[_T]):
    """Rows of one type, in memory of their own.

    numpy would take memory that was in use before, room included, and copy it all now and then.

    >>> numbers = Growing(np.uint32)
    >>> numbers.reserve(2)
    >>> numbers.rows[:2] = 7, 8
    >>> numbers.reserve(5)
    >>> numbers.rows.tolist()
    [7, 8, 0, 0, 0, 0, 0, 0, 0, 0]
    """

    def __init__(self, kind: type[_T]) -> None:
        self._kind: type[_T] = kind
        self._memory = _mapped(kind, 1)
        self.rows: npt.NDArray[_T] = np.frombuffer(self._memory, kind)

    def reserve(self, room: int) -> None:
        """Makes room for this many rows in all, and as many again, if there is less.

        The memory is given another address; where that can't be done, or somebody holds a part of ``rows``, it is copied.
        """
        if room <= len(self.rows):
            return
        room *= 2
        self.rows = np.empty(0, self._kind)
        try:
            self._memory.resize(room * np.dtype(self._kind).itemsize)
        except (SystemError, BufferError):  # not on every system; not while somebody holds a part
            old = np.frombuffer(self._memory, self._kind)
            self._memory = _mapped(self._kind, room)
            np.frombuffer(self._memory, self._kind)[: len(old)] = old
        finally:
            self.rows = np.frombuffer(self._memory, self._kind)


def _mapped(kind: type[np.uint64] | type[np.uint32], room: int) -> mmap.mmap:
    return mmap.mmap(-1, room * np.dtype(kind).itemsize, **PRIVATE)
