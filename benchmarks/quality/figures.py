"""Figures of a collection, drawn by matplotlib (of the extra ``bench``)."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality.measures import NEAR, Stream, Truth
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.methods import Method
from dedup.fingerprint.simhash import distances

Rows = Sequence[Mapping[str, Any]]


def _explain(axes: Any, legend: str | None = None, **texts: Any) -> None:
    axes.set(**texts)
    axes.legend(fontsize="x-small", loc=legend)
    axes.grid(alpha=0.3)


def _lines(
    axes: Any, x: str, rows: Rows, names: Mapping[str, str], style: str = "o-", stage: str = ""
) -> None:
    for colour, (name, label) in zip(("tab:blue", "tab:red"), names.items(), strict=True):
        values = [1 - row[name] if name == "false_rate" else row[name] for row in rows]
        axes.plot([row[x] for row in rows], values, style, color=colour, markersize=3, label=label + stage)


def _shares(axes: Any, method: Method, rows: Rows, names: Mapping[str, str], title: str) -> None:
    """Figure 1 of the paper: shares against k, dashed without the second stage.

    Where resemblance determines what is found, they are drawn against it, beside the chance to share a key.
    """
    axes.set(ylabel="share", ylim=(-0.03, 1.03), title=title)
    if method.probability(1.0) is None:
        for threshold in sorted({row["min_resemblance"] for row in rows}):
            some = [row for row in rows if row["min_resemblance"] == threshold]
            stage = f"and resemblance >= {threshold:g}" if threshold else "alone"
            _lines(axes, "k", some, names, "o-" if threshold else "o--", f", simhash {stage}")
        _explain(axes, "lower right", xlabel="k, bits of 64", xticks=range(1, 11))
    else:
        every = np.linspace(0, 1, 101)
        chances = list(map(method.probability, every))
        axes.plot(every, chances, color="black", linewidth=1, label=f"P: {method}")
        _lines(axes, "min_resemblance", sorted(rows, key=itemgetter("min_resemblance")), names)
        _explain(axes, "lower left", xlabel="resemblance")


def _histogram(axes: Any, near: Any, far: Any, detector: Detector) -> None:
    bins, k = np.arange(66) - 0.5, detector.max_distance
    axes.hist(near, bins=bins, alpha=0.7, color="tab:blue", label="near-duplicates", density=True)
    axes.hist(far, bins=bins, alpha=0.5, color="tab:red", label="other pairs", density=True)
    axes.axvline(k + 0.5, color="black", linewidth=1, label=f"k = {k}")
    _explain(axes, xlabel="distance, bits of 64", ylabel="share of pairs", title="Distance of the simhashes")


def draw_collection(
    path: Path, rows: Rows, stream: Stream, truth: Truth, detector: Detector, name: str
) -> None:
    """Right drops and recall against k, and distances of near pairs and of a sample of the others."""
    from matplotlib.figure import Figure  # tests import this module, and it takes a second

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    names = {"false_rate": "drops that are right", "recall": "recall"}
    _shares(left, detector.finder, rows, names, f"{name}, inline")
    near: list[int] = []
    far: list[int] = []
    for page in range(0, stream.size, max(1, stream.size // 400)):
        if stream.judged[page]:
            apart, alike = distances(stream.simhashes, int(stream.simhashes[page])), np.zeros(stream.size)
            for other, resemblance in truth.get(page, {}).items():
                alike[other] = resemblance
            others = stream.judged & (np.arange(stream.size) != page)
            near += apart[others & (alike >= NEAR)].tolist()
            far += apart[others & (alike == 0.0)].tolist()
    _histogram(right, near, far, detector)
    figure.savefig(path)
