"""The filter in Scrapy: an add-on, its middlewares, settings, drop log, signals and commands."""

from dedup.scrapy.addon import Addon
from dedup.scrapy.judgement import Judgement, NearDuplicate, Parked, change_of, judgement, own_text
from dedup.scrapy.signals import change_found, filter_failed, near_duplicate, refuse

__all__ = [
    "Addon",
    "Judgement",
    "NearDuplicate",
    "Parked",
    "change_found",
    "change_of",
    "filter_failed",
    "judgement",
    "near_duplicate",
    "own_text",
    "refuse",
]
