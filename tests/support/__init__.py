"""Helpers that tests share: servers, stores, crawls, pages.  No test module imports another one."""

from pathlib import Path

__all__ = ["ROOT"]

#: The folder of the project.
ROOT = Path(__file__).parents[2]
