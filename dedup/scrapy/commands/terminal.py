"""What commands print: tables and progress bars."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

__all__ = ["bar", "busy", "counting", "interval", "print_table", "reading", "screen", "table"]

#: Columns of the output when it is no terminal.
WIDTH = 140
#: Files of fewer bytes are read in a moment, without a progress bar.
LARGE = 8_000_000
#: Fewer things are counted in a moment, without a progress bar.
MANY = 5_000


def bar() -> Console:
    """Where progress is shown: on a terminal only, apart from the output."""
    return Console(stderr=True, quiet=not sys.stderr.isatty())


@contextmanager
def reading(paths: Sequence[Path]) -> Iterator[Callable[[BinaryIO], BinaryIO]]:
    """While it is entered, shows how far files are read; gives what each is to be wrapped in."""
    size = sum(os.path.getsize(path) for path in paths if os.path.isfile(path))
    columns = (TextColumn("Reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    # Not redirected, or what is printed meanwhile would go where the bar goes.
    with Progress(
        *columns,
        console=bar(),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        disable=size < LARGE,
    ) as progress:
        task = progress.add_task("", total=size)
        yield lambda file: progress.wrap_file(file, task_id=task)


@contextmanager
def counting(what: str, total: int, least: int = MANY) -> Iterator[Callable[[], None]]:
    """While it is entered, shows how many things of a total are done; gives the function to be called for each.

    A total of less than ``least`` is not shown.
    """
    if total < least or not sys.stderr.isatty():
        yield lambda: None
        return
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(
        *columns, console=bar(), transient=True, redirect_stdout=False, redirect_stderr=False
    ) as progress:
        task = progress.add_task("", total=total)
        yield lambda: progress.advance(task)


@contextmanager
def busy(what: str) -> Iterator[None]:
    """While it is entered, shows that something is done, and for how long."""
    columns = (TextColumn(what), SpinnerColumn("line"), TimeElapsedColumn())
    with Progress(*columns, console=bar(), transient=True) as progress:
        progress.add_task("", total=None)
        yield


def interval(bounds: Sequence[float], digits: int = 3) -> str:
    """A confidence interval, as text.

    >>> interval((0.5, 0.75))
    '0.500-0.750'
    """
    return f"{bounds[0]:.{digits}f}-{bounds[1]:.{digits}f}"


def table(
    heading: Sequence[str], rows: Sequence[Sequence[Any]], mark: Callable[[list[Any]], bool] = lambda _: False
) -> None:
    """Prints rows; those that ``mark`` names (the settings in force) get a star."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("", *heading):
        shown.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        cells = [
            f"{cell:,}" if isinstance(cell, int) else f"{cell:.3f}" if isinstance(cell, float) else str(cell)
            for cell in row
        ]
        starred = mark(list(row))
        shown.add_row("*" if starred else "", *cells, style="bold" if starred else None)
    screen().print(shown)


def print_table(heading: Sequence[str], rows: Iterable[Sequence[Any]], of: int = 0, gap: bool = True) -> None:
    """Prints rows of numbers that end in a text; with a gap, after an empty line.

    ``of`` is the number of rows that there are, if only some of them are given.
    """
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for name in heading[:-1]:
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column(heading[-1], no_wrap=True, style="cyan")
    for row in rows:
        shown.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row))
    console = screen()
    with console.capture() as printed:
        console.print(shown)
    print(*[""] * gap, *(line.rstrip() for line in printed.get().splitlines()), sep="\n")
    if of > shown.row_count:
        print(f"... and {of - shown.row_count:,} more")


def screen() -> Console:
    """The output: as wide as the terminal; what is printed on it is taken as it is."""
    width = None if sys.stdout.isatty() else WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False)
