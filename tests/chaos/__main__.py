"""``python -m tests.chaos [--seed N] [--budget SECONDS]``: trials from a seed on; each loss is shrunk and told."""

import argparse
import sys
import time
from itertools import count

from tests.chaos.spec import draw
from tests.chaos.trial import lost, shrunk
from tests.support.redis import PROGRAM, running_server


def main() -> int:
    """Runs trials until the time is over; the exit status is 1 if anything was lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the first trial")
    parser.add_argument("--budget", type=float, default=60, help="seconds after which no trial begins")
    options = parser.parse_args()
    assert PROGRAM, "redis-server is not installed"
    failed = 0
    with running_server() as server:
        end = time.monotonic() + options.budget
        for seed in count(options.seed):
            if time.monotonic() > end:
                print(f"{seed - options.seed} trials from seed {options.seed} on, {failed} with a loss")
                return int(bool(failed))
            spec = draw(seed)
            if missing := lost(spec, server.address):
                failed += 1
                print(
                    f"seed {seed} lost {len(missing)}: {', '.join(sorted(missing)[:5])} ...\n  {spec}",
                    flush=True,
                )
                print(f"  the simplest: {shrunk(spec, server.address)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
