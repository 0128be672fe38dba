"""Settings of scrapy-redis that do harm where several workers share its queue, or to the filter: each is warned of."""

import logging

from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)


def warn_of_queue(settings: BaseSettings) -> None:
    """Says in a line what a setting of the scheduler of scrapy-redis does, if that is one of these."""
    if "scrapy_redis" not in str(settings.get("SCHEDULER")):
        return
    if settings.getbool("SCHEDULER_FLUSH_ON_START"):
        logger.warning(
            "SCHEDULER_FLUSH_ON_START is True: a worker that starts empties the queue of those that are at work"
        )
    if not settings.getbool("SCHEDULER_PERSIST"):
        logger.warning(
            "SCHEDULER_PERSIST is False: the first worker that ends empties the queue of the others; with True, delete "
            "the keys of the queue and its filter of duplicate requests before a crawl that is to begin anew"
        )
    seconds = settings.getint("SCHEDULER_IDLE_BEFORE_CLOSE")
    if seconds and "PriorityQueue" not in str(settings.get("SCHEDULER_QUEUE_CLASS", "PriorityQueue")):
        logger.warning(
            "SCHEDULER_IDLE_BEFORE_CLOSE is %d: while the queue is empty, this whole process stands still for that many "
            "seconds, and so does what keeps its claims alive; set it to 0, or use the PriorityQueue",
            seconds,
        )
