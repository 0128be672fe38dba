"""What starts a crawl in containers does so: every command line is run as a container would, without an engine for them."""

import errno
import fnmatch
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
import redis
from scrapy.settings import Settings

from crawler import settings
from dedup.scrapy.places import index_folder
from tests.support import ROOT
from tests.support.redis import PROGRAM
from tests.support.servers import free_port
from tests.support.shards import Hosts, kept, serve
from tests.support.waiting import LIMIT, wait_until

yaml = pytest.importorskip("yaml")

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
KUBERNETES = {each["kind"]: each for each in yaml.safe_load_all((ROOT / "kubernetes.yaml").read_text())}
DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", "")
SHARDS = "shingleback:shards:{shingleback/site}:"
POD = KUBERNETES["Job"]["spec"]["template"]["spec"]


def instruction(name: str) -> str:
    """The last instruction of a name in the Dockerfile."""
    return re.findall(rf"^{name} (.*)$", DOCKERFILE, re.MULTILINE)[-1].strip()


def filled(text: str, values: Mapping[str, str]) -> str:
    """A value of docker-compose.yml as Compose passes it on."""
    found = re.sub(r"\$\{(\w+):-([^}]*)\}", lambda each: values.get(each[1]) or each[2], text)
    assert "$" not in found.replace("$$", "")
    return found.replace("$$", "$")


def make_keys(folder: Path) -> str:
    """The environment that docker-compose.yml makes at its first start."""
    shell, option, script = COMPOSE["keys"]["command"]
    words = [shell, option, script.replace("$$", "$").replace("/data/", f"{folder}/")]
    subprocess.run(words, check=True)
    return (folder / "env").read_text()


@contextmanager
def redis_of_compose(folder: Path) -> Iterator[redis.Redis]:
    """The server that docker-compose.yml starts, with its own keys."""
    if PROGRAM is None:
        pytest.skip("redis-server is not installed")
    socket = folder / "redis.sock"
    made = make_keys(folder)
    (folder / "env").write_text(made.replace("redis://", "unix://").replace("redis:6379/0", str(socket)))

    def shell(script: str) -> list[str]:
        return ["sh", "-c", script.replace("$$", "$").replace("/keys/", f"{folder}/")]

    command = COMPOSE["redis"]["command"][-1].replace("redis-server", PROGRAM)
    server = subprocess.Popen(
        shell(f"{command} --port 0 --unixsocket {socket} --dir {folder}"), stdout=subprocess.DEVNULL
    )
    kind, test = COMPOSE["redis"]["healthcheck"]["test"]
    assert kind == "CMD-SHELL"
    healthy = shell(test.replace("redis-cli", f"redis-cli -s {socket}"))
    try:
        wait_until(lambda: subprocess.run(healthy, capture_output=True, check=False).returncode == 0)
        password = re.search("REDIS_PASSWORD=(.*)", made)
        assert password
        with redis.Redis(unix_socket_path=str(socket), password=password[1]) as database:
            yield database
    finally:
        server.kill()
        server.wait()


def environment(folder: Path, name: str) -> dict[str, str]:
    """What a container has: its own name and its own /tmp."""
    given = {key: filled(value, {}) for key, value in COMPOSE["crawler"]["environment"].items()}
    variable, _, value = instruction("ENV").partition("=")
    pulse = value.replace("/tmp/", f"{folder}/{name}-")
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    assert given["METRICS_PORT"] == "9410"
    given["METRICS_PORT"] = str(free_port())  # two containers may have the same
    return {**given, "HOSTNAME": name, "PATH": path, "HOME": "/", variable: pulse}


def command_line(folder: Path, starts: str) -> list[str]:
    """What a container of Compose runs, with a folder in the place of /data."""
    entry = json.loads(instruction("ENTRYPOINT"))
    values = {"START": starts, "SHARDS": "2"}
    words = [filled(word, values) for word in COMPOSE["crawler"]["command"]]
    places = {"/data/": f"{folder}/", "/keys/": f"{folder}/"}
    return [re.sub("/data/|/keys/", lambda found: places[found[0]], word) for word in [*entry, *words]]


def crawl(folder: Path, *, kills: bool = False) -> None:
    """Two workers, as Compose starts them, crawl a site to its end; if one is killed, another one goes on where it was."""
    probe = re.fullmatch(r"--interval=30s .* CMD (.+)", instruction("HEALTHCHECK"))
    assert probe
    with (
        redis_of_compose(folder) as database,
        serve(Hosts(contents=40 if kills else 8, wait=0.1 * kills)) as site,
    ):
        more = ["DOWNLOAD_DELAY=0", "ROBOTSTXT_OBEY=False", "DEDUP_KEEP_START=False", "DEDUP_CHROME=False"]
        command = [
            *command_line(folder, ",".join(site.starts)),
            *(word for each in more for word in ("-s", each)),
        ]
        environments = [environment(folder, name) for name in ("one", "other")]
        if kills:  # however late one of them begins, its first page is no copy of what the other has kept
            site.most = {0: 1, 1: 1}

        def start(number: int) -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                [*command, "-s", f"USER_AGENT={number}"],
                cwd=ROOT, env=environments[number], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip

        workers = [start(number) for number in (0, 1)]
        try:
            for each in environments:
                wait_until(Path(each["CRAWLER_PULSE"]).exists)
                assert subprocess.run(["sh", "-c", probe[1]], env=each, check=False).returncode == 0
                with urlopen(f"http://127.0.0.1:{each['METRICS_PORT']}/metrics", timeout=LIMIT) as answer:
                    assert b"\ndedup_pages_total " in answer.read()
            if kills:
                wait_until(lambda: all(database.strlen(SHARDS + f"past:{number}") for number in (0, 1)))
                site.most = {0: 6, 1: 6}
                wait_until(lambda: Counter(asked.by for asked in site.asked) == {"0": 6, "1": 6})
                with workers.pop() as killed:
                    killed.kill()
                    killed.communicate()
                site.most.clear()
                workers.append(start(1))
            said = [worker.communicate(timeout=2 * LIMIT)[0].decode() for worker in workers]
        finally:
            for worker in workers:
                with (
                    worker
                ):  # what it prints is closed, and its end awaited: else another test stumbles over them
                    worker.kill()
        assert [worker.returncode for worker in workers] == [0, 0], said
        assert bool(re.search(r"'dedup/shard/inherited': [1-9]", "".join(said))) is kills  # by either of them
        assert database.keys("shingleback:{shingleback/site}:*")
        assert not database.keys(SHARDS + "*")
    for each in environments:
        os.utime(each["CRAWLER_PULSE"], (0, 0))  # its loop stands still
        assert subprocess.run(["sh", "-c", probe[1]], env=each, check=False).returncode != 0
    for name in ("one", "other"):
        for number, pages in enumerate(folder.glob(f"pages-{name}-*.jsonl")):
            pages.rename(folder / f"items-{name}-{number}.jsonl")
    logs = [
        path.name.split("-")[1] for path in folder.glob("duplicates-*.jsonl")
    ]  # who drops nothing has none
    assert logs
    assert set(logs) <= {"one", "other"}
    counts = kept(folder)
    assert set(counts) == set(range(site.contents))
    assert max(counts.values()) <= 1 + kills


def test_keys_are_made_once(tmp_path: Path) -> None:
    made = make_keys(tmp_path)
    assert make_keys(tmp_path) == made
    shown = 'printf "%s " "$REDIS_PASSWORD" "$DEDUP_HASH_KEY" "$DEDUP_INDEX"'
    done = subprocess.run(
        ["sh", "-c", f". {tmp_path}/env; {shown}"], capture_output=True, text=True, check=True
    )
    password, key, index = done.stdout.split()
    assert len({password, key}) == 2
    assert all(re.fullmatch("[0-9a-f]{64}", each) for each in (password, key))
    assert index == f"redis://:{password}@redis:6379/0"


def test_two_containers_of_compose_crawl_a_site_to_its_end(tmp_path: Path) -> None:
    crawl(tmp_path)


@pytest.mark.slow
def test_a_container_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    crawl(tmp_path, kills=True)


def test_a_project_that_can_not_be_written_has_a_place_for_its_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """The container's file system is read-only, and Scrapy would make the folder whenever it is asked for."""

    def refuse(path: str) -> str:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("dedup.scrapy.places.data_path", refuse)
    assert index_folder().endswith(".scrapy/dedup")


def test_an_engine_is_sent_what_the_image_needs() -> None:
    """All but what .dockerignore leaves out.  Later lines count."""
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] not in "#"]

    def is_left_out(path: str) -> bool:
        out = False
        parents = [path, *map(str, Path(path).parents)][:-1]
        for rule in rules:
            pattern = rule.removeprefix("!").removeprefix("**/")
            names = [Path(parent).name for parent in parents] if "**/" in rule else parents
            if any(fnmatch.fnmatchcase(name, pattern) for name in names):
                out = not rule.startswith("!")
        return out

    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    sent = {Path(name).parts[0] for name in tracked.stdout.splitlines() if not is_left_out(name)}
    assert sent == {*("pyproject.toml", "setup.py", "README.md", "LICENSE", "scrapy.cfg", "crawler", "dedup")}


def test_a_pod_crawls_the_shard_of_its_index(tmp_path: Path) -> None:
    (container,) = POD["containers"]
    values = {each["name"]: each.get("value", "") for each in container["env"]}
    assert values["SHARDS"] == str(KUBERNETES["Job"]["spec"]["completions"])
    assert values["DEDUP_INDEX"].endswith(f"@{KUBERNETES['Service']['metadata']['name']}:6379/0")
    shown = tmp_path / "scrapy"
    shown.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    shown.chmod(0o755)
    environment = {**values, "JOB_COMPLETION_INDEX": "3", "PATH": f"{tmp_path}:/usr/bin:/bin"}
    command = [*container["command"], *container["args"]]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    words = done.stdout.splitlines()
    assert words[:4] == ["crawl", "site", "-o", "/data/pages-3-%(time)s.jsonl"]
    assert words[-6:] == ["-s", "DEDUP_HEIR=rest", "-a", f"start={values['START']}", "-a", "shard=4/4"]
    assert f"-s{words[-5]}" in COMPOSE["crawler"]["command"]
    written = json.loads(instruction("ENTRYPOINT"))[2]  # the same as Compose's, but for its name
    assert "$HOSTNAME" in written
    for option in re.findall(r"\S+/data/\S+", written.replace('"', "")):
        assert option.replace("$HOSTNAME", "3") in words


def test_kubernetes_takes_its_objects() -> None:
    validate = pytest.importorskip("kubernetes_validate")
    for each in KUBERNETES.values():
        validate.validate(each, "1.33", strict=True)
    with pytest.raises(validate.ValidationError):
        validate.validate(KUBERNETES["Job"] | {"spec": {"complete": 4}}, "1.33", strict=True)


def test_who_is_told_to_stop_has_the_time_for_what_is_under_way() -> None:
    """Requests of one host are sent after each other, at up to 1.5 times the delay."""
    requests = Settings().getint("CONCURRENT_REQUESTS")
    assert not hasattr(settings, "CONCURRENT_REQUESTS")
    needed = requests * settings.DOWNLOAD_DELAY * 1.5 + settings.DOWNLOAD_TIMEOUT
    assert POD["terminationGracePeriodSeconds"] >= needed + 10
    assert COMPOSE["crawler"]["stop_grace_period"] == f"{POD['terminationGracePeriodSeconds']}s"


def test_the_image_is_of_a_pinned_base_and_runs_as_no_root() -> None:
    bases = set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE))
    assert len(bases) == 1
    assert all(re.search(r":\d+\.\d+\.\d+", image) for image in [*bases, COMPOSE["redis"]["image"]])
    user = instruction("USER")
    assert user == "1000:1000"
    context = POD["securityContext"]
    assert user == f"{context['runAsUser']}:{context['runAsGroup']}"
    assert context["runAsNonRoot"] is True


def test_containers_may_do_no_more_than_they_need() -> None:
    for name, service in COMPOSE.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["read_only"] is True
        assert service["security_opt"] == ["no-new-privileges:true"]
    assert all("mem_limit" in COMPOSE[name] for name in ("redis", "crawler"))
    for kind in ("Job", "StatefulSet"):
        pod = KUBERNETES[kind]["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        [container] = pod["containers"]
        context = container["securityContext"]
        assert (context["allowPrivilegeEscalation"], context["readOnlyRootFilesystem"]) == (False, True)
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]


def test_only_workers_reach_redis() -> None:
    policy = KUBERNETES["NetworkPolicy"]["spec"]
    [rule] = policy["ingress"]
    labels = {
        kind: KUBERNETES[kind]["spec"]["template"]["metadata"]["labels"] for kind in ("Job", "StatefulSet")
    }
    assert policy["podSelector"]["matchLabels"] == labels["StatefulSet"]
    assert rule["from"] == [{"podSelector": {"matchLabels": labels["Job"]}}]
