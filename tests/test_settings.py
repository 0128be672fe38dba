"""Each setting arrives wherever it means something: it is changed, and the parts that do the work are looked at."""

import json
import pickle
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

import dedup
from benchmarks.quality.replay import Replay
from dedup.contrib.archives import Cleaning
from dedup.contrib.archives.commands.run import run as clean
from dedup.fingerprint.detector import Detector
from dedup.index import open_index
from dedup.scrapy.commands.compare.run import run as compare
from dedup.scrapy.commands.evaluate.run import run as evaluate
from dedup.scrapy.settings import read_group, read_settings
from dedup.settings import GROUPS, PROFILES, SETTINGS, DetectorSettings, FilterSettings, IndexSettings
from dedup.values import Group
from tests.support.arrivals import OF_ARCHIVES, VERDICT, check, other, watch
from tests.support.crawls import TWINS, Run, words

#: What of a cleaning is sent to Spark's workers, pickled.
SENT: dict[str, type[Group]] = {"detector": Detector, "plan": IndexSettings, "filter": FilterSettings}


def project(name: str, value: object, **more: object) -> Settings:
    """The settings of a project that changes one."""
    return Settings({f"DEDUP_{name.upper()}": value} | more)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_sets_what_is_not_set_otherwise(profile: str) -> None:
    def made(**more: object) -> dict[str, object]:
        settings = project("profile", profile, **more)
        return {
            name: value for group in GROUPS for name, value in vars(read_group(settings, group)).items()
        } | {"profile": "balanced"}

    plain = {name: each.default for name, each in SETTINGS.items()}
    assert made() == {**plain, "log": made()["log"], "parked": made()["parked"], **PROFILES[profile]}
    assert made(DEDUP_AUDIT=0.5, DEDUP_PROBE=True) == made() | {"audit": 0.5, "probe": True}


def text(more: str = "") -> str:
    return f"<title>A page</title><p>{words('story')} {more}</p>"


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_has_another_value_that_is_allowed(name: str, tmp_path: Path) -> None:
    value = other(name, tmp_path)
    assert SETTINGS[name].read(value) == value != SETTINGS[name].default


def test_they_arrive_in_a_crawl(monkeypatch: pytest.MonkeyPatch, crawl: Run, tmp_path: Path) -> None:
    seen = watch(monkeypatch)
    # One crawl has them all, but for those that don't go with all others.
    values = {name: other(name, tmp_path) for name in SETTINGS}
    alone = {name: {name: values.pop(name)} for name in ("method", "tables", "min_containment")}
    alone["min_containment"]["chrome"] = True
    del values["enabled"], values["shard"]  # without which there is no filter, and no crawl without a Redis
    for changed in (values, *alone.values()):
        seen.clear()
        done = crawl(TWINS, **{f"DEDUP_{name.upper()}": value for name, value in changed.items()})
        assert done.mishaps == []
        assert {name for name, value in changed.items() if seen[name] != {value}} == set()
        if changed is values:
            paths = {path.name for path in tmp_path.iterdir()}
            assert paths >= {"index.sqlite.history", "index.sqlite"}  # a log is there once it has a line


def test_they_arrive_in_a_cleaning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = tmp_path / "pages.jsonl"
    source.write_text("".join(json.dumps({"url": f"http://a.org/{n}", "html": text()}) + "\n" for n in "ab"))

    def work(name: str, value: object) -> None:
        names = [
            "index", "against", "spider", "kept", "duplicates", "engine", "master", "keep", "id", "text",
            "cdxj",
        ]  # fmt: skip
        opts = Namespace(**dict.fromkeys(names, ""), workers=1)
        assert clean([str(source)], opts, project(name, value)) == 0

    check(watch(monkeypatch), (*VERDICT, *OF_ARCHIVES), work, tmp_path)


def test_they_arrive_where_spark_sends_them() -> None:
    for name in (*VERDICT, *FilterSettings.settings()):
        made = {
            each: kind(**{name: other(name)} if name in kind.settings() else {})
            for each, kind in SENT.items()
        }
        cleaning = Cleaning([], **made)
        sent = cleaning.detector, cleaning.plan, cleaning.policy
        assert pickle.loads(pickle.dumps(sent)) == sent
        arrived = {
            each for carrier in sent for each in carrier.settings() if getattr(carrier, each) == other(each)
        }
        assert arrived == {name} & {*VERDICT, *OF_ARCHIVES}


def test_they_arrive_in_an_evaluation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(json.dumps({"a": text("a"), "b": text("b"), "label": 1}) + "\n")

    def work(name: str, value: object) -> None:
        assert evaluate(pairs, project(name, value)) == 0

    check(watch(monkeypatch), DetectorSettings.settings(), work, tmp_path)


def test_they_arrive_in_a_replay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def work(name: str, value: object) -> None:
        options = read_settings(project(name, value, DEDUP_INDEX="memory:"))
        replay = Replay("memory:", options.detector, options.index.settings)
        assert replay([options.detector.fingerprint(text())], ["http://a.org/"], [0]) == [-1]

    check(watch(monkeypatch), VERDICT, work, tmp_path)


def test_they_arrive_in_a_comparison(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text(text(name))

    seen = watch(monkeypatch)

    def work(name: str, value: Any) -> None:
        address = f"file:{tmp_path / name}.sqlite"
        with dedup.open(address, **{name: value}) as pages:
            pages.add("a", html=text("a"))
        seen.clear()
        compare(str(tmp_path / "a"), str(tmp_path / "b"), project(name, value), address)
        if name == "chrome" and not seen[name]:  # the index is not asked what is chrome
            seen[name].add(False)

    check(seen, VERDICT, work, tmp_path)


@pytest.mark.parametrize("function", ["open", "unique", "duplicated"])
def test_they_arrive_in_python(function: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def work(name: str, value: Any) -> None:
        if function == "open":
            with dedup.open(**{name: value}) as pages:
                pages.add("a", text=text())
        elif function == "unique":
            [*_] = dedup.unique([text()], **{name: value})
        else:
            dedup.duplicated(text=[text(), text()], **{name: value})

    check(watch(monkeypatch), VERDICT, work, tmp_path)


def test_an_index_takes_no_other_keyword() -> None:
    with pytest.raises(TypeError, match="max_distance"):
        open_index("memory:", Detector(), max_distance=3)
