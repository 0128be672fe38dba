"""How commands talk to their user: tables, progress bars, and the end with its exit status.

What draws them takes a while to be imported, so that is done only when something is drawn.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from dedup.errors import DedupError
from dedup.printing import printable
from dedup.scrapy.settings import spelled

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn, TaskID

T = TypeVar("T")

#: Columns of the output when it does not go to a terminal.
WIDTH = 140
#: Smaller files are read in a moment, and get no progress bar.
LARGE = 8_000_000  # bytes
#: Seconds between two lines that say how far a work has come, where there is no terminal.
LINE_EVERY = 30.0
#: Fewer things are done in a moment, and get no progress bar either.
MANY = 5_000


def finish(command: str, work: Callable[[], int]) -> int:
    """Does the work of a command, and returns its exit status.

    An error that the user or the operator has to mend is one line on the error output, and so is Ctrl-C.
    """
    try:
        status = work()
        sys.stdout.flush()
        return status
    except DedupError as error:
        complain(command, str(spelled(error)))
        return error.exit_status
    except KeyboardInterrupt:
        complain(command, "interrupted")
        return 130
    except BrokenPipeError:  # whoever reads the output has seen enough, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def complain(command: str, text: str) -> None:
    """Says something on the error output, after what has been printed."""
    sys.stdout.flush()
    print(f"{command}: {text}", file=sys.stderr)


@contextmanager
def _bar(*columns: "str | ProgressColumn", **task: Any) -> "Iterator[tuple[Progress, TaskID]]":
    """Shows a progress bar on the error output, which is a terminal; it vanishes at its end."""
    from rich.console import Console
    from rich.progress import Progress

    # Not redirected, or what is printed meanwhile would go where the bar goes.
    how: dict[str, Any] = {"transient": True, "redirect_stdout": False, "redirect_stderr": False}
    with Progress(*columns, console=Console(stderr=True), **how) as progress:
        yield progress, progress.add_task("", **task)


@contextmanager
def reading(paths: Sequence[Path]) -> Iterator[Callable[[BinaryIO], BinaryIO]]:
    """Shows how far files are read; each has to be wrapped by the function that this yields."""
    size = sum(os.path.getsize(path) for path in paths if os.path.isfile(path))
    if size < LARGE or not sys.stderr.isatty():
        yield lambda file: file
        return
    from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn

    columns = "Reading", BarColumn(), DownloadColumn(), TimeRemainingColumn()
    with _bar(*columns, total=size) as (progress, task):
        yield lambda file: progress.wrap_file(file, task_id=task)


@contextmanager
def counting(what: str, total: int | None, least: int = MANY) -> Iterator[Callable[[], None]]:
    """Shows how many things are done; the function that this yields has to be called for each.

    There is no bar for fewer things than ``least``; where nobody knows how many there are, it shows only the number.
    """
    if (total is not None and total < least) or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

    columns = what, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with _bar(*columns, total=total) as (progress, task):
        yield lambda: progress.advance(task)


@contextmanager
def working(what: str, total: int) -> Iterator[Callable[[int, int], None]]:
    """Shows how far a long work has come, how many pages it does in a second, and how much time is left.

    The function that this yields has to be told how much of the total is done, and how many pages that are.  Where there
    is no terminal, it prints a line now and then.
    """
    started = told = time.monotonic()
    begun = -1

    def rate(pages: int) -> str:
        nonlocal begun
        begun = pages if begun < 0 else begun
        return f"{pages:,} pages, {(pages - begun) / (time.monotonic() - started + 1e-9):,.0f}/s"

    def tell(done: int, pages: int) -> None:
        nonlocal told
        text = rate(pages)
        if time.monotonic() - told >= LINE_EVERY:
            told = time.monotonic()
            print(f"{what}: {done / max(1, total):.0%}, {text}", file=sys.stderr, flush=True)

    if not sys.stderr.isatty():
        yield tell
        return
    from rich.progress import BarColumn, TimeRemainingColumn

    columns = what, BarColumn(), "{task.fields[pages]}", TimeRemainingColumn()
    with _bar(*columns, total=total, pages="") as (progress, task):
        yield lambda done, pages: progress.update(task, completed=done, pages=rate(pages))


def each(items: Sequence[T], what: str) -> Iterator[T]:
    """Yields the items, and shows how many of them are done."""
    with counting(what, len(items), least=0) as advance:
        for item in items:
            yield item
            advance()


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Shows that something is being done, and for how long."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.progress import SpinnerColumn, TimeElapsedColumn

    with _bar(what, SpinnerColumn("line"), TimeElapsedColumn(), total=None):
        yield


def interval(bounds: Sequence[float], digits: int = 3) -> str:
    """Returns a confidence interval, as text.

    >>> interval((0.5, 0.75))
    '0.500-0.750'
    """
    return f"{bounds[0]:.{digits}f}-{bounds[1]:.{digits}f}"


def print_table(
    heading: Sequence[str],
    rows: Iterable[Sequence[object]],
    of: int = 0,
    gap: bool = True,
    starred: Callable[[Sequence[object]], bool] | None = None,
) -> None:
    """Prints rows of numbers that end in a text, and how many more rows there are, ``of`` all.

    An empty line goes before them if there is a ``gap``.  With ``starred``, every column holds numbers or
    intervals (tuples), and a row for which it is true (the settings in force) gets a star.
    """
    from rich.table import Table

    shown = Table(box=None, pad_edge=False, header_style="bold")
    numbers = starred is not None
    *first, last = ["", *heading] if numbers else heading
    for name in first:
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column(
        last, justify="right" if numbers else "left", style=None if numbers else "cyan", no_wrap=True
    )
    for row in rows:
        star = starred is not None and starred(row)
        mark = ["*" if star else ""] if numbers else []
        shown.add_row(*mark, *map(_cell, row), style="bold" if star else None)
    console = screen()
    with console.capture() as printed:
        console.print(shown)
    print(*[""] * gap, *(line.rstrip() for line in printed.get().splitlines()), sep="\n")
    if of > shown.row_count:
        print(f"... and {of - shown.row_count:,} more")


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, tuple):
        return interval(value)
    return f"{value:.3f}" if isinstance(value, float) else printable(str(value))


def screen() -> "Console":
    """Returns the output, as wide as the terminal; it changes nothing that is printed on it."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False)
