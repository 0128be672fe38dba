"""A short fixed set of random trials; ``make chaos`` runs more of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.plans import PLANS, Servers
from tests.chaos.spec import Spec, draw
from tests.chaos.trial import run

#: Trials in which something was lost once, as they were shrunk.
FOUND = (
    Spec(callback="kwargs"),
    Spec(callback="meta", chrome=40),
    Spec(4, copies=("print",), fails=0.4, slow=0.1, at_once=16, whole=True),
    Spec(index="redis", sessions=True, plan="kill", moment=0.9, delay=0.15),
)


#: Another one of each plan that several processes or a server have a part in, and of archives.
PLANNED = (
    pytest.param(Spec(3, plan=plan, copies=("print",), hosts=2, at_once=4), marks=pytest.mark.slow)
    for plan in PLANS
    if plan not in {"once", "kill"}
)


@pytest.fixture(scope="module")
def servers(redis_socket: Path) -> Iterator[Servers]:
    with Servers() as servers:
        yield servers


@pytest.mark.parametrize("spec", [*FOUND, *PLANNED, pytest.param(draw(1), marks=pytest.mark.slow)], ids=str)
def test_a_crawl_with_the_filter_hands_over_what_it_hands_over_without(spec: Spec, servers: Servers) -> None:
    outcome = run(spec, servers)
    assert outcome is not None
    assert outcome.lost == set()
