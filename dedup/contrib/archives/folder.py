"""Reads a folder of HTML files, such as a mirror made by wget, or a single HTML file."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from dedup.contrib.archives.capture import MAX_BODY, Capture, Item, Reader

#: Ends of the names of files that are read.
SUFFIXES = (".html", ".htm", ".xhtml")


class Folder(Reader):
    """Reads the HTML files in a folder and those below it, in the order of their paths.

    Symbolic links that lead elsewhere are not followed.  They are items without a page, and so are files with other names.
    What a cleaning writes into its own folder meanwhile is skipped.

    A page at docs/index.html has the URL http://localhost/docs/index.html.
    """

    def __init__(self, path: Path, name: str = "") -> None:
        super().__init__(path, name)
        self.size = sum(os.path.getsize(file) for file in self._files() if self._is_page(file))
        self._read = 0

    def _files(self) -> Iterator[Path]:
        if self.path.is_file():
            yield self.path
            return
        for folder, folders, names in os.walk(self.path):
            folders[:] = sorted(name for name in folders if not _is_of_a_cleaning(Path(folder, name)))
            for name in sorted(names):
                yield Path(folder, name)

    def _is_page(self, file: Path) -> bool:
        named = file.name.lower().endswith(SUFFIXES) and stat.S_ISREG(file.lstat().st_mode)
        return named or file == self.path

    def tell(self) -> int:
        """Returns how many bytes of the pages have been read."""
        return self._read

    def __iter__(self) -> Iterator[Item]:
        """Yields an item for each file."""
        self._read = 0
        for file in self._files():
            if not self._is_page(file):
                yield Item(file, None, "name")
                continue
            try:
                with file.open("rb") as opened:
                    body = opened.read(MAX_BODY + 1)
            except OSError:
                yield Item(None, None, "unreadable", damaged=True)
                continue
            self._read += len(body)
            if len(body) > MAX_BODY:
                yield Item(file, None, "large")
                continue
            below = file.name if file == self.path else file.relative_to(self.path).as_posix()
            address = quote(os.fsencode(below), safe="/")
            yield Item(file, Capture(f"http://localhost/{address}", body))


def _is_of_a_cleaning(folder: Path) -> bool:
    return folder.name.endswith(".part") and (folder / "journal").exists()
