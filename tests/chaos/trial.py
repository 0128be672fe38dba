"""Runs trials: the same crawl without and with the filter, the second one disturbed; what only the first hands over is lost."""

import tempfile
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from tests.chaos.crawling import Process, contents, crawl, settings
from tests.chaos.plans import PLANS, Trial
from tests.chaos.site import Site, serve
from tests.chaos.spec import Spec, simpler
from tests.support.redis import Server


class Outcome(NamedTuple):
    """What came of a trial."""

    lost: set[str]  #: contents that are handed over without the filter, and not with it
    disturbed: bool  #: whether something was killed while it was at work


def run(spec: Spec, server: Server) -> Outcome | None:
    """Runs a trial; None if there was nothing to be lost."""
    # The site complains to the standard error of clients that were killed.
    with tempfile.TemporaryDirectory() as name, redirect_stderr(StringIO()):
        folder = Path(name)
        site = Site(spec, later=spec.plan in {"again", "kill"})
        with serve(site) as url:
            Process(crawl(folder / "without", settings(spec), url=url)).wait()
        wanted = contents(folder / "without")
        if not wanted:  # the spider, the pipeline or a middleware refuses all
            return None
        site = Site(spec)
        with serve(site) as url:
            trial = Trial(spec, server, folder, site, url)
            return Outcome(wanted - PLANS[spec.plan](trial), trial.disturbed)


def shrunk(spec: Spec, server: Server) -> Spec:
    """The simplest trial like this one in which something is lost, too."""
    for other in simpler(spec):
        if (outcome := run(other, server)) and outcome.lost:
            return shrunk(other, server)
    return spec
