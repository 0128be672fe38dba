"""scrapyd: a project is deployed as an egg, and its jobs run at once, each in a process of its own."""

import json
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import requests

from tests.plugins.companions.test_scrapy_poet import PAGES
from tests.support.projects import SPIDER, Project, documented
from tests.support.servers import answering, free_port
from tests.support.waiting import LIMIT, wait_until


class Daemon:
    """A scrapyd that has the project."""

    def __init__(self, project: Project, url: str, folder: Path) -> None:
        self.project = project
        self.url = url
        self.folder = folder

    def _post(self, name: str, **form: Any) -> dict[str, Any]:
        files = {"egg": form.pop("egg")} if "egg" in form else None
        answer = requests.post(f"{self.url}/{name}.json", form, files=files, timeout=LIMIT).json()
        assert answer["status"] == "ok", answer
        return dict(answer)

    def deploy(self) -> None:
        """What scrapyd-deploy does: makes an egg of the project, and sends it."""
        self.project.configure()
        egg = self.project.folder / "theirs.egg"
        with zipfile.ZipFile(egg, "w") as file:
            for module in (self.project.folder / "theirs").glob("*.py"):
                file.write(module, f"theirs/{module.name}")
            file.writestr("EGG-INFO/PKG-INFO", "Metadata-Version: 1.0\nName: theirs\nVersion: 1\n")
            file.writestr("EGG-INFO/entry_points.txt", "[scrapy]\nsettings = theirs.settings\n")
        self._post("addversion", project="theirs", version="1", egg=egg.read_bytes())

    def run(self, *spiders: str, **settings: Any) -> list[tuple[list[str], str]]:
        """Runs jobs at once, one for each name; of each the paths of its items, and its log."""
        site, all_there = self.project.site, Event()
        site.requests.clear()

        def on_request(path: str) -> None:
            if Counter(site.requests)["/"] == len(spiders):
                all_there.set()
            if path == "/":
                all_there.wait(LIMIT)

        site.on_request = on_request
        job = {"project": "theirs", "url": site.url + "/"}
        job["setting"] = [f"{name}={value}" for name, value in settings.items()]  # type: ignore[assignment]
        jobs = [(spider, self._post("schedule", spider=spider, **job)["jobid"]) for spider in spiders]
        list_jobs = f"{self.url}/listjobs.json?project=theirs"

        def finished() -> set[str]:
            answer = requests.get(list_jobs, timeout=LIMIT).json()
            return {each["id"] for each in answer["finished"]}

        wait_until(lambda: finished() >= {name for _, name in jobs})
        return [(self._items(*each), self._file("logs", *each, "log")) for each in jobs]

    def _file(self, kind: str, spider: str, job: str, suffix: str) -> str:
        path = self.folder / kind / "theirs" / spider / f"{job}.{suffix}"
        return path.read_text() if path.exists() else ""

    def _items(self, spider: str, job: str) -> list[str]:
        lines = self._file("items", spider, job, "jl").splitlines()
        return [json.loads(line)["url"].removeprefix(self.project.site.url) for line in lines]


@pytest.fixture
def daemon(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """It has two spiders, and room for four jobs; no scrapy.cfg is above its folder."""
    project.site.pages = PAGES
    project.settings["EXTENSIONS"] = {}
    project.write("spiders", SPIDER + '\n    class Other(Walker):\n        name = "other"\n')
    port, folder = free_port(), tmp_path_factory.mktemp("daemon")
    lines = [f"http_port = {port}", "items_dir = items", "poll_interval = 0.1", "max_proc = 4"]
    (folder / "scrapyd.conf").write_text("\n".join(["[scrapyd]", *lines, ""]))
    with answering(port, folder, "scrapyd") as url:
        yield Daemon(project, url, folder)


KEPT = ["/", "/a", "/c"]


def test_jobs_at_once(daemon: Daemon) -> None:
    daemon.deploy()
    spiders = ["walker", "other", "walker"]
    assert [items for items, _ in daemon.run(*spiders, DEDUP_ENABLED=0)] == [[*PAGES]] * 3
    jobs = daemon.run(*spiders)
    assert [items for items, _ in jobs] == [KEPT] * 3
    warned = [log.count("is in use by another crawl") for _, log in jobs]
    assert warned in ([1, 0, 0], [0, 0, 1]), "the spider that runs twice"
    assert not any(" ERROR: " in log for _, log in jobs)
    kept = daemon.folder / ".scrapy" / "dedup" / "theirs"
    assert sorted(path.name for path in kept.glob("*.sqlite")) == ["other.sqlite", "walker.sqlite"]
    assert len((daemon.folder / "duplicates.jsonl").read_text().splitlines()) == 3


def test_documented_settings(daemon: Daemon) -> None:
    code = documented("scrapyd and scrapyrt", "# settings.py, for scrapyd")
    daemon.project.obey(code.replace("/var/log/shop", f"{daemon.project.folder}/drops"))
    daemon.deploy()
    assert [items for items, _ in daemon.run("walker", "other")] == [KEPT] * 2
    names = sorted(path.name[:6] for path in (daemon.project.folder / "drops").glob("*.jsonl"))
    assert names == ["other-", "walker"]
