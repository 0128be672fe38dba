"""What `scrapy dedup` does in a second of CPU time on one core: a folder of HTML, and the same pages as WARC.

    python benchmarks/archives.py FOLDER [--rounds 3] [--figures FILE]

In each round, fingerprints alone are made of the same pages, so that rounds on a busy machine can be compared.
"""

import argparse
import gzip
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks import figures
from dedup import Detector
from dedup.contrib.archives import Cleaning, Item, fingerprint, open_input


def record(item: Item) -> bytes:
    """A page of a folder as a record of WARC."""
    assert item.capture is not None
    assert isinstance(item.capture.body, bytes)
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + item.capture.body
    head = (
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n"
        f"WARC-Target-URI: {item.capture.url}\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def clean(path: Path, folder: Path) -> None:
    """The whole command, in this process."""
    kept, log = folder / "kept.jsonl", folder / "drops.jsonl"
    Cleaning([str(path)], str(kept), str(log), workers=1).run()
    kept.unlink()
    log.unlink()


def print_alone(path: Path) -> None:
    """Fingerprints of the pages, and nothing else."""
    detector = Detector()
    for item in open_input(path):
        if item.capture is not None:
            fingerprint(item.capture, detector)


def rate(pages: int, work: Callable[[], None]) -> float:
    """Pages a second of CPU time."""
    started = time.process_time()
    work()
    return pages / (time.process_time() - started)


def main() -> None:
    """Prints the median of some rounds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    figures.add_option(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        packed, plain = folder / "pages.warc.gz", folder / "pages.warc"
        pages = 0
        with packed.open("wb") as one, plain.open("wb") as other:
            for item in open_input(options.folder):
                if item.capture is not None:
                    octets = record(item)
                    one.write(gzip.compress(octets, 6))
                    other.write(octets)
                    pages += 1
        works: dict[str, Callable[[], None]] = {
            "fingerprints alone": lambda: print_alone(options.folder),
            "a folder": lambda: clean(options.folder, folder),
            "WARC, compressed": lambda: clean(packed, folder),
            "WARC, not compressed": lambda: clean(plain, folder),
        }
        found: dict[str, list[float]] = {name: [] for name in works}
        for _ in range(options.rounds):
            for name, work in works.items():
                found[name].append(rate(pages, work))
        print(f"{pages:,} pages, median of {options.rounds} rounds, pages a second of CPU time")
        for name, rates in found.items():
            print(f"{median(rates):7.0f}  {name}")
        figures.write(
            options.figures,
            [{"what": name, "pages a second": round(median(rates))} for name, rates in found.items()],
        )


if __name__ == "__main__":
    main()
