"""The log of parked links: each link that was not downloaded, with the reason, written before it is parked.

It is JSON Lines.  A link that was downloaded after all has a second line, which says so, so that a later crawl
can begin with the others.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.json import Decoder

from dedup.droplog.log import MAX_TEXT, DropLog
from dedup.droplog.record import now
from dedup.errors import SettingsError
from dedup.links import Doubt, Link
from dedup.page.urls import strip_user
from dedup.printing import inert


class _Line(Struct):
    url: str
    fetched: bool = False


_decode = Decoder(_Line).decode


class ParkedLog(DropLog):
    """An open log of parked links."""

    def __init__(self, path: str, name: str) -> None:
        """``name`` is the spider's.  Raises as `DropLog` does."""
        super().__init__(path, name, "parked")

    def park(self, link: Link, doubt: Doubt, depth: int) -> bool:
        """Writes that a link is parked, and why; says whether the log holds it.

        A link that it can't hold is not to be parked.
        """
        if len(link.url) > MAX_TEXT:
            return False
        record = {
            "time": now(),
            "url": link.url,
            "found_on": strip_user(link.found_on),
            "depth": depth,
            **doubt._asdict(),
        }
        return self._write(record)

    def fetched(self, url: str) -> None:
        """Writes that a link that was parked has been downloaded after all."""
        self._write({"time": now(), "url": url, "fetched": True})

    def _write(self, record: dict[str, object]) -> bool:
        try:
            self.write(record)
        except (OSError, ValueError):
            return False
        return True


def parked_urls(path: Path) -> Iterator[str]:
    """Yields the URLs that are parked by a log, each once and in its order.  Those that were downloaded since are left out.

    Lines that are no records are left out.  Raises `SettingsError` if the file can't be read.
    """
    waiting: dict[str, None] = {}
    try:
        with path.open("rb") as lines:
            for line in lines:
                with suppress(ValueError, RecursionError):
                    record = _decode(line)
                    if record.fetched:
                        waiting.pop(record.url, None)
                    else:
                        waiting[record.url] = None
    except OSError as error:
        raise SettingsError(f"{inert(str(path))} can't be read: {error.strerror or error}") from None
    yield from waiting
