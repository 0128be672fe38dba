"""`scrapy index VERB`: looks after the index of kept pages."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

if TYPE_CHECKING:
    from dedup.scrapy.settings import Options

__all__ = ["Command"]

#: Per verb: its arguments, how many of them there may be, and its options.
VERBS: dict[str, tuple[str, range, tuple[str, ...]]] = {
    "info": ("[--plot FILE]", range(1), ("plot",)),
    "check": ("", range(1), ()),
    "forget": (
        "URL ... | --run ID | --older-than TIME",
        range(sys.maxsize),
        ("run", "older_than", "dry_run"),
    ),
    "export": ("FILE|-", range(1, 2), ()),
    "import": ("FILE|-", range(1, 2), ()),
    "moved": ("URL [LOG ...]", range(1, sys.maxsize), ()),
}

#: Sections of --help.
HELP = {
    "info": "how many pages the index holds, of which runs, in how many bytes; and how evenly their fingerprints are "
    "spread: which prefixes most pages share, and figures 2a and 2b of Manku, Jain, Das Sarma 2007.",
    "check": "whether every invariant of the index holds, and if not, how to repair it.",
    "forget": "takes pages out, so that they count as new when they are crawled again. An index in a file must not "
    "be in use; one in Redis may be.",
    "export": "writes every page that can be read as JSON Lines, to a new file or to the output.",
    "import": "adds the pages of an export to an index of the same parameters, in whatever store. Pages that are "
    "there are passed over, so that an import that was interrupted goes on when it is repeated.",
    "moved": "other URLs at which the content of URL was met, by the index and the drop logs (without LOG: those "
    "that the project's DEDUP_LOG names), with the first and the last time; the last seen first.",
}
EXIT_STATUS = (
    "0 all is well; 1 moved: nowhere else, import: the last line was torn and left out; 2 wrong usage or setting; "
    "3 no index is there, or it is out of reach, or in use; 4 it was built with other parameters, or is not ours; "
    "5 it is damaged."
)


class Command(ScrapyCommand):
    """Exit status 0; 1: see the verb; 2: a setting, 3 ... 5: the index (see `dedup.errors`)."""

    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 (as Scrapy declares it)

    def syntax(self) -> str:
        """The arguments."""
        return "info | check | forget | export | import | moved [arguments] [options]"

    def short_desc(self) -> str:
        """For the list of commands."""
        return "Look after the index of kept pages: show, check, forget, export, import"

    def long_desc(self) -> str:
        """For --help."""
        return (
            "The index of kept pages is what later pages are compared with: the one that the project's settings "
            "name, or another: -s DEDUP_INDEX=file:PATH, -s DEDUP_INDEX=redis://HOST:PORT/DB with -s "
            "DEDUP_NAMESPACE=NAME. All but forget and import only read, and may be used while a crawl is running."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """The options."""
        super().add_options(parser)
        info, _, forget, *_ = (
            parser.add_argument_group(verb, f"scrapy index {verb} {VERBS[verb][0]}".rstrip() + f": {text}")
            for verb, text in HELP.items()
        )
        parser.add_argument_group("exit status", EXIT_STATUS)
        info.add_argument(
            "--plot", type=Path, metavar="FILE", help="draw the figures (.png, .svg; needs matplotlib)"
        )
        forget.add_argument("--run", default="", metavar="ID", help="every page of this run, see info")
        forget.add_argument(
            "--older-than",
            default="",
            metavar="TIME",
            help="pages filed before a date (UTC), or 12h, 30d ago",
        )
        forget.add_argument("--dry-run", action="store_true", help="only list the pages")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Does it."""
        from dedup.errors import DedupError
        from dedup.scrapy.settings import read_settings

        verb, *rest = args or [""]
        self._check_usage(verb, rest, opts)
        assert self.settings is not None
        signal.signal(signal.SIGINT, _interrupt)
        try:
            self.exitcode = asyncio.run(self._work(verb, rest, opts, read_settings(self.settings)))
            sys.stdout.flush()
        except DedupError as error:
            sys.stdout.flush()
            print(f"index: {error}", file=sys.stderr)
            self.exitcode = error.exit_status
        except KeyboardInterrupt:
            print("index: interrupted", file=sys.stderr)
            self.exitcode = 130
        except BrokenPipeError:  # who reads has seen enough, as `| head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def _check_usage(self, verb: str, rest: list[str], opts: argparse.Namespace) -> None:
        if verb not in VERBS:
            raise UsageError(f"index takes one of: {', '.join(VERBS)}")
        arguments, count, options = VERBS[verb]
        strange = [name for _, _, names in VERBS.values() for name in names if name not in options]
        ways = [*rest[:1], opts.run, opts.older_than]
        if (
            len(rest) not in count
            or any(getattr(opts, name) for name in strange)
            or (verb == "forget" and sum(map(bool, ways)) != 1)
        ):
            raise UsageError(f"usage: scrapy index {verb} {arguments}".rstrip())

    def _work(
        self, verb: str, rest: list[str], opts: argparse.Namespace, options: "Options"
    ) -> Coroutine[None, None, int]:
        from dedup.errors import SettingsError
        from dedup.scrapy.commands.index import check, exchange, forget, info, moved

        if options.index.where == "memory:" and verb != "moved":
            raise SettingsError(
                "DEDUP_INDEX is 'memory:', which ends with its crawl; allowed here: file:PATH, redis://HOST:PORT/DB"
            )
        if verb == "info":
            return info.print_info(options.index, opts.plot)
        if verb == "check":
            return check.check(options.index)
        if verb == "forget":
            return forget.forget(options.index, rest, opts.run, opts.older_than, opts.dry_run)
        if verb == "export":
            return exchange.export_pages(options.index, rest[0])
        if verb == "import":
            return exchange.import_pages(options.index, rest[0])
        return moved.print_places(options, rest[0], [Path(name) for name in rest[1:]])


def _interrupt(*_: object) -> None:
    """Ctrl-C at once: asyncio alone would wait for the next await."""
    raise KeyboardInterrupt
