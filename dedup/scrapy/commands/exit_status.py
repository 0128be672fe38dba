"""The exit status of a crawl that the filter refused or stopped."""

from typing import Self

from pydispatch import dispatcher

from dedup.scrapy.signals import filter_failed

__all__ = ["ExitStatus"]


class ExitStatus:
    """While it is entered, takes note of the exit status that the filter asks for."""

    def __init__(self) -> None:
        self.status = 0

    def _note(self, error: Exception) -> None:
        self.status = self.status or getattr(error, "exit_status", 1)

    def __enter__(self) -> Self:
        dispatcher.connect(self._note, filter_failed)
        return self

    def __exit__(self, *_: object) -> None:
        dispatcher.disconnect(self._note, filter_failed)
