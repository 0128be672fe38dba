"""The filter in Scrapy: an add-on, its middlewares, settings, drop log, signals and commands."""

from dedup.scrapy.addon import Addon
from dedup.scrapy.judgement import Judgement, NearDuplicate, Parked, judgement
from dedup.scrapy.signals import filter_failed, near_duplicate, refuse

__all__ = [
    "Addon",
    "Judgement",
    "NearDuplicate",
    "Parked",
    "filter_failed",
    "judgement",
    "near_duplicate",
    "refuse",
]
