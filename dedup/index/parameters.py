"""Whether what is stored was built with the parameters that are wanted."""

from collections.abc import Mapping

from dedup.errors import IndexMismatchError

__all__ = ["FORMAT", "check_format", "check_parameters"]

#: Changes whenever stored entries would be read differently.
FORMAT = 3


def check_format(where: str, stored: object) -> None:
    """Raises `IndexMismatchError` if the entries there are of another format."""
    text = str(stored)
    if text.isdigit() and int(text) != FORMAT:
        age = "a newer" if int(text) > FORMAT else "an older"
        raise IndexMismatchError(
            f"the index {where} was built by {age} version of this program: its format is {text}, and this "
            f"one's {FORMAT}; use that version, or another DEDUP_INDEX or DEDUP_NAMESPACE"
        )


def check_parameters(what: str, stored: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    """Raises `IndexMismatchError`, naming the first parameter that is not as wanted."""
    for name, value in wanted.items():
        if stored.get(name) != value:
            there = repr(stored[name]) if name in stored else "not stored"
            raise IndexMismatchError(
                f"{what} was built with other parameters: {name} is {there} there "
                f"and {value!r} here; use the same settings, or another DEDUP_INDEX or DEDUP_NAMESPACE"
            )
