"""What is open in this process: a file is opened by the first of its runs, and closed by the last."""

import os
import threading
from collections.abc import Callable, Mapping

from dedup.index.local.file import IndexFile
from dedup.index.local.shelf import Shelf
from dedup.index.local.sqlite import Store
from dedup.index.parameters import Parameters

#: What is open in this process, by process (a fork has nothing open) and real path.
_shelves: dict[tuple[int, str], Shelf] = {}
_joining = threading.Lock()
#: Threads in which runs end that were abandoned.
_leaving: list[threading.Thread] = []


def join(
    path: str, run: str, parameters: Mapping[str, str], check: Callable[[Mapping[str, str]], Parameters]
) -> Shelf:
    """Returns the index in a file, for one run more; made of those parameters if there is none.

    ``check`` gets the parameters that are stored.
    """
    while _leaving:
        _leaving.pop().join()
    with _joining:
        key = os.getpid(), str(IndexFile(path).path)
        shelf = _shelves.get(key)
        if shelf is not None and shelf.store is not None:
            shelf.store.check_identity()
            check(shelf.store.header)
            shelf.begin(run)
        else:
            store = Store(path, parameters)
            try:
                shelf = Shelf(f"file:{store.name}", check(store.header), store)
                store.hold()
                shelf.begin(run)
            except BaseException:
                store.close()
                raise
            _shelves[key] = shelf
        return shelf


def leave(shelf: Shelf, run: str, finished: bool) -> None:
    """A run ends; the last one closes the index."""
    with _joining:
        if shelf.end(run, finished=finished):
            for key in [key for key, other in _shelves.items() if other is shelf]:
                del _shelves[key]
            shelf.close()


def abandon(shelf: Shelf, run: str) -> None:
    """A run ends that nobody has closed: its object is collected, be it where this thread holds any lock."""
    thread = threading.Thread(target=leave, args=(shelf, run, False), daemon=True)
    thread.start()
    _leaving.append(thread)
