"""Stores what was learnt of links in a file, for a job that goes on and for the commands that show it.

The file is JSON, and is replaced as a whole.
"""

import json
import os
from dataclasses import astuple
from pathlib import Path

from dedup.files import make_private
from dedup.links.policy import Links
from dedup.links.rates import Count

FORMAT = 1


def write_state(path: Path, links: Links) -> bool:
    """Writes all but the links that wait; says whether it could."""
    state = {
        "format": FORMAT,
        "rates": {name: astuple(count) for name, count in links.yields.rates.items()},
        "met": dict(links.yields.met.items()),
        "hosts": links.parking.hosts(),
    }
    new = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        make_private(new)
        new.write_text(json.dumps(state), "ascii")
        os.replace(new, path)
    except OSError:
        return False
    return True


def read_state(path: Path, links: Links) -> bool:
    """Takes what an earlier part of the crawl has left; says whether there was anything that can be read.

    A file that can't be read teaches nothing.
    """
    try:
        state = json.loads(path.read_text("ascii"))
        if state["format"] != FORMAT:
            return False
        rates = {
            str(name): Count(float(judged), float(new), *map(int, whole))
            for name, (judged, new, *whole) in state["rates"].items()
        }
        met = {
            int(key): [float(each) for each in value] if value else None
            for key, value in state["met"].items()
        }
        hosts = {str(host): (int(found), int(spent)) for host, (found, spent) in state["hosts"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return False
    for name, count in rates.items():
        links.yields.rates[name] = count
    links.yields.met.update(met)
    links.parking.put(hosts)
    return True
