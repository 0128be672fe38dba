"""Two clients with the same page at the same moment."""

import multiprocessing
from typing import Any

import numpy as np

from benchmarks.beside.indexes import Peer

MEETINGS = 100


def meet(kind: type[Peer], address: str, barrier: Any, results: Any) -> None:
    """One of two clients: how many of the pages it keeps."""
    peer = kind(3, address)
    kept = []
    for page in range(MEETINGS):
        barrier.wait()
        kept.append(peer.keeps(page, (page + 1) * 0x9E3779B97F4A7C15 % (1 << 64)))
    results.put(kept)


def twins(kind: type[Peer], address: str) -> dict[str, int]:
    """Of pages that two clients met at once: how many were kept by one, by both, by none."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(2), context.Queue()
    if kind.__name__ == "Postgres":
        kind(3, address)  # the table
    clients = [context.Process(target=meet, args=(kind, address, barrier, results)) for _ in range(2)]
    for client in clients:
        client.start()
    kept = np.array([results.get(timeout=120) for _ in clients]).sum(axis=0)
    for client in clients:
        client.join()
    return {name: int((kept == count).sum()) for count, name in enumerate(("none", "one", "both"))}
