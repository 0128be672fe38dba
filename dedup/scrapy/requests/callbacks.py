"""Names the callback that a page is handed to, and finds the data that the callback holds.

Another callback makes other items of the same page, or none; CrawlSpider's rules have one each.
"""

from contextlib import suppress
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from scrapy import Request, Spider
from scrapy.spiders import CrawlSpider

#: The callbacks that pages have by default.
_DEFAULT = frozenset({"parse", "_parse"})


def callback_of(request: Request) -> tuple[str, list[Any]]:
    """Returns the name of a request's callback, "" for the default one, and the data that the callback holds.

    Data are the arguments of a `functools.partial`, what a function has bound, and ``cb_kwargs`` of a rule.  A callback
    that is neither a function nor a method of the spider is data as a whole.

    >>> callback_of(Request("http://a.org/")), callback_of(Request("http://a.org/", partial(callback_of, item=7)))
    (('', []), ('dedup.scrapy.requests.callbacks.callback_of', [{'item': 7}]))
    """
    callback: Any = request.callback
    spider, rule = getattr(callback, "__self__", None), request.meta.get("rule")
    if isinstance(spider, CrawlSpider) and isinstance(rule, int) and callback == spider._callback:
        wanted = spider._rules[rule]
        name, held = _read(wanted.callback)
        if wanted.callback is not None:
            name += " follow" * wanted.follow
            held += filter(None, [wanted.cb_kwargs])
        return name, held
    return _read(callback)


def _read(callback: Any) -> tuple[str, list[Any]]:
    held: list[Any] = []
    while isinstance(callback, partial):
        held += filter(None, (callback.args, callback.keywords))
        callback = callback.func
    if callback is None:
        return "", held
    if isinstance(callback, MethodType) and isinstance(callback.__self__, Spider):
        return "" if callback.__name__ in _DEFAULT else callback.__name__, held
    if isinstance(callback, FunctionType):
        held += (value for value in _bound(callback) if not isinstance(value, Spider))
        line = f" {callback.__code__.co_firstlineno}" * (callback.__name__ == "<lambda>")
        return f"{callback.__module__}.{callback.__qualname__}{line}", held
    return "", [*held, callback]


def _bound(function: FunctionType) -> list[Any]:
    """Returns the defaults of its arguments, and the variables around it that it uses."""
    found = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # the variable has no value
            found.append(cell.cell_contents)
    return found
