"""Which methods of a spider its requests may have as callbacks: those that its own code names."""

import inspect
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any

from scrapy import Spider

#: What every spider has, and is no callback.
NONE = frozenset(dir(Spider)) - {"parse", "_parse"}
#: How deep texts may lie in values of a class that hold others.
DEPTH = 8


def callbacks(spider: Spider) -> frozenset[str]:
    """Returns the names of all methods that take a response, and that are named in the code of the spider's classes, in a
    function beside them, or by a text in a value of theirs.

    >>> class Shop(Spider):
    ...     def parse(self, response): return response.follow("a", self.parse_item, errback=self.failed)
    ...     def parse_item(self, response, page=1): ...
    ...     def failed(self, failure): ...
    ...     def empty(self, response): ...
    >>> sorted({"parse_item", "failed", "empty", "logger"} & callbacks(Shop("shop")))
    ['failed', 'parse_item']
    """
    classes = [cls for cls in type(spider).__mro__ if cls not in Spider.__mro__]
    modules = {name: sys.modules.get(name, object) for name in (cls.__module__ for cls in classes)}
    beside = [
        value
        for module in modules.values()
        for value in vars(module).values()
        if isinstance(value, FunctionType) and value.__module__ in modules
    ]
    names = {
        "parse",
        "_parse",
        *_names([*beside, *(each for cls in classes for each in vars(cls).values())]),
    } - NONE
    return frozenset(name for name in names if _takes_response(inspect.getattr_static(spider, name, None)))


def _names(values: Iterable[object], depth: int = DEPTH) -> Iterator[str]:
    for value in values if depth else ():
        match value:
            case str():
                yield value
            case CodeType():
                yield from value.co_names
                yield from _names(value.co_consts, depth - 1)
            case FunctionType():
                yield from _names([value.__code__, getattr(inspect.unwrap(value), "__code__", None)], depth)
            case staticmethod() | classmethod():
                yield from _names([value.__func__], depth - 1)
            case property():
                yield from _names([value.fget], depth - 1)
            case dict():
                yield from _names([*value.keys(), *value.values()], depth - 1)
            case tuple() | list() | set() | frozenset():
                yield from _names(value, depth - 1)


def _takes_response(value: Any) -> bool:
    function = getattr(value, "__func__", value)  # of a class, or static
    if not isinstance(function, FunctionType):
        return False
    parameters = inspect.signature(function).parameters.values()
    places = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    takes_any = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    return takes_any or len(places) > (not isinstance(value, staticmethod))
