"""`scrapy index VERB`: looks after the index of kept pages."""

import argparse
import sys

from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from dedup.scrapy.commands import base

#: The verbs, each with its arguments, the number of them that is allowed, and its options.
VERBS: dict[str, tuple[str, range, tuple[str, ...]]] = {
    "info": ("", range(1), ()),
    "check": ("", range(1), ()),
    "forget": (
        "URL ... | --run ID | --older-than TIME",
        range(sys.maxsize),
        ("run", "older_than", "dry_run"),
    ),
    "export": ("FILE|-", range(1, 2), ()),
    "import": ("FILE|-", range(1, 2), ()),
    "moved": ("URL [LOG ...]", range(1, sys.maxsize), ()),
    "why": ("URL [LOG ...]", range(1, sys.maxsize), ()),
    "plan": (
        "--pages N [--recall R] [--memory BYTES] [--rate R]",
        range(1),
        ("pages", "recall", "memory", "rate"),
    ),
}

#: Sections of --help.
HELP = {
    "info": "shows how many pages the index holds, of which runs, and in how many bytes.",
    "check": "shows whether every invariant of the index holds, and if not, how to repair it.",
    "forget": "takes pages out, so that they count as new when they are crawled again. An index in a file must not "
    "be in use; one in Redis may be.",
    "export": "writes every page that can be read as JSON Lines, to a new file or to the output.",
    "import": "adds the pages of an export to an index of the same parameters, whatever store it is in. Pages that "
    "the index has are skipped, so an import that was interrupted can be repeated, and goes on.",
    "moved": "shows the other URLs at which the content of URL was met, with the first and the last time; the one "
    "that was seen last comes first. It asks the index and the drop logs (without LOG, those that the project's "
    "DEDUP_LOG names).",
    "why": "shows what became of the page at URL: whether the index has it, since when and by which run, and each time that "
    "it was dropped, with the rule, the evidence and the kept page. It asks the index and the drop logs, as moved does.",
    "plan": "says what an index of N pages would take in a file and in Redis: tables, memory, disk, machines, and CPU. It "
    "needs no index, only the settings.",
}
EXIT_STATUS = (
    "0: all is well. 1: moved found no other URL, why found nothing, or import left out a torn last line. 2: the usage or a setting is "
    "wrong. 3: there is no index, or it can't be reached. 4: it was built with other parameters, or is not an index of "
    "this library. 5: it is damaged. 6: another process is using it."
)


class Command(base.Command):
    """The exit status is one of `EXIT_STATUS`."""

    name = "index"
    arguments = "info | check | forget | export | import | moved | why | plan [arguments] [options]"
    summary = "Look after the index of kept pages: show, check, forget, export, import, plan"
    description = (
        "Later pages are compared with the kept pages in the index. It is the one that the project's settings "
        "name, or another: -s DEDUP_INDEX=file:PATH, or -s DEDUP_INDEX=redis://HOST:PORT/DB with -s "
        "DEDUP_NAMESPACE=NAME. All verbs but forget and import only read, and may be used while a crawl runs."
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Adds the options."""
        super().add_options(parser)
        _, _, forget, *_, plan = (
            parser.add_argument_group(verb, f"scrapy index {verb} {VERBS[verb][0]}".rstrip() + f": {text}")
            for verb, text in HELP.items()
        )
        parser.add_argument_group("exit status", EXIT_STATUS)
        whose = "the index of this spider; only needed where the project has several, each with an index of its own"
        parser.add_argument("--spider", default="", metavar="NAME", help=whose)
        which = forget.add_argument
        which(
            "--run",
            default="",
            metavar="ID",
            help="every page of this run, or of all workers of a crawl (info shows them)",
        )
        before = "pages filed before a date (UTC), or before a time such as 12h or 30d ago"
        which("--older-than", default="", metavar="TIME", help=before)
        which("--dry-run", action="store_true", help="only list the pages that would be forgotten")
        for name, value, text in (
            ("pages", "N", "how many pages the index is to hold, such as 1e8"),
            (
                "recall",
                "R",
                "the share of near-duplicates to be found: chooses the bands of minhash, or the distance of simhash",
            ),
            ("memory", "BYTES", "of a machine (64G)"),
            ("rate", "R", "pages a second, of all crawlers (10)"),
        ):
            plan.add_argument(f"--{name}", default="", metavar=value, help=text)

    def work(self, args: list[str], opts: argparse.Namespace, settings: Settings) -> int:
        """Does what the verb says."""
        verb, *rest = args or [""]
        self._check_usage(verb, rest, opts)
        from dedup.scrapy.commands.index.run import run

        return run(verb, rest, opts, settings)

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
            or (verb == "plan" and not opts.pages)
        ):
            raise UsageError(f"usage: scrapy index {verb} {arguments}".rstrip())
