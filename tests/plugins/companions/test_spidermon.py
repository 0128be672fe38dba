"""spidermon: the monitor for the share of drops, as docs/spiders.md sets it up."""

import pytest

from tests.support.crawls import page
from tests.support.projects import Project, documented

COPIES = {f"/copy?{number}": page("copy", more=str(number)) for number in range(5)}


@pytest.fixture
def watched(project: Project) -> Project:
    """The project with the monitor of the documentation."""
    project.write("monitors", documented("Monitors", "# monitors.py"))
    theirs = project.settings["EXTENSIONS"]
    project.obey(documented("Monitors", "# settings.py").replace("shop.monitors", "theirs.monitors"))
    project.settings["EXTENSIONS"] |= theirs
    return project


def test_documented_monitor(watched: Project) -> None:
    watched.site.pages = {"/": page("home", *COPIES), **COPIES}
    done = watched.crawl()
    assert len(done.items) == 2
    assert "4 of 6 pages (67%) were dropped as near-duplicates; 30% are allowed" in done.output
    assert "FAILED (failures=1)" in done.output


@pytest.mark.parametrize("enabled", [True, False])
def test_few_drops(watched: Project, enabled: bool) -> None:
    watched.site.pages = {"/": page("home", "/a", "/b"), "/a": page("a"), "/b": page("b")}
    done = watched.crawl(DEDUP_ENABLED=enabled)
    assert len(done.items) == 3
    assert done.mishaps == []
    assert "1 monitor in" in done.output


def test_default_share(watched: Project) -> None:
    watched.site.pages = {"/": page("home", "/a", "/b", "/b?2", "/b?3")}
    watched.site.pages |= {"/a": page("a")} | {path: page("b") for path in ("/b", "/b?2", "/b?3")}
    watched.write(
        "monitors",
        """
        from dedup.scrapy.monitors import NearDuplicateMonitor
        from spidermon import MonitorSuite

        class CloseSuite(MonitorSuite):
            monitors = [NearDuplicateMonitor]
        """,
    )
    done = watched.crawl()
    assert (done.stats["dedup/dropped"], done.stats["dedup/pages"], done.mishaps) == (2, 5, [])
