"""What a death costs: two workers crawl a site of two hosts, one is killed (-9), and started again when its lease has ended.

    python -m benchmarks.deaths [--pages 1000] [--share 0.5] [--heir rest] [--copies] [--alone] [--figures FILE]

Tells how many pages of its shard the killed worker had fetched, how many of them were fetched again, how many contents
were kept twice, and how many were lost.
"""

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks import figures
from tests.support.redis import running_server
from tests.support.shards import Hosts, Single, Worker, kept, serve

#: Seconds.
LEASE = 30.0
HOUR = 3600.0


def main() -> None:
    """Runs one trial."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=1000, help="of each shard")
    parser.add_argument(
        "--share", type=float, default=0.5, help="of them that were fetched when the worker is killed"
    )
    parser.add_argument("--heir", default="rest", choices=("all", "rest"))
    parser.add_argument("--copies", action="store_true", help="each content is at the other host, too")
    parser.add_argument("--alone", action="store_true", help="there is one host, and one worker")
    figures.add_option(parser)
    options = parser.parse_args()
    hosts = 1 if options.alone else 2
    contents = options.pages * (1 if options.copies else hosts)
    kind = Hosts if options.copies else Single
    with (
        running_server() as server,
        serve(kind(hosts, contents)) as site,
        tempfile.TemporaryDirectory() as name,
    ):
        folder = Path(name)

        def start(shard: str) -> Worker:
            settings = {"DEDUP_LEASE": LEASE, "DEDUP_INDEX": server.address, "DEDUP_HEIR": options.heir}
            return Worker(site, folder, shard, lease=LEASE, **settings)

        def paths(number: int) -> set[str]:
            return {asked.path for asked in site.asked if asked.by == str(number)}

        workers = [start(f"{number + 1}/{hosts}") for number in range(hosts)]
        killed = workers[-1]
        while len(site.asked) < hosts * options.share * options.pages:
            time.sleep(0.05)
        while len(paths(hosts - 1)) < options.share * options.pages:
            time.sleep(0.05)
        assert killed.kill()
        used = {
            key.decode().rpartition("}:")[2]: server.client.memory_usage(key, samples=0)
            for key in server.client.scan_iter("shingleback:shards:*")
        }
        begun = time.monotonic()
        heir = start(f"{hosts}/{hosts}")
        assert [worker.wait(HOUR) for worker in (*workers[:-1], heir)] == [0] * hosts
        counts = kept(folder)
        before, after = paths(hosts - 1), paths(hosts)
        stats = heir.stats()
        names = (
            "new",
            "same",
            "duplicate",
            "unjudged/uncertain",
            "unjudged/index",
            "fetched_again",
            "uncertain",
        )
        for worker in {*workers[:-1], heir}:
            print({name: worker.stats()[f"dedup/{name}"] for name in names})
        row = {
            "pages": options.pages,
            "heir": options.heir,
            "each at both hosts": "yes" if options.copies else "no",
            "killed after": len(before),
            "fetched again": len(before & after),
            "twice": sum(number > 1 for number in counts.values()),
            "lost": contents - len(counts),
        }
        figures.write(options.figures, [row])
        print(
            f"heir {options.heir}, {options.pages} pages, copies {options.copies}: killed after {len(before)}, "
            f"fetched again {len(before & after)}, heir fetched {len(after)}, "
            f"contents twice {row['twice']}, most {max(counts.values())}, "
            f"lost {row['lost']}, inherited {stats['dedup/shard/inherited']}, taken {stats['dedup/shard/taken']}, "
            f"{time.monotonic() - begun:.0f} s, redis {used}",
            flush=True,
        )


if __name__ == "__main__":
    main()
