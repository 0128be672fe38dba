"""The writer of the drop log: JSON Lines, one object per page, written before the drop takes effect."""

import errno
import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from dedup.errors import DedupError, LogUnavailableError
from dedup.files import make_private
from dedup.printing import printable
from dedup.settings import SETTINGS

#: Strangers choose the texts, so they are cut to this many characters: a line stays one small write.
MAX_TEXT = 2_000


class DropLog:
    """An open log.  Lines of several processes don't mix: each is one write to a file opened to append."""

    def __init__(self, path: str, name: str = "", setting: str = "log", *, tries: bool = True) -> None:
        """``path`` may hold ``%(name)s`` and ``%(time)s``, as Scrapy's feeds do; ``name`` is the spider's.

        ``setting`` is the one that errors name.  "" writes nothing.  Raises `SettingsError` for what is no file, and
        `LogUnavailableError` if it can't be written to, which is not tried before the first line without ``tries``.
        """
        time = datetime.now(UTC).replace(microsecond=0).isoformat().replace(":", "-")
        filled = fill(path, name=name, time=time, setting=setting)
        self.path = Path(filled).expanduser() if filled else None  #: None: nothing is written
        self._file: int | None = None
        self._before = b""
        if self.path is None or not tries:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if not os.path.lexists(self.path):
                _check_folder(self.path)
                return
            self._open(self.path)
            self._check_kind(path, setting)
        except DedupError:
            self.close()
            raise
        except IsADirectoryError:
            raise SETTINGS[setting].refusal(path, "which is a directory") from None
        except (OSError, ValueError) as error:
            text = f"the log {printable(str(self.path))} can't be written: {error}; mend that, or give the log another path"
            raise LogUnavailableError(text, settings=(setting,)) from None

    def _open(self, path: Path) -> int:
        # Windows knows O_BINARY, and would write line ends of its own without it.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        make_private(path)
        self._file = file = os.open(path, flags, 0o600)
        torn = stat.S_ISREG(os.fstat(file).st_mode) and os.fstat(file).st_size > 0 and self._last() != b"\n"
        self._before = b"\n" if torn else b""  # keeps apart what a crash left of the last line
        return file

    def _check_kind(self, path: str, setting: str) -> None:
        """Raises `SettingsError` for what is no file: a pipe would hold up the crawl, and a disk would be overwritten.

        What has no other end may stand for a file: /dev/null, a terminal.
        """
        assert self._file is not None
        mode = os.fstat(self._file).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISCHR(mode):
            what = "a pipe, whose reader could hold up the crawl" if stat.S_ISFIFO(mode) else "no file"
            if setting == "log":
                what += ' (others can read a file as it grows, with "scrapy duplicates --follow --json")'
            raise SETTINGS[setting].refusal(path, f"which is {what}")

    def _last(self) -> bytes:
        """Returns the last byte of the file."""
        assert self._file is not None
        os.lseek(self._file, -1, os.SEEK_END)
        return os.read(self._file, 1)

    def write(self, record: Mapping[str, object]) -> None:
        """Adds a line, ASCII only; raises OSError if it is not all in the file.

        The file is made by the first line, and again if it was removed or renamed meanwhile, as logrotate does.
        """
        if self.path is None:
            return
        if self._file is not None and not self._is_there(self._file, self.path):
            self.close()
        file = self._open(self.path) if self._file is None else self._file
        line = self._before + as_line(record)
        written = os.write(file, line)
        if written != len(line):
            self._before = b"\n"
            raise OSError(f"only {written} of {len(line)} bytes written to {self.path}")
        self._before = b""

    @staticmethod
    def _is_there(file: int, path: Path) -> bool:
        try:
            return os.path.samestat(os.fstat(file), path.stat())
        except FileNotFoundError:
            return False

    def beside(self, suffix: str) -> Path | None:
        """Returns the path of a file beside the log; None if there is no log, or it is /dev/null or the like."""
        if self.path is None or (self.path.exists() and not self.path.is_file()):
            return None
        return Path(f"{self.path}{suffix}")

    def close(self) -> None:
        """Lets go of the file."""
        if self._file is not None:
            file, self._file = self._file, None
            os.close(file)


def as_line(record: Mapping[str, object]) -> bytes:
    """Returns a record as a line of a log, ASCII only."""
    cut = {name: value[:MAX_TEXT] if isinstance(value, str) else value for name, value in record.items()}
    return json.dumps(cut).encode("ascii") + b"\n"


def _check_folder(path: Path) -> None:
    """Raises OSError if a file can't be made: at the start of a crawl, and not at its first near-duplicate."""
    with suppress(FileNotFoundError):
        path.stat()  # raises for too long a name
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def fill(path: str, *, name: str, time: str, setting: str = "log") -> str:
    """Returns the path with name and time in the places of their marks.  Raises `SettingsError` for any other mark.

    >>> fill("logs/%(name)s.jsonl", name="news", time="")
    'logs/news.jsonl'
    >>> fill("logs/%(spider)s.jsonl", name="news", time="")
    Traceback (most recent call last):
    dedup.errors.SettingsError: log is 'logs/%(spider)s.jsonl', in which %(spider)s stands for nothing; allowed: ...
    """
    try:
        return path % {"name": name, "time": time}
    except KeyError as error:
        why = f"in which %({error.args[0]})s stands for nothing"
    except (ValueError, TypeError):
        why = "in which a % stands alone: a plain one is written %%"
    raise SETTINGS[setting].refusal(path, why)
