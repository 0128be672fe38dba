"""Which parts of a query matter: what a site says by the header No-Vary-Search (draft-ietf-httpbis-no-vary-search).

``params`` names parameters that don't matter, or says that none does, ``except`` those that do all the same, and with
``key-order`` their order doesn't matter.  Of a header that is not exactly that, nothing is believed.
"""

from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote_plus

#: Characters of the longest header and of the longest query that are read, and parameters in it.
MAX_HEADER, MAX_QUERY, MAX_PARAMETERS = 2_000, 2_000, 100


class Variance(NamedTuple):
    """What of a query matters."""

    names: frozenset[str]
    only: bool  #: whether only parameters of these names matter, or all but these
    ordered: bool  #: whether the order of names matters

    def matter(self, query: str) -> tuple[tuple[str, str], ...] | None:
        """Returns the parameters of a query that matter; None if it is too long to be read.

        >>> variance = read_variance('params=("utm_source"), key-order')
        >>> variance.matter("b=2&utm_source=mail&a=%41")
        (('a', 'A'), ('b', '2'))
        """
        if len(query) > MAX_QUERY or query.count("&") >= MAX_PARAMETERS:
            return None
        # What is no UTF-8 would be one and the same character by the draft, and is not here.
        found = parse_qsl(query, keep_blank_values=True, errors="surrogateescape")
        left = [pair for pair in found if (pair[0] in self.names) == self.only]
        return tuple(left if self.ordered else sorted(left, key=lambda pair: pair[0]))


def read_variance(header: str) -> Variance | None:
    """Returns what a header says; None if every difference matters.  It raises nothing.

    >>> read_variance('params, except=("id")')
    Variance(names=frozenset({'id'}), only=True, ordered=True)
    >>> read_variance("params=?0"), read_variance('except=("id")'), read_variance('params=(1), key-order')
    (None, None, None)
    """
    import http_sf  # twenty modules, and few sites send the header

    try:
        if len(header) > MAX_HEADER:
            return None
        said: Any = http_sf.parse(header.encode("ascii"), tltype="dictionary")
        has_except = "except" in said
        order, params, kept = (_value(said.pop(name, None)) for name in ("key-order", "params", "except"))
    except (http_sf.StructuredFieldError, UnicodeEncodeError, RecursionError):
        return None
    names = (kept if params is True else params) or []
    # An unknown key may change what the others mean, and "except" goes with "params" alone.
    is_clear = (
        not said
        and isinstance(order, bool)
        and (not has_except or (params is True and isinstance(kept, list)))
    )
    if not is_clear or params is None or kept is None or not isinstance(names, list):
        return None
    variance = Variance(frozenset(names), params is True, not order)
    return None if variance == Variance(frozenset(), only=False, ordered=True) else variance


def _value(said: Any) -> bool | list[str] | None:
    """Returns a flag, which is false if it is missing, or names; None if it is neither."""
    value = False if said is None else said[0]
    if isinstance(value, bool):
        return value
    if isinstance(value, list) and all(type(name) is str for name, _ in value):
        return [unquote_plus(name, errors="surrogateescape") for name, _ in value]
    return None
