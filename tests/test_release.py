"""What is released can be built and installed by somebody who has nothing but the sdist."""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

import dedup
from crawler.demo import Site, serve
from tests.support import ROOT

URLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]


def tracked() -> set[str]:
    found = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip("this is no clone")
    return {name for name in found.stdout.splitlines() if (ROOT / name).exists()}


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist of what git tracks, unpacked."""
    folder = tmp_path_factory.mktemp("release")
    for name in tracked():
        (folder / "clone" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / "clone" / name)
    build = "from setuptools.build_meta import build_sdist; build_sdist('..')"
    subprocess.run([sys.executable, "-c", build], cwd=folder / "clone", check=True, capture_output=True)
    with tarfile.open(folder / f"shingleback-{dedup.__version__}.tar.gz") as packed:
        packed.extractall(folder, filter="data")
    return folder / f"shingleback-{dedup.__version__}"


def test_the_sdist_is_what_git_tracks(sdist: Path) -> None:
    packed = {str(path.relative_to(sdist)) for path in sdist.rglob("*") if path.is_file()}
    made = {name for name in packed if re.match(r"PKG-INFO$|setup\.cfg$|shingleback\.egg-info/", name)}
    assert packed - made == {name for name in tracked() if not name.startswith(".")}


def test_links_of_the_readme_work_on_an_index(sdist: Path) -> None:
    text = (sdist / "PKG-INFO").read_text()
    links = re.findall(r"\]\(([^)#]+)", text)
    assert len(links) > 20
    for link in links:
        assert link.startswith("https://")
        if link.startswith(URLS["Source"]):
            kind, head, path = link.removeprefix(URLS["Source"] + "/").split("/", 2)
            assert (kind, head) == ("raw" if path.endswith(".png") else "blob", "HEAD")
            assert (ROOT / path).exists()


def test_what_the_workflow_makes_is_a_target() -> None:
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"].values()
    run = "\n".join(step.get("run", "") for job in jobs for step in job["steps"])
    made = set(re.findall(r"\bmake (\w+)", run))
    assert {"check", "test", "docs"} <= made
    assert made <= set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.slow
def test_an_install_from_the_sdist_crawls(sdist: Path, tmp_path: Path) -> None:
    """Sdist, wheel, fresh environment, and a crawl of the demo site there."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", tmp_path, sdist], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    subprocess.run([tmp_path / "env/bin/pip", "-q", "install", wheel], check=True)
    shutil.copytree(sdist / "crawler", tmp_path / "crawler")
    shutil.copy(sdist / "scrapy.cfg", tmp_path)
    with serve(Site()) as url:
        crawl = ["crawl", "site", "-a", f"start={url}", "-s", "DOWNLOAD_DELAY=0", "-O", "pages.jsonl"]
        done = subprocess.run(
            [tmp_path / "env/bin/scrapy", *crawl], cwd=tmp_path, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "env").rglob("dedup/fast.*"))  # what a C compiler makes
    assert len((tmp_path / "pages.jsonl").read_text().splitlines()) >= 50
    assert (tmp_path / "duplicates.jsonl").exists()
