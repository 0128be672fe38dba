"""`scrapy index export` and `import`: write an index as JSON Lines, and read them back."""

import os
import sys
from asyncio import CancelledError
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO

from dedup.errors import DedupError, IndexCorruptError, IndexMismatchError, SettingsError
from dedup.fingerprint.chrome import Chrome
from dedup.index import Entry, Index
from dedup.index.export import header_line, host_line, page_line, read_header, read_line
from dedup.printing import inert, many
from dedup.scrapy.commands.index.access import surveyed
from dedup.scrapy.commands.terminal import counting, reading

#: The length, in bytes, that no line of an export reaches.
MAX_LINE = 1 << 24
#: Pages that are filed at once: each time, a file is written and the write is awaited.
AT_ONCE = 5000
#: Tables of hosts that are merged at once.
HOSTS = 50


async def export_pages(index: Index, name: str) -> int:
    """Writes every page that is done and can be read, and returns the exit status."""
    written = pending = unreadable = hosts = damaged = 0
    async with surveyed(index) as survey:
        with _target(name) as file, counting("Exporting", await survey.count()) as advance:
            file.write(header_line(index) + "\n")
            async for host, table in survey.hosts():
                if table is None:
                    damaged += 1
                else:
                    file.write(host_line(host, table) + "\n")
                    hosts += 1
            async for entry, state in survey.pages():
                advance()
                if entry is None:
                    unreadable += 1
                elif state != "done":
                    pending += 1
                else:
                    file.write(page_line(entry) + "\n")
                    written += 1
    left = [f"{count:,} {why}" for count, why in ((pending, "pending"), (unreadable, "unreadable")) if count]
    left += [many(damaged, "damaged table") + " of hosts"] if damaged else []
    print(
        f"exported {_counts(written, hosts)} of {index.where}{', left out ' if left else ''}{' and '.join(left)}",
        file=sys.stderr,
    )
    return IndexCorruptError.exit_status if unreadable or damaged else 0


def _counts(pages: int, hosts: int) -> str:
    return f"{many(pages, 'page')} and {many(hosts, 'host')}" if hosts else many(pages, "page")


@contextmanager
def _target(name: str) -> Iterator[IO[str]]:
    """Opens a new file, which appears under its name when it is complete, or the output."""
    if name == "-":
        yield sys.stdout
        return
    path, part = _path(name), _path(f"{name}.part")
    try:
        if os.path.lexists(path):
            raise FileExistsError
        with part.open("w", encoding="ascii") as file:
            yield file
        os.link(part, path)  # unlike a rename, it never replaces a file
    except FileExistsError:
        raise SettingsError(f"FILE is '{inert(name)}', which exists; an export overwrites nothing") from None
    except OSError as error:
        raise SettingsError(f"FILE is '{inert(name)}', which can't be written: {error.strerror}") from None
    finally:
        with suppress(OSError):
            part.unlink()


async def import_pages(index: Index, name: str) -> int:
    """Files every page of an export that is not filed yet, and returns the exit status."""
    pages = _Pages(index, "the export" if name == "-" else f"the export {inert(name)}")
    added = 0
    try:
        with _source(name) as file:
            for line in iter(lambda: file.readline(MAX_LINE), b""):
                pages.read(line)
                if pages.lines == 1:
                    await index.open()
                if len(pages.hosts) == HOSTS:
                    await pages.add_hosts()
                if len(pages.batch) == AT_ONCE:
                    added += await pages.add()
        if not pages.lines:
            raise IndexMismatchError(f"{pages.what} is empty")
        added += await pages.add()
    except IndexCorruptError:
        added += await pages.add()  # what was read before
        print(f"imported {many(added, 'page')} before that", file=sys.stderr)
        raise
    except (DedupError, CancelledError, KeyboardInterrupt):
        if pages.lines > 1:
            print(f"imported {many(added, 'page')} before that; repeat it for the rest", file=sys.stderr)
        raise
    finally:
        await index.close()
    there = f", {pages.count - added:,} were there" if pages.count > added else ""
    torn = ", left out a torn last line" if pages.torn else ""
    print(f"imported {_counts(added, pages.merged)} into {index.where}{there}{torn}")
    return 1 if pages.torn else 0


class _Pages:
    """The pages and hosts of an export, line by line."""

    def __init__(self, index: Index, what: str) -> None:
        self.index = index
        self.what = what
        self.lines = self.count = self.merged = 0
        self.torn = False
        self.batch: list[Entry] = []
        self.hosts: dict[str, Chrome] = {}

    def read(self, line: bytes) -> None:
        """Reads the next line.  Raises `IndexMismatchError` or `IndexCorruptError`."""
        self.lines += 1
        try:
            if self.lines == 1:
                read_header(line, self.index, self.what)
            elif not line.isspace():
                found = read_line(line, self.index)
                if isinstance(found, Entry):
                    self.batch.append(found)
                    self.count += 1
                else:
                    name, self.hosts[name] = found
        except ValueError as error:
            self.torn = self.lines > 1 and not line.endswith(b"\n") and len(line) < MAX_LINE
            if not self.torn:
                kind = IndexMismatchError if self.lines == 1 else IndexCorruptError
                raise kind(f"{self.what}, line {self.lines}: {error}") from None

    async def add_hosts(self) -> None:
        """Merges the tables of hosts that were read."""
        hosts, self.hosts = self.hosts, {}
        await self.index.add_hosts(hosts)
        self.merged += len(hosts)

    async def add(self) -> int:
        """Files the pages that were read, after the tables of their hosts; returns how many were not filed yet."""
        if self.hosts:
            await self.add_hosts()
        batch, self.batch = self.batch, []
        return await self.index.add(batch)


@contextmanager
def _source(name: str) -> Iterator[BinaryIO]:
    """Opens a file, or the input."""
    if name == "-":
        yield sys.stdin.buffer
        return
    path = _path(name)
    try:
        with path.open("rb") as raw, reading([path]) as watch:
            yield watch(raw)
    except OSError as error:
        raise SettingsError(f"FILE is '{inert(name)}', which can't be read: {error.strerror}") from None


def _path(name: str) -> Path:
    if "\0" in name:
        raise SettingsError(f"FILE is '{inert(name)}'; allowed: a path, or - for the input or output")
    return Path(name)
