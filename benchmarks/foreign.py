"""What spiders of strangers get: without the add-on, with it, in a second crawl, and with DEDUP_FOLLOW=yield.

    python -m benchmarks.foreign [SHAPE ...] [-s NAME=VALUE ...] [--figures FILE]

The spiders are those of `tests.support.foreign`, unchanged; of their settings, only ADDONS is ours, and where index and
log are.  Contents are items without their URLs.  `dropped` counts the pages that the first crawl with the add-on dropped.
"""

import argparse
import logging
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks import figures
from tests.support.foreign import SHAPES, gather, serving

ADDON = {"ADDONS": {"dedup.scrapy.Addon": 500}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help="names of shapes; all by default")
    parser.add_argument("-s", dest="settings", action="append", default=[], metavar="NAME=VALUE")
    figures.add_option(parser)
    wanted = parser.parse_args()
    lost = Counter[str]()
    more = dict(setting.split("=", 1) for setting in wanted.settings)
    logging.disable()
    warnings.simplefilter("ignore")
    print("| spider's shape | without | with | dropped | second run | follow = yield |")
    print("| --- | --- | --- | --- | --- | --- |")
    for shape in SHAPES:
        if wanted.shapes and shape.__name__ not in wanted.shapes:
            continue
        with serving() as site, tempfile.TemporaryDirectory() as folder:
            ours: dict[str, Any] = {"FILES_STORE": folder, "DEDUP_LOG": f"{folder}/log.jsonl"} | more
            index = {"DEDUP_INDEX": f"file:{Path(folder, 'index.sqlite')}"}
            runs = (
                gather(shape, site, FILES_STORE=folder),
                gather(shape, site, **ADDON | index | ours),
                gather(shape, site, **ADDON | index | ours),
                gather(shape, site, **ADDON | {"DEDUP_INDEX": "memory:", "DEDUP_FOLLOW": "yield"} | ours),
            )
        without, first, second, followed = (len(run.contents) for run in runs)
        lost.update(contents=without)
        for name, run in zip(("first", "second", "yield"), runs[1:], strict=True):
            lost[name] += len(runs[0].contents - run.contents)
        dropped = runs[1].stats.get("dedup/dropped", 0)
        print(
            f"| `{shape.__name__}`: {shape.__doc__} | {without} | {first} | {dropped} | {second} | {followed} |",
            flush=True,
        )
    figures.write(wanted.figures, [lost])


if __name__ == "__main__":
    main()
