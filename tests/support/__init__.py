"""What the tests stand on."""

from pathlib import Path

__all__ = ["ROOT"]

#: The folder of the project.
ROOT = Path(__file__).parents[2]
