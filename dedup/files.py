"""New files that only their owner may read: what a crawl files and logs has URLs, and those may hold secrets."""

import os
import stat
from contextlib import suppress
from pathlib import Path


def make_private(path: Path) -> None:
    """Makes an empty file, unless there is one, which keeps its mode.

    In a folder that hands its group down and lets it write (``chmod 2770``), the group may read and write it, too.
    Raises OSError if it can't be made.
    """
    with suppress(FileExistsError):
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            folder = path.parent.stat().st_mode
            if folder & stat.S_ISGID and folder & stat.S_IWGRP:
                os.chmod(path, 0o660)  # whatever the umask says
        finally:
            os.close(file)
