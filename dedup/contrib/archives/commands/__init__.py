"""`scrapy dedup`: judges pages in files by the filter of a crawl."""

import argparse

from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from dedup.scrapy.commands import base


class Command(base.Command):
    """The filter is that of the project's crawls: its settings can be varied by ``-s``."""

    name = "dedup"
    arguments = "[options] INPUT ..."
    summary = "Drop the near-duplicates of archives: WARC, JSON Lines, Parquet, folders of HTML"
    description = (
        "INPUT is a WARC file, WACZ, ARC, JSON Lines (WARC and these may be compressed by gzip) or Parquet with the fields html or text, "
        "and url and fetched if there are any, a folder of HTML files, or - for the standard input. Of pages "
        "that are alike, the one that was fetched first is kept, or else the one of the least URL. If a run that writes "
        "to a file is interrupted, the same command goes on where it stopped."
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Adds the options."""
        super().add_options(parser)
        add = parser.add_argument
        kept = (
            "write what is kept to FILE, in the format of its name: .jsonl, .warc (or these with .gz), .wacz, .parquet or .csv; - is the "
            "standard output, JSON Lines"
        )
        add("-o", dest="kept", default="", metavar="FILE", help=kept)
        add("--duplicates", default="", metavar="FILE", help="write the drop log, as a crawl does")
        joined = (
            "use this index of a crawl, too, file:PATH or redis://HOST:PORT/DB: pages like those in it are dropped, and "
            "the pages that are kept are filed in it at the end"
        )
        add("--index", default="", metavar="ADDRESS", help=joined)
        against = (
            "drop only what is like a page of FILE, an archive, or of an index, file:PATH or redis://HOST:PORT/DB; nothing is "
            "dropped for another page of the inputs, and nothing is filed"
        )
        add("--against", default="", metavar="FILE", help=against)
        keep = (
            "which of those alike is kept: first (fetched first; the default), newest (fetched last), longest (most words), "
            "canonical (as the site says), https, shortest (URL), a field of rows, whose greatest number or latest time is kept, "
            "or MODULE:FUNCTION, whose number for a URL is the greatest"
        )
        add("--keep", default="first", metavar="WHICH", help=keep)
        names = "the field of rows that names those without a url (default: id)"
        add("--id", default="id", metavar="FIELD", help=names)
        text = "the field of rows that is their text (default: html is the page, or else text)"
        add("--text", default="", metavar="FIELD", help=text)
        listed = "write an index of the WARC file that is written, CDXJ, as pywb and ReplayWeb.page read it"
        add("--cdxj", default="", metavar="FILE", help=listed)
        whose = "with --index: the index of this spider; only needed where several spiders share a Redis"
        add("--spider", default="", metavar="NAME", help=whose)
        read = "processes that read pages (default: one for each core)"
        add("--workers", type=int, default=0, metavar="N", help=read)
        engine = "what reads and judges: this machine, or spark, with the extra spark and Java 17"
        add("--engine", choices=("local", "spark"), default="local", help=engine)
        where = "with --engine spark: the address of Spark (default: local[*], this machine)"
        add("--master", default="", metavar="MASTER", help=where)

    def work(self, args: list[str], opts: argparse.Namespace, settings: Settings) -> int:
        """Cleans the inputs."""
        if not args:
            raise UsageError("dedup takes at least one INPUT")
        if opts.index and opts.against:
            raise UsageError("--index and --against are given; give one of the two")
        if opts.spider and not (opts.index or opts.against):
            raise UsageError("--spider needs --index, or --against")
        if opts.workers < 0:
            raise UsageError(f"--workers is {opts.workers}; allowed: a whole number from 0")
        if opts.master and opts.engine != "spark":
            raise UsageError("--master needs --engine spark")
        from dedup.contrib.archives.commands.run import run

        return run(args, opts, settings)
