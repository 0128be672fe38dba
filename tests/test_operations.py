"""How a crawl is watched: what Prometheus is told, the alerts, the dashboard."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from scrapy.exceptions import CloseSpider

from dedup.contrib.workers import shards
from dedup.scrapy import metrics
from tests.support import ROOT
from tests.support.crawls import Run, Site, Walker, page
from tests.support.processes import scrapy
from tests.support.redis import Server
from tests.support.servers import free_port
from tests.support.waiting import until

pytest.importorskip("prometheus_client")
yaml = pytest.importorskip("yaml")

WATCHING = ROOT / "docs" / "watching"
ALERTS = {
    rule["alert"]: rule
    for rule in yaml.safe_load((WATCHING / "alerts.yaml").read_text())["groups"][0]["rules"]
}
DASHBOARD = json.loads((WATCHING / "dashboard.json").read_text())
SITE = {
    "/": page("home", "/a", "/b", "/c"),
    "/a": page("story"),
    "/b": page("story", more="b"),
    "/c": page(3),
}


def asked(port: int) -> dict[str, float]:
    """What a crawler answers: every figure by its name and labels."""
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return {
        name: float(value) for name, _, value in (each.rpartition(" ") for each in lines if each[0] != "#")
    }


def figures(expression: str) -> set[str]:
    """The names of the figures in an expression of Prometheus."""
    return set(re.findall(r"\b(?:dedup|scrapy|process)_\w+", expression))


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in ALERTS.values())
    yield from (target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"])


def test_prometheus_is_told_every_figure_from_the_start_on(
    crawl: Run, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, told = free_port(), list[dict[str, float]]()
    monkeypatch.setattr(metrics, "HOSTS", 1)

    class Asks(Walker):
        def parse(self, response: Any) -> Any:
            told.append(asked(port))
            yield from super().parse(response)
            if self.path(response) == "/c":
                elsewhere = self.url.replace("127.0.0.1", "localhost")
                yield self.request("/").replace(url=f"{elsewhere}/d")

    done = crawl(
        SITE | {"/d": page(4)}, Asks, EXTENSIONS={"dedup.scrapy.metrics.Metrics": 0}, METRICS_PORT=port,
        DEDUP_INDEX=server.address, DEDUP_SHARD="1/1",
    )  # fmt: skip
    assert done.mishaps == []
    host = done.spider.url.removeprefix("http://")
    first, last = told[0], told[-1]
    assert len(told) == 4  # the home page, a story, and two that are no other
    assert first["dedup_new_total"] == 1
    assert {first[f'dedup_unjudged_total{{reason="{each}"}}'] for each in metrics.REASONS.split()} == {0}
    assert first['dedup_near_duplicates_total{action="drop",rule="simhash"}'] == 0
    assert last['dedup_near_duplicates_total{action="drop",rule="simhash"}'] == 1
    assert last[f'dedup_host_pages_total{{host="{host}",status="new"}}'] == 3
    assert last[f'dedup_host_pages_total{{host="{host}",status="duplicate"}}'] == 1
    assert last['dedup_host_pages_total{host="other",status="new"}'] == 1
    assert last["dedup_doubts"] == 0
    assert last['dedup_shard_lease_seconds{shard="1"}'] > 0
    names = {each.partition("{")[0] for each in first}
    assert {name for each in expressions() for name in figures(each)} <= names


def test_a_worker_tells_of_free_shards(crawl: Run, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SURVEY", 0)
    port = free_port()

    class Waits(Walker):
        async def parse(self, response: Any) -> Any:  # type: ignore[override]
            yield self.request("/").replace(url=self.url.replace("127.0.0.1", "127.0.0.3"))
            await until(lambda: asked(port)['dedup_shard_links_waiting{shard="2"}'])
            self.told = asked(port)
            raise CloseSpider

    done = crawl(
        SITE, Waits, EXTENSIONS={"dedup.scrapy.metrics.Metrics": 0}, METRICS_PORT=port,
        DEDUP_INDEX=server.address, DEDUP_SHARD="1/2",
    )  # fmt: skip
    assert done.spider.told['dedup_shard_links_waiting{shard="2"}'] == 1
    assert done.spider.told['dedup_shard_lease_seconds{shard="2"}'] == 0
    assert done.spider.told['dedup_shard_lease_seconds{shard="1"}'] > 0
    assert done.spider.told["dedup_silence_seconds"] < 60


def test_a_port_that_is_taken_is_told_before_anything_is_fetched(crawl: Run, site: Site) -> None:
    taken = int(site.url.rpartition(":")[2])
    done = crawl(SITE, EXTENSIONS={"dedup.scrapy.metrics.Metrics": 0}, METRICS_PORT=taken)
    (said,) = done.mishaps
    assert f"METRICS_PORT {taken}" in said
    assert "a port of its own" in said
    assert done.requests == []


def test_every_figure_of_the_reference_is_told() -> None:
    text = (ROOT / "docs" / "reference.md").read_text()
    rows = re.findall(r"^\| `dedup/(\S+)` \|(.*)\|$", text, re.MULTILINE)
    shown = {name for name, what in rows if not what.startswith(" no number")}
    told = {*metrics.COUNTED.split(), *metrics.MEASURED.split()}
    told |= {f"{name}/{each}" for name, (_, each_of) in metrics.PARTED.items() for each in each_of.split()}
    assert shown - told == {"unjudged", "skipped", "canonical"}  # the sums of their parts
    in_words = {name for name in told - shown if f"`{name.rpartition('/')[2]}`" in text}
    assert told - shown == in_words


#: What a crawl tells in each minute of an hour ...
HEALTHY = {
    "up": "1x65", "dedup_silence_seconds": "0x65", "dedup_doubts": "3x65",
    "dedup_last_page_seconds": "0+60x65", "dedup_pages_total": "0+100x65", "dedup_new_total": "0+60x65",
    "dedup_crowded_total": "0+1x65", "dedup_fetched_again_total": "0+1x65", "dedup_probes_total": "0+10x65",
    "dedup_probe_failed_total": "0+1x65", "dedup_alarms_total": "0x65", "dedup_alarms_queries_total": "0x65",
    "dedup_hosts_alarms_total": "0x65", "dedup_shard_unreadable_total": "0x65",
    "dedup_shard_not_scheduled_total": "0x65", 'dedup_seconds_total{part="paused"}': "0x65",
    'dedup_shard_links_waiting{shard="2"}': "0x65", 'dedup_canonical_total{whose="own"}': "0+1x65",
    'dedup_canonical_total{whose="agrees"}': "0+9x65",
    'dedup_host_pages_total{host="h",status="duplicate"}': "0+40x65",
    'dedup_host_pages_total{host="h",status="new"}': "0+60x65",
    'dedup_unjudged_total{reason="index"}': "0x65", 'dedup_unjudged_total{reason="log"}': "0x65",
    'dedup_unjudged_total{reason="internal_error"}': "0x65",
    'dedup_unjudged_total{reason="short"}': "0+10x65",
}  # fmt: skip
#: ... and what, instead, one tells in which something has gone wrong.
FAULTS = {
    "WorkerGone": ("up", "0x65"),
    "WorkerStandsStill": ("dedup_last_page_seconds", "0x65"),
    "WorkerCutOff": ("dedup_silence_seconds", "0+60x65"),
    "ShardForsaken": ('dedup_shard_links_waiting{shard="2"}', "7x65"),
    "LinksNotTaken": ("dedup_shard_not_scheduled_total", "0+1x65"),
    "IndexAway": ('dedup_unjudged_total{reason="index"}', "0+1x65"),
    "LogFails": ('dedup_unjudged_total{reason="log"}', "0+1x65"),
    "FilterFails": ('dedup_unjudged_total{reason="internal_error"}', "0+1x65"),
    "LooksLikeWall": ("dedup_alarms_total", "0+1x65"),
    "HostEmptied": ("dedup_hosts_alarms_total", "0+1x65"),
    "HostMostlyDropped": ('dedup_host_pages_total{host="h",status="new"}', "0+1x65"),
    "SiteDisagrees": ('dedup_canonical_total{whose="own"}', "0+20x65"),
    "ManyDoubts": ("dedup_doubts", "6000x65"),
    "MuchFetchedAgain": ("dedup_fetched_again_total", "0+20x65"),
    "ProbesFail": ("dedup_probe_failed_total", "0+8x65"),
    "Crowded": ("dedup_crowded_total", "0+10x65"),
}


def test_each_alert_fires_for_its_reason_alone(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    assert FAULTS.keys() == ALERTS.keys()
    tests = []
    other = {'up{instance="b"}': "1x65"}
    ended = {"up": "0x65", 'up{instance="b"}': "0x65"}  # a crawl that is done
    faults = {alert: HEALTHY | other | dict([fault]) for alert, fault in FAULTS.items()}
    for alert, told in [(None, HEALTHY | other), (None, HEALTHY | ended), *faults.items()]:
        name = "{alertname=%s}"
        expected = [{"labels": name % json.dumps(alert), "value": 1}] if alert else []
        series = [
            {"series": f"{each[:-1]}," if "{" in each else f"{each}{{", "values": values}
            for each, values in told.items()
        ]
        for each in series:
            each["series"] += 'job="crawl"' + (',instance="a"}' if "instance" not in each["series"] else "}")
        asked = {
            "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
            "eval_time": "65m",
            "exp_samples": expected,
        }
        tests.append({"interval": "1m", "input_series": series, "promql_expr_test": [asked]})
    (tmp_path / "tests.yaml").write_text(
        yaml.safe_dump({"rule_files": [str(WATCHING / "alerts.yaml")], "tests": tests})
    )
    shown = re.findall(
        r"^```yaml\n(.*?)^```", (ROOT / "docs" / "operations.md").read_text(), re.DOTALL | re.MULTILINE
    )
    (config,) = (each for each in shown if "rule_files" in each)
    (tmp_path / "prometheus.yaml").write_text(config)
    shutil.copy(WATCHING / "alerts.yaml", tmp_path)
    subprocess.run([promtool, "check", "config", tmp_path / "prometheus.yaml"], check=True)
    done = subprocess.run(
        [promtool, "test", "rules", tmp_path / "tests.yaml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dashboard_has_room_for_all_its_panels() -> None:
    seen = set[tuple[int, int]]()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & seen
        assert max(x for x, _ in cells) < 24
        seen |= cells
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)


#: The commands that docs/operations.md answers questions by, and what each says of a crawl of `SITE`.
ANSWERS = {
    "scrapy index why URL": "drop: rule simhash",
    "scrapy index why URL duplicates-*.jsonl": "drop: rule simhash",
    "scrapy duplicates --url URL --json": '"duplicate_of": "http://127.0.0.1',
    "scrapy compare URL OTHER": "near-duplicate",
    "scrapy index info": "pages       3: 3 done",
    "scrapy index check": "sound, 3 pages",
    "scrapy index export - -s DEDUP_INDEX=file:ONE": "",
    "scrapy index import - -s DEDUP_INDEX=file:OTHER": "imported 3 pages",
    "scrapy index import - -s DEDUP_INDEX=redis://HOST:PORT/DB": "imported 3 pages",
    "scrapy crawl site -a start=URL": "",
    "scrapy index forget --run NAME": "forgot ",  # but for what the other run has met since
}


def test_each_question_of_an_operator_has_an_answer(site: Site, server: Server, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    section = text.partition("## Questions about an index\n")[2].partition("\n## ")[0]
    shown = [part for each in re.findall(r"`(scrapy [^`]+)`", section) for part in each.split(" | ")]
    assert set(shown) == ANSWERS.keys()
    site.pages = SITE
    one, log = tmp_path / "ONE", tmp_path / "drops.jsonl"
    settings = {
        "DEDUP_INDEX": f"file:{one}",
        "DEDUP_LOG": log,
        "DEDUP_CHROME": False,
        "DOWNLOAD_DELAY": 0,
        "ROBOTSTXT_OBEY": False,
    }
    assert scrapy("crawl", "site", "-a", f"start={site.url}/", **settings).returncode == 0
    url = json.loads(log.read_text())["url"]
    (run,) = re.findall(r"[0-9a-f]{32}$", scrapy("index", "info", **settings).stdout, re.MULTILINE)
    real = {
        "URL": url,
        " OTHER": f" {json.loads(log.read_text())['duplicate_of']}",
        "NAME": run,
        "file:ONE": f"file:{one}",
        "file:OTHER": f"file:{tmp_path / 'OTHER'}",
        "redis://HOST:PORT/DB": server.address,
        "duplicates-*.jsonl": str(log),
    }
    for command, answer in ANSWERS.items():
        words = re.sub("|".join(map(re.escape, real)), lambda found: real[found[0]], command).split()[1:]
        if "-" in words:
            words[words.index("-")] = str(tmp_path / "piped")
        if words[0] == "crawl":
            words += ["-O", str(tmp_path / "back.jsonl")]
        others = {
            name: value for name, value in settings.items() if name != "DEDUP_INDEX" or "-s" not in words
        }
        done = scrapy(*words, **others)
        assert (done.returncode, answer in done.stdout) == (0, True), (command, done)
    assert [json.loads(line)["url"] for line in (tmp_path / "back.jsonl").read_text().splitlines()] == [url]
