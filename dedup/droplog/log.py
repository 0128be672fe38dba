"""The writer of the drop log: JSON Lines, one object per page, written before the drop takes effect."""

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from dedup.settings import SETTINGS

__all__ = ["DropLog"]

#: Strangers choose the texts, so they are cut to this many characters: a line stays one small write.
MAX_TEXT = 2_000


class DropLog:
    """An open log.  Lines of several processes don't mix: each is one write to a file opened to append."""

    def __init__(self, path: str, name: str = "") -> None:
        """``path`` may hold ``%(name)s`` and ``%(time)s``, as Scrapy's feeds do; ``name`` is the spider's.

        Raises `SettingsError` if it can't be written to.
        """
        try:
            time = datetime.now(UTC).replace(microsecond=0).isoformat().replace(":", "-")
            self.path = Path(path % {"name": name, "time": time})
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            size = os.fstat(self._file).st_size
            torn = size > 0 and os.pread(self._file, 1, size - 1) != b"\n"
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SETTINGS["log"].refusal(path, f"which can't be written: {error}") from None
        self._before = b"\n" if torn else b""  # keeps apart what a crash left of the last line

    def write(self, record: Mapping[str, object]) -> None:
        """Adds a line, ASCII only; raises OSError if it is not all in the file."""
        cut = {name: value[:MAX_TEXT] if isinstance(value, str) else value for name, value in record.items()}
        line = self._before + json.dumps(cut).encode("ascii") + b"\n"
        written = os.write(self._file, line)
        if written != len(line):
            self._before = b"\n"
            raise OSError(f"only {written} of {len(line)} bytes written to {self.path}")
        self._before = b""

    def beside(self, suffix: str) -> Path | None:
        """The path of a file beside the log; None if the log is /dev/null or the like."""
        return Path(f"{self.path}{suffix}") if self.path.is_file() else None

    def close(self) -> None:
        """Lets go of the file."""
        os.close(self._file)
