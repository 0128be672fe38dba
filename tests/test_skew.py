"""How unequally the prefixes of an index's tables are shared."""

import random

import numpy as np
import pytest

from dedup.fingerprint.plans import EXACT, plan_for
from dedup.lab.skew import skew


def test_skew_is_how_many_pages_share_a_prefix() -> None:
    plan = plan_for(4, max_distance=3)
    rng = random.Random(8)
    keys = [
        (
            rng.getrandbits(64),
            *(rng.choice([7, 8]) for _ in EXACT[1:]),
            rng.choice([5, 6 << 40, rng.getrandbits(64)]),
        )
        for _ in range(400)
    ]
    for one in skew(np.array(keys, np.uint64), plan, limit=100):
        table = (*EXACT, *plan.tables)[one.table]
        shared: dict[int, int] = {}
        for key in keys:
            prefix = table.permute(key[table.column]) >> (64 - table.prefix)
            shared[prefix] = shared.get(prefix, 0) + 1
        assert one.largest == max(shared.values())
        assert one.over == sum(size > 100 for size in shared.values())
        assert one.mean == pytest.approx(sum(size * size for size in shared.values()) / 400)
