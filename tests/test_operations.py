"""What docs/operations.md gives to be copied does what it says."""

import re
from pathlib import Path
from runpy import run_path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.support import ROOT
from tests.support.crawls import Run, Walker, page
from tests.support.servers import free_port


def test_prometheus_is_told_every_figure_while_the_crawl_runs(crawl: Run, tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client")
    text = (ROOT / "docs" / "operations.md").read_text()
    found = re.search(r"^```python\n# extensions\.py\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert found
    path = tmp_path / "extensions.py"
    path.write_text(found[1])
    metrics = run_path(str(path))["Metrics"]
    port, told = free_port(), list[str]()

    class Asks(Walker):
        def parse(self, response: Any) -> Any:
            with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
                told.append(answer.read().decode())
            yield from super().parse(response)

    done = crawl(
        {
            "/": page("home", "/a", "/b", "/c"),
            "/a": page("story"),
            "/b": page("story", more="b"),
            "/c": page(3),
        },
        Asks,
        EXTENSIONS={metrics: 500},
        METRICS_PORT=port,
    )
    assert len(told) == 3  # the home page, a story, and what is no other
    assert "scrapy_dedup_new 3.0" in told[-1]
    assert "scrapy_dedup_duplicate 1.0" in told[-1]
    assert "log_count/ERROR" not in done.stats
