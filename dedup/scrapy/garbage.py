"""Python's collector of garbage, which looks at every object there is each time that it looks at the old ones.

In a crawl most of these are modules, classes and functions, and looking at them takes about a twentieth of the time.
They are there until it ends, so what is there when it begins is left out.
"""

import gc

__all__ = ["leave_out", "take_in"]


def leave_out() -> bool:
    """Leaves out all objects that there are now, unless some are left out already; says whether it did."""
    if gc.get_freeze_count():
        return False  # somebody else has, or another crawl of this process
    gc.freeze()
    return True


def take_in() -> None:
    """Takes in again whatever is left out."""
    gc.unfreeze()
