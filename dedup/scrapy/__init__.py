"""The filter in Scrapy: an add-on, its middlewares, settings, drop log, signals and commands."""

from typing import TYPE_CHECKING, Any

from dedup.scrapy.addon import Addon

if TYPE_CHECKING:
    from dedup.scrapy.middleware import Judgement, NearDuplicate, judgement, refuse

__all__ = ["Addon", "Judgement", "NearDuplicate", "judgement", "refuse"]


def __getattr__(name: str) -> Any:
    # Late, so that `scrapy --help` doesn't wait for numpy.
    if name in __all__:
        from dedup.scrapy import middleware

        return getattr(middleware, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
