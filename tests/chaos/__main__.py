"""``python -m tests.chaos [--seed N] [--budget SECONDS]``: trials from a seed on; each loss is shrunk and told."""

import argparse
import sys
import time
from collections import Counter
from itertools import count

from tests.chaos.spec import draw
from tests.chaos.trial import run, shrunk
from tests.support.redis import PROGRAM, running_server


def main() -> int:
    """Runs trials until the time is over; the exit status is 1 if anything was lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the first trial")
    parser.add_argument("--budget", type=float, default=60, help="seconds after which no trial begins")
    options = parser.parse_args()
    assert PROGRAM, "redis-server is not installed"
    trials, disturbed, failed = Counter[str](), Counter[str](), Counter[str]()
    with running_server() as server:
        end = time.monotonic() + options.budget
        for seed in count(options.seed):
            if time.monotonic() > end:
                break
            spec = draw(seed)
            kind = f"{spec.plan}, {spec.store}"
            begun = time.monotonic()
            if (outcome := run(spec, server)) is None:
                continue
            missing, was_disturbed = outcome
            trials[kind] += 1
            disturbed[kind] += was_disturbed
            failed[kind] += bool(missing)
            print(f"seed {seed}: {kind}, {len(missing)} lost, {time.monotonic() - begun:.0f} s", flush=True)
            if missing:
                print(f"  {', '.join(sorted(missing)[:5])} ...\n  {spec}", flush=True)
                print(f"  the simplest: {shrunk(spec, server)}", flush=True)
    for kind, number in sorted(trials.items()):
        print(f"{number:5} {kind}: {disturbed[kind]} disturbed, {failed[kind]} with a loss")
    print(f"{trials.total()} trials from seed {options.seed} on, {failed.total()} with a loss")
    return int(failed.total() > 0)


if __name__ == "__main__":
    sys.exit(main())
