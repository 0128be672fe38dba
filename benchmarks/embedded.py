"""The index in a file, of a million pages or more: opening it, its memory, and the CPU time of claims.

    python benchmarks/embedded.py FOLDER [--pages 1000000] [--fingerprints FILE.npz [--sites L N]] [--claims 20000] [--figures FILE]

Fingerprints are random; or, of FILE.npz, ``simhash_L`` and ``sketch_L`` are a site, which is grown to that many pages as
in benchmarks/tables.py: so its skew is kept, and no page resembles another enough to be dropped.  An index that is in
the folder already is used again.  Each part runs in a process of its own.
"""

import argparse
import asyncio
import gc
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace
from tables import grown

from benchmarks import figures
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Called, Fingerprint
from dedup.fingerprint.shingles import Hashes
from dedup.index import open_index
from dedup.index.entry import Entry
from dedup.index.local.sqlite import Store

BATCH, TWINS = 10_000, 2000
#: Of this share of its slots the sketch of a grown page has what a page of the site has.
SHARED = 0.6
#: Of a page.
SHINGLES = 1000
RUN = "0a1b" * 8


class Pages:
    """Simhashes and sketches of a site that is grown, or random ones."""

    def __init__(self, file: Path | None, site: str | None, number: int, seed: int) -> None:
        self._rng = rng = np.random.default_rng(seed)
        self.sketches: npt.NDArray[np.uint8] | None = None
        if file is None or site is None:
            self.simhashes: Hashes = rng.integers(0, 2**64, number, np.uint64)
            return
        with np.load(file) as arrays:
            of = rng.integers(0, len(arrays[f"simhash_{site}"]), number)
            self.simhashes = grown(arrays[f"simhash_{site}"], of, rng)
            self._of, self.sketches = (
                of,
                arrays[f"sketch_{site}"][:, :128],
            )  # without how many shingles there were

    def batch(self, start: int, end: int) -> list[tuple[int, bytes, list[int]]]:
        """Simhash, sketch, and six other numbers of some pages."""
        rng, count = self._rng, end - start
        sketches = rng.integers(0, 256, (count, 128), np.uint8)
        if self.sketches is not None:
            kept = rng.random((count, 512)) < SHARED
            mask = (np.packbits(kept.repeat(2, axis=1), axis=1)).reshape(count, 128)
            sketches = (sketches & ~mask) | (self.sketches[self._of[start:end]] & mask)
        others = rng.integers(0, 2**64, (count, 6), np.uint64).tolist()
        octets = sketches.tobytes()
        each = (octets[at : at + 128] + SHINGLES.to_bytes(8, "little") for at in range(0, len(octets), 128))
        return list(zip(self.simhashes[start:end].tolist(), each, others, strict=True))


def page_id(others: list[int]) -> str:
    return f"{others[0]:016x}{others[1]:016x}{others[2] & 0xFFFFFFFF:08x}"


def build(path: Path, number: int, file: Path | None, site: str | None) -> str:
    """Files pages as `import` does, without what is in memory."""
    pages, start = Pages(file, site, number, seed=1), time.process_time()
    store = Store(str(path), open_index(f"file:{path}", Detector()).parameters.texts)
    store.load(1)
    store.hold()
    for at in range(0, number, BATCH):
        batch = pages.batch(at, min(at + BATCH, number))
        store.write(
            [
                (0, Entry(page_id(x), f"http://www.example.org/catalogue/item-{at + n}.html", simhash, 0, x[3], (),
                          sketch, 1_800_000_000, RUN, x[4], Called(x[0], x[1]), tuple(number ^ 1 for number in x[:4])))
                for n, (simhash, sketch, x) in enumerate(batch)
            ],
            [],
            {},
        )  # fmt: skip
    store.close()
    spent = (time.process_time() - start) / number * 1e6
    return f"built in {spent:.0f} us a page, {os.path.getsize(path) / number:.0f} bytes a page in the file"


def anonymous() -> int:
    """Bytes of memory of this process that are in use, files that are mapped left out."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) << 10


def spent(name: str, seconds: list[float]) -> Iterator[tuple[str, float]]:
    p = sorted(seconds)
    yield f"{name}: median us", round(p[len(p) // 2] * 1e6)
    yield f"{name}: p99 us", round(p[len(p) * 99 // 100] * 1e6)
    yield f"{name}: longest ms", round(p[-1] * 1e3, 1)


async def use(path: Path, claims: int, file: Path | None, site: str | None) -> dict[str, object]:
    """Opens an index, and claims new pages, each of which is confirmed, and near-duplicates of those."""
    index, before = open_index(f"file:{path}", Detector()), anonymous()
    wall, cpu = time.perf_counter(), time.process_time()
    await index.open()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    opened, number = anonymous() - before, await index.count()
    queries = Pages(file, site, claims, seed=int(time.time())).batch(0, claims)
    gc.collect()
    gc.freeze()  # or a look at all these takes 25 ms of some claim
    new: list[float] = []
    confirming: list[float] = []
    twins: list[float] = []
    outcomes = {"new": 0, "same": 0, "duplicate": 0, "crowded": 0, "found": 0}
    rng = np.random.default_rng(2)
    for at, (simhash, sketch, x) in enumerate(queries):
        page = Fingerprint(simhash, sketch, 1000, 50, digest=x[3], markup=x[4])
        name, url = page_id(x), f"http://www.example.org/catalogue/claim-{x[0]}.html"
        start = time.thread_time()
        verdict = await index.claim(name, url, page)
        new.append(time.thread_time() - start)
        outcomes[verdict.status] += 1
        outcomes["crowded"] += verdict.crowded
        start = time.thread_time()
        await index.confirm(name)
        confirming.append(time.thread_time() - start)
        if at % 100 == 0:
            await asyncio.sleep(0)
        if at % max(1, claims // TWINS) == 0:
            for bit in rng.integers(0, 64, rng.integers(0, 7)).tolist():
                simhash ^= 1 << bit
            page = replace(
                page,
                simhash=simhash,
                sketch=sketch[:120] + rng.bytes(8) + sketch[128:],
                digest=x[5],
                markup=x[2],
            )
            start = time.thread_time()
            verdict = await index.claim(f"twin of {name}", f"{url}?twin", page)
            twins.append(time.thread_time() - start)
            outcomes["found"] += verdict.of == url
            await index.release(f"twin of {name}")
    await asyncio.sleep(2)  # until all is written
    grown_by = anonymous() - before
    start = time.perf_counter()
    counted = await index.count()
    counting = time.perf_counter() - start
    await index.close()
    return {
        "site": site or "random",
        "pages": number,
        "opened in s": round(wall, 1),
        "of CPU": round(cpu, 1),
        "bytes of memory a page": round(opened / number),
        **dict(spent("new page", new)),
        **dict(spent("its confirmation", confirming)),
        **dict(spent("near-duplicate", twins)),
        "outcomes": f"{outcomes} of {claims} and {len(twins)} twins",
        "bytes of memory a page after all that": round(grown_by / (number + claims)),
        "counted": counted,
        "counted in ms": round(counting * 1e3),
    }


def apart(connection: Any, work: Callable[..., Any], *arguments: Any) -> None:
    result = work(*arguments)
    connection.send(asyncio.run(result) if asyncio.iscoroutine(result) else result)


def in_a_process(work: Callable[..., Any], *arguments: Any) -> Any:
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=apart, args=(there, work, *arguments))
    process.start()
    there.close()
    try:
        return here.recv()
    finally:
        process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pages", nargs="*", type=int, default=[1_000_000])
    parser.add_argument("--fingerprints", type=Path)
    parser.add_argument("--sites", nargs="*", default=["L", "N", "J", "A", "H"])
    parser.add_argument("--claims", type=int, default=20_000)
    figures.add_option(parser)
    options = parser.parse_args()
    rows = list[dict[str, Any]]()
    for pages in options.pages:
        for site in options.sites if options.fingerprints else [None]:
            path = options.folder / f"{site or 'random'}-{pages}.sqlite"
            print(f"{site or 'random'}, {pages:,} pages", flush=True)
            if not path.exists():
                print(f"  {in_a_process(build, path, pages, options.fingerprints, site)}", flush=True)
            rows.append(in_a_process(use, path, options.claims, options.fingerprints, site))
            rows[-1]["bytes of disk a page"] = round(os.path.getsize(path) / rows[-1]["counted"])
            for name, value in rows[-1].items():
                print(f"  {name}: {value}", flush=True)
    figures.write(options.figures, rows)


if __name__ == "__main__":
    main()
