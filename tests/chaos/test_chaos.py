"""A short fixed set of random trials; ``make chaos`` runs more of them."""

import pytest

from tests.chaos.plans import PLANS
from tests.chaos.spec import Spec, draw
from tests.chaos.trial import run
from tests.support.redis import Server

#: Trials in which something was lost once, as they were shrunk.
FOUND = (
    Spec(callback="kwargs"),
    Spec(callback="meta", chrome=40),
    Spec(4, copies=("print",), fails=0.4, slow=0.1, at_once=16, whole=True),
    Spec(index="redis", sessions=True, plan="kill", moment=0.9, delay=0.15),
)


#: Another one of each plan that several processes or a server have a part in.
PLANNED = (
    pytest.param(Spec(3, plan=plan, copies=("print",), hosts=2, at_once=4), marks=pytest.mark.slow)
    for plan in PLANS
    if plan not in {"once", "kill"}
)
#: A worker is killed, and the one in its place crawls the rest.
HEIR = Spec(5, plan="shards", copies=("print",), hosts=2, at_once=4, delay=0.05, heir="rest", contents=20)

#: Items that several pages make, of which only the first one has changed: `tests/contrib/changes/test_changes.py` has a shorter one.
CARRIED = Spec(520026, changes=0.3, callback="chain", index="file", plan="again", incremental=True)


@pytest.mark.parametrize(
    "spec",
    [
        *FOUND,
        pytest.param(HEIR, marks=pytest.mark.slow),
        pytest.param(CARRIED, marks=pytest.mark.slow),
        *PLANNED,
        pytest.param(draw(1), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_crawl_with_the_filter_hands_over_what_it_hands_over_without(spec: Spec, server: Server) -> None:
    outcome = run(spec, server)
    assert outcome is not None
    assert outcome.lost == set()
