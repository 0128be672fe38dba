"""Stores what was learnt of links in a file, for a job that goes on.

The file is JSON, and is replaced as a whole.
"""

import os
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


def write_state(path: Path, links: Links) -> bool:
    """Writes all but the links that wait; says whether it could."""
    new = path.with_name(path.name + ".new")
    try:
        make_private(new)
        new.write_bytes(json.encode(_State(FORMAT, dict(links.rates), links.parking.hosts)))
        os.replace(new, path)
    except OSError:
        return False
    return True


def read_state(path: Path, links: Links) -> bool:
    """Takes what an earlier part of the crawl has left; says whether there was anything that can be read.

    A file that can't be read teaches nothing.
    """
    try:
        state = json.decode(path.read_bytes(), type=_State)
    except (OSError, ValueError, RecursionError):
        return False
    if state.format != FORMAT:
        return False
    links.rates.update(state.rates)
    links.parking.hosts.update(state.hosts)
    return True
