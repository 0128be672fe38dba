"""What commands print: tables and progress bars."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

__all__ = ["bar", "interval", "table"]


def bar() -> Console:
    """Where progress is shown: on a terminal only, apart from the output."""
    return Console(stderr=True, quiet=not sys.stderr.isatty())


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
    width = None if sys.stdout.isatty() else 140
    Console(width=width, highlight=False).print(shown)
