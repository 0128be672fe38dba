"""How good the verdicts are on collections of pages whose truth is known: `python -m benchmarks.quality`."""
