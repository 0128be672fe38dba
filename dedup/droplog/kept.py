"""Kept pages that are like others or can't be judged, in a file beside the drop log: who has decided, and why.

The file is JSON Lines, and its name is that of the log and ``.kept``.  Of a page that is in neither file, no kept page was
the same.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, structs

from dedup.droplog.log import DropLog
from dedup.droplog.record import read_lines

SUFFIX = ".kept"
#: A longer line was not written by a crawl.
MAX_LINE = 16_384  # bytes


class Kept(Struct):
    """Why a page was kept."""

    time: str
    url: str
    judge: str  #: who has decided: one of the judges of a page
    why: str  #: what that judge has seen, in words or in one
    beside: str = ""  #: URL of the kept page that it was compared with


class KeptLog:
    """Writes the kept pages of one crawl; if that fails, nothing depends on it."""

    def __init__(self, log: DropLog) -> None:
        """Writes nothing if the drop log is no file."""
        path = log.beside(SUFFIX)
        self._log = DropLog(str(path).replace("%", "%%") if path else "", tries=False)

    def write(self, kept: Kept) -> None:
        """Adds a line."""
        with suppress(OSError):
            self._log.write(structs.asdict(kept))

    def close(self) -> None:
        """Lets go of the file."""
        self._log.close()


def read_kept(paths: Iterable[Path], url: str) -> Iterator[Kept]:
    """Returns what files say of the page at a URL."""
    return (kept for kept in read_lines(paths, Kept, MAX_LINE) if kept.url == url)
