"""A short fixed set of random trials; ``make chaos`` runs more of them."""

from pathlib import Path

import pytest

from tests.chaos.spec import Spec, draw
from tests.chaos.trial import lost

#: Trials in which something was lost once, as they were shrunk.
FOUND = (
    Spec(callback="kwargs"),
    Spec(callback="meta", chrome=40),
    Spec(4, copies=("print",), fails=0.4, slow=0.1, at_once=16, whole=True),
    Spec(index="redis", sessions=True, plan="kill", moment=0.9, delay=0.15),
)


@pytest.mark.parametrize("spec", [*FOUND, draw(1)], ids=str)
def test_a_crawl_with_the_filter_hands_over_what_it_hands_over_without(
    spec: Spec, redis_socket: Path
) -> None:
    assert lost(spec, f"unix://{redis_socket}") == set()
