"""What the commands of this library have in common: they crawl nothing, and end with an exit status of their own."""

import argparse
from abc import abstractmethod

from scrapy.commands import ScrapyCommand, ScrapyHelpFormatter
from scrapy.settings import Settings


class _Help(ScrapyHelpFormatter):
    """Help in which no line of a text ends with a colon: Scrapy would take it for a heading."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        lines = super()._split_lines(text.replace(": ", ":\xa0"), width)
        return [line.replace("\xa0", " ") for line in lines]


class Command(ScrapyCommand):
    """A command: three texts for --help, the options, and its work."""

    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 (as Scrapy declares it)

    name: str  #: as error messages call the command
    arguments: str
    summary: str  #: for the list of commands
    description: str  #: for --help

    def syntax(self) -> str:
        """Names the arguments."""
        return self.arguments

    def short_desc(self) -> str:
        """Describes the command in the list of commands."""
        return self.summary

    def long_desc(self) -> str:
        """Describes the command for --help."""
        return self.description

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Adds the options of every command."""
        super().add_options(parser)
        parser.formatter_class = _Help

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Does the work, and tells of an error in one line."""
        from dedup.scrapy.commands.terminal import finish

        assert self.settings is not None
        settings = self.settings
        self.exitcode = finish(self.name, lambda: self.work(args, opts, settings))

    @abstractmethod
    def work(self, args: list[str], opts: argparse.Namespace, settings: Settings) -> int:
        """Does what the command is for, and returns the exit status.  Raises `UsageError` for wrong arguments."""
