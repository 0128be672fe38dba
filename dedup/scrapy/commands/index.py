"""`scrapy index moved URL`: where the content of a page that has vanished was met, too (Barber's lost and found)."""

import argparse
import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError
from scrapy.utils.request import fingerprint

from dedup.scrapy.texts import inert

if TYPE_CHECKING:
    from dedup.index import Index

__all__ = ["Command"]

#: Characters of a URL that are shown.
WIDTH = 200


class Command(ScrapyCommand):
    """Exit status 0: found elsewhere; 1: nowhere else; 2 a setting, 3 ... 5 the index is wrong."""

    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 (as Scrapy declares it)

    def syntax(self) -> str:
        """The arguments."""
        return "moved URL [LOG ...]"

    def short_desc(self) -> str:
        """For the list of commands."""
        return "Ask the index of kept pages: where has a page moved to?"

    def long_desc(self) -> str:
        """For --help."""
        return (
            "moved URL: other URLs at which the content of URL was met, by the index and the drop logs (without "
            "LOG: those that the project's DEDUP_LOG names), with the times of the first and the last of it; the "
            "last seen first. Exit status: 0 found elsewhere, 1 nowhere else."
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Looks up, prints."""
        from dedup.errors import DedupError

        if len(args) < 2 or args[0] != "moved":
            raise UsageError("index takes: moved URL [LOG ...]")
        try:
            self.exitcode = 0 if self._moved(args[1], [Path(name) for name in args[2:]]) else 1
        except DedupError as error:
            print(f"index: {error}")
            self.exitcode = error.exit_status

    def _moved(self, url: str, logs: list[Path]) -> bool:
        from dedup.drops import Drops
        from dedup.errors import SettingsError
        from dedup.records import Reader, find_logs
        from dedup.scrapy.settings import read_settings

        assert self.settings is not None
        options = read_settings(self.settings)
        for log in logs:
            if not log.is_file():
                raise SettingsError(f"LOG is '{log}', and no such file is here")
        with Drops(Reader().read(logs or find_logs(options.log))) as drops:
            places = list(drops.places(url))
        filed = {}
        index = options.index
        if (
            not index.where.startswith("file:") or Path(index.where.removeprefix("file:")).exists()
        ):  # else: none yet
            filed = asyncio.run(_filed(index, [url, *(place.url for place in places if place.kept)]))
        print(f"{inert(url, WIDTH)}: {_kept(filed.get(url))}")
        if not places:
            print("its content was met nowhere else")
            return False
        for place in places:
            kept = f"; {_kept(filed.get(place.url))}" if place.kept else ""
            print(f"  {place.first[:16]} to {place.last[:16]}  {inert(place.url, WIDTH)}{kept}")
        return True


def _kept(time: int | None) -> str:
    if time is None:
        return "not among the kept pages of the index"
    return f"kept since {datetime.fromtimestamp(time, UTC).isoformat(timespec='minutes')[:16]}"


async def _filed(index: "Index", urls: list[str]) -> dict[str, int]:
    """When the pages at some URLs were filed, in seconds since 1970, of those that were."""
    try:
        entries = {url: await index.find(fingerprint(Request(url)).hex()) for url in urls}
    finally:
        await index.close()
    return {url: entry.filed for url, entry in entries.items() if entry is not None}
