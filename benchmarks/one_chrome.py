"""Whether copies are still found, and what a claim costs, as the pages of one site become many.

    python -m benchmarks.one_chrome [--pages 100000] [--stores file redis] [--own 60]

All pages have one chrome, marked as such on every second site: a menu of 40 items that end in the same five words, and a
footer.  Each has so many words of its own, and an advert.  When 1,000 pages are filed, and three times as many, and so on, 300
copies of pages drawn from all of them are claimed: at another address, with another advert and counter.  Told are the share
of copies that is dropped, how many drops name another page, how many of the pages were dropped, and the CPU of the claims
of the last 300 pages, of this process and of the Redis server.  The first 3,000 pages are claimed, and the last 300 of each
size; the others are filed as they would be.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Iterator

import redis.asyncio as aioredis

from benchmarks.redis_claims import server_time
from dedup import Detector, Fingerprint, open_index
from dedup.index import Entry, Index
from dedup.index.entry import rare_keys
from tests.support.pages.prose import Prose
from tests.support.redis import running_server

#: Copies at each size, and pages whose claims are measured.
TRIED = 300
FIRST = 1000
#: Of the first pages so many are claimed: by then the chrome of the site is known.
CLAIMED = 3000


class Site:
    """A site of any number of pages."""

    def __init__(self, own: int, seed: int) -> None:
        self._prose, self._own = Prose(random.Random(seed)), own
        ending = self._prose.text(5)[:-1]
        items = (f"<li><a href=/s{item}>{self._prose.text(2)[:-1]} {ending}</a>" for item in range(40))
        tag = "nav" if seed % 2 else "div"
        self._menu = f"<{tag}><ul>{''.join(items)}</ul></{tag}>"
        self._foot = f"<footer>{self._prose.text(60)}</footer>"

    def texts(self, number: int) -> str:
        """The own part of a page: its heading and its text."""
        prose = self._prose
        prose.rng = random.Random(f"text {number}")
        return f"<h1>{prose.text(5)[:-1]}</h1><p>{prose.text(self._own)}</p>"

    def page(self, number: int, view: int = 0) -> str:
        """A view of a page."""
        rng = random.Random(f"view {number} {view}")
        advert = f"<div>Today only: {rng.choice(self._prose.words)} for {rng.randrange(90)} euros</div>"
        text = f"{self.texts(number)}<p>Visitor {rng.randrange(10**6)}</p>"
        return f"<html><body>{self._menu}{advert}<main>{text}</main>{self._foot}</body></html>"


def address(number: int) -> str:
    return f"http://site.example/a/{number}.html"


class Trial:
    """What one index has said."""

    def __init__(self, name: str, index: Index, client: aioredis.Redis | None) -> None:
        self.name, self.index, self._client = name, index, client
        self.dropped = 0
        self._spent = [0.0, 0.0]

    async def _now(self) -> list[float]:
        return [time.process_time(), await server_time(self._client) if self._client else 0.0]

    async def keep(self, pages: list[tuple[int, Fingerprint]]) -> None:
        """Claims and confirms pages."""
        began = await self._now()
        for number, page in pages:
            verdict = await self.index.claim(f"{number}", address(number), page)
            self.dropped += not verdict.kept
            await self.index.confirm(f"{number}")
        ended = await self._now()
        self._spent = [(end - begin) / len(pages) * 1e6 for begin, end in zip(began, ended, strict=True)]

    async def add(self, pages: list[tuple[int, Fingerprint]]) -> None:
        """Files pages without a verdict, as pages of this run."""
        hosts, now, entries = self.index.hosts, int(time.time()), list[Entry]()
        assert hosts is not None
        for number, page in pages:
            assert page.simhash is not None
            part, url = hosts.part(page, "site.example"), address(number)
            keys = rare_keys(part.keys, page.digest)
            run, markup = self.index.run, page.markup or page.digest
            entries.append(
                Entry(
                    f"{number}",
                    url,
                    page.simhash,
                    0,
                    page.digest,
                    page.bands,
                    part.sketch,
                    now,
                    run,
                    markup,
                    page.called,
                    keys,
                )
            )
        await self.index.add(entries)

    async def tell(self, kept: int, copies: list[tuple[int, Fingerprint]]) -> None:
        """Claims copies, and prints what came of it."""
        found = wrong = crowded = 0
        for number, page in copies:
            name = f"copy of {number}"
            verdict = await self.index.claim(name, f"{address(number)}?print=1", page)
            crowded += verdict.crowded
            if verdict.kept:
                await self.index.release(name)
            else:
                found += verdict.of == address(number)
                wrong += verdict.of != address(number)
        here, there = self._spent
        print(
            f"{self.name:6} {kept:8,} {found / len(copies):7.3f} {wrong:6} {self.dropped:8} {crowded:8} {here:8.0f} {there:8.0f}",
            flush=True,
        )


def sizes(most: int) -> Iterator[int]:
    size = FIRST
    while size < most:
        yield size
        size = size * 3 if str(size)[0] == "1" else size * 10 // 3
    yield most


async def measure(site: Site, addresses: dict[str, str], most: int) -> None:
    detector = Detector()
    trials = []
    for store, place in addresses.items():
        client = aioredis.Redis(unix_socket_path=place[7:]) if store == "redis" else None
        trials.append(Trial(store, open_index(place, detector, expected_pages=most), client))
    rng, done = random.Random(1), 0
    for size in sizes(most):
        ends = [*range(done + 1000, size - TRIED, 1000), size - TRIED, size]
        for end in ends:
            pages = [(n, detector.fingerprint(site.page(n), url=address(n))) for n in range(done, end)]
            done = end
            is_claimed = end == size or end <= CLAIMED
            for trial in trials:
                await (trial.keep if is_claimed else trial.add)(pages)
        chosen = rng.sample(range(size), TRIED)
        copies = [(n, detector.fingerprint(site.page(n, 1), url=f"{address(n)}?print=1")) for n in chosen]
        for trial in trials:
            await trial.tell(size, copies)
    for trial in trials:
        await trial.index.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--stores", nargs="*", default=["file", "redis"])
    parser.add_argument("--own", type=int, default=60)
    parser.add_argument("--seed", type=int, default=2)
    options = parser.parse_args()
    print("index      kept  recall  wrong  dropped  crowded   µs here  µs server")
    with tempfile.TemporaryDirectory() as folder, running_server() as server:
        places = {"memory": "memory:", "file": f"file:{folder}/index.sqlite", "redis": server.address}
        chosen = {store: places[store] for store in options.stores}
        asyncio.run(measure(Site(options.own, options.seed), chosen, options.pages))


if __name__ == "__main__":
    main()
