"""The log of dropped duplicates: JSON Lines, one object per page, written before the drop takes effect."""

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scrapy import Request
from scrapy.http import Response

from dedup.errors import SettingsError
from dedup.fingerprint.detector import Fingerprint
from dedup.index import Verdict
from dedup.page.urls import strip_user

__all__ = ["DropLog", "drop_record"]

#: Texts, which strangers choose, are cut to this many characters: a line stays one small write.
MAX_TEXT = 2_000


class DropLog:
    """An open log.  Lines of several processes don't mix: each is one write to a file opened to append."""

    def __init__(self, path: str, name: str) -> None:
        """``path`` may hold ``%(name)s`` and ``%(time)s``, as Scrapy's feeds do.

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
            raise SettingsError(f"DEDUP_LOG is {path!r}, which can't be written: {error}") from None
        self._before = b"\n" if torn else b""  # what a crash left of the last line stays apart

    def write(self, record: Mapping[str, object]) -> None:
        """Adds a line, ASCII only; raises OSError if it is not all in the file."""
        cut = {name: value[:MAX_TEXT] if isinstance(value, str) else value for name, value in record.items()}
        line = self._before + json.dumps(cut).encode("ascii") + b"\n"
        written = os.write(self._file, line)
        if written != len(line):
            self._before = b"\n"
            raise OSError(f"only {written} of {len(line)} bytes written to {self.path}")
        self._before = b""

    def close(self) -> None:
        """Lets go of the file."""
        os.close(self._file)


def drop_record(
    request: Request, response: Response, fingerprint: Fingerprint, verdict: Verdict, action: str
) -> dict[str, Any]:
    """What the log says of a page that is a near-duplicate."""
    referer = request.headers.get("Referer")
    return {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "url": strip_user(response.url),
        "duplicate_of": verdict.of,
        "distance": verdict.distance,
        "resemblance": round(verdict.resemblance or 0.0, 4),
        "simhash": fingerprint.hex,
        "duplicate_of_simhash": f"{verdict.of_simhash or 0:016x}",
        "tokens": fingerprint.tokens,
        "links": fingerprint.links,
        "bytes": len(response.body),
        "rule": verdict.rule,
        "action": action,
        "referer": strip_user(referer.decode("ascii", "replace")) if referer else None,
        "depth": request.meta.get("depth", 0),
    }
