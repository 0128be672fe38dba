"""Values of settings: of the right type, and in range."""

from dedup.errors import SettingsError

__all__ = ["check_choice", "check_number"]


def check_number(name: str, value: object, low: float, high: float) -> None:
    """Raises `SettingsError` unless it is a number of the type of its bounds, within them.

    >>> check_number("RECALL", 1, 0.5, 0.9999)
    Traceback (most recent call last):
    dedup.errors.SettingsError: RECALL is 1; allowed: a number from 0.5 to 0.9999
    """
    whole = isinstance(low, int)
    kind = (int,) if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high:
        what = "a whole number" if whole else "a number"
        raise SettingsError(f"{name} is {value!r}; allowed: {what} from {low} to {high}")


def check_choice(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Raises `SettingsError` unless it is one of a few values, of the same type."""
    if not any(type(value) is type(choice) and value == choice for choice in allowed):
        raise SettingsError(f"{name} is {value!r}; allowed: {', '.join(map(repr, allowed))}")
