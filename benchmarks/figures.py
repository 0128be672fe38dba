"""What benchmarks have found, for the tables of the documents: a file of docs/figures has what one or several were told.

A benchmark that is given ``--figures FILE`` writes its rows there, by its command; the same command writes them anew.  A
table of the documents that stands below such a line has a row for each of the file's, with the values of these names, and
``make settings`` writes them:

    <!-- living.json: noise, lost, ms -->
"""

import argparse
import json
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path


def add_option(parser: argparse.ArgumentParser) -> None:
    """Lets a benchmark be told where its figures go."""
    parser.add_argument("--figures", type=Path, metavar="FILE", help="write them there, for the documents")


def write(path: Path | None, rows: Sequence[Mapping[str, object]]) -> None:
    """Writes the rows of the benchmark that runs, beside what others have written there; with no path, nothing."""
    if path is None:
        return
    kept = json.loads(path.read_text()) if path.exists() else {}
    kept[_command()] = {"day": time.strftime("%Y-%m-%d", time.gmtime()), "rows": rows}
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


def _command() -> str:
    """How the benchmark was called, but for folders, which are other ones elsewhere."""
    script, *given = sys.argv
    module = sys.modules["__main__"].__spec__
    called = ("-m", module.name.removesuffix(".__main__")) if module else (f"benchmarks/{Path(script).name}",)
    at = given.index("--figures")
    told = map(_named, given[:at] + given[at + 2 :])
    return shlex.join(("python", *called, *told))


def _named(argument: str) -> str:
    """An argument without the folder in which it names something, such as a site."""
    folder = Path(argument.partition(":")[0]).parent
    return argument.removeprefix(f"{folder}/") if folder.name and folder.exists() else argument
