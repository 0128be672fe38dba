"""Each benchmark runs, with the least that it takes: those that need no collection of pages, and no other packages."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pages.everyday import text
from tests.support.processes import ROOT

pytestmark = pytest.mark.slow

#: What each is given; SITE is a folder of pages, NEW one that is not there yet.
LEAST = {
    "archives.py": "SITE --rounds 1", "batch.py": "--queries 100 --stored 1000",
    "commands.py": "--records 1000 --pages 200 --rounds 1", "costs.py": "--pages 1100",
    "cpu_per_page.py": "SITE --rounds 1 --pages 5 --only memory",
    "embedded.py": "NEW --pages 2000 --claims 100", "floods.py": "--pages 300", "memory.py": "--pages 200",
    "one_chrome.py": "--pages 2000", "page_speed.py": "--pages 3 --rounds 1",
    "redis_claims.py": "--pages 1100 --plans 3 --shops 20:40", "scale.py": "--claims 200",
    "tables.py": "--pages 2000", "deaths.py": "--pages 30", "foreign.py": "rules", "links.py": "SITE --quick",
    "living.py": "--kinds lottery --noise drawn --addresses id --orders 1",
    "long_crawl.py": "file --pages 60", "scenes.py": "--kind staff",
    "shared_chrome.py": "--workers 1 --seeds 7", "shared_yields.py": "SITE --workers 1", "sites.py": "SITE",
    "volume.py": "make texts 100 NEW",
}  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of pages, which link to each other."""
    folder = tmp_path_factory.mktemp("site")
    links = "".join(f"<a href=page-{at}.html>more</a>" for at in range(12))
    for at in range(12):
        body = f"<nav>{text(30, 'menu')}</nav><main><h1>Page {at}</h1><p>{text(120, at)}</p>{links}</main>"
        (folder / f"page-{at}.html").write_text(f"<title>Page {at}</title>{body}")
    (folder / "index.html").write_text(f"<title>Pages</title>{text(40, 'index')}{links}")
    return folder


@pytest.mark.parametrize("name", LEAST)
def test_a_benchmark_runs(name: str, site: Path, tmp_path: Path) -> None:
    given = LEAST[name].replace("SITE", str(site)).replace("NEW", str(tmp_path / "new"))
    module = ["-m", f"benchmarks.{name.removesuffix('.py')}"]
    is_script = f"python benchmarks/{name}" in (ROOT / "benchmarks" / name).read_text()
    figures = tmp_path / "figures.json"
    writes = "figures.add_option(" in (ROOT / "benchmarks" / name).read_text()
    told = ["--figures", str(figures)] if writes else []
    called = [sys.executable, *([f"benchmarks/{name}"] if is_script else module), *given.split(), *told]
    done = subprocess.run(
        called,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout or name == "volume.py"
    if writes:
        ((command, measured),) = json.loads(figures.read_text()).items()
        assert command.startswith("python ")
        assert str(tmp_path) not in command
        assert measured["rows"]
