"""Stores what was learnt of links in a file, for a job that goes on.

The file is JSON, and is replaced as a whole.
"""

import os
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, json

from dedup.files import make_private
from dedup.links.policy import Links
from dedup.links.rates import Count

FORMAT = 2


class _State(Struct):
    format: int
    rates: dict[str, Count]
    hosts: dict[str, tuple[int, int]]


def write_state(path: Path, links: Links) -> None:
    """Writes all but the links that wait, if it can."""
    new = path.with_name(path.name + ".new")
    with suppress(OSError):
        make_private(new)
        new.write_bytes(json.encode(_State(FORMAT, dict(links.rates), links.parking.hosts)))
        os.replace(new, path)


def read_state(path: Path, links: Links) -> None:
    """Takes what an earlier part of the crawl has left; a file that can't be read teaches nothing."""
    with suppress(OSError, ValueError, RecursionError):
        state = json.decode(path.read_bytes(), type=_State)
        if state.format == FORMAT:
            links.rates.update(state.rates)
            links.parking.hosts.update(state.hosts)
