"""The add-on: ``ADDONS = {"dedup.scrapy.Addon": 500}`` is the whole installation."""

from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

#: Of what reads the text: after decompression (590), and before meta refreshes (580).
CHARSET_ORDER = 585

#: Where the components are put.  They are named, and Scrapy loads them when it makes them: a module of its own that
#: it loads before looks through all that are there, which takes .04 s more if numpy is one of them.
COMPONENTS = (
    # Before decompression.
    ("DOWNLOADER_MIDDLEWARES", "dedup.scrapy.bodies.WholenessMiddleware", 595),
    ("DOWNLOADER_MIDDLEWARES", "dedup.scrapy.bodies.CharsetMiddleware", CHARSET_ORDER),
    # Next to the engine, so that what it judges is what the spider will get: the middlewares of a project, at 543 for
    # example, may have taken a page for a ban, and sent its request again.
    ("DOWNLOADER_MIDDLEWARES", "dedup.scrapy.middleware.NearDuplicateMiddleware", 0),
    # Next to the engine, so that it sees a page's whole output handed over.
    ("SPIDER_MIDDLEWARES", "dedup.scrapy.confirm.ConfirmMiddleware", 10),
    # Next to the spider: what gets there has been refused by no other middleware.
    ("SPIDER_MIDDLEWARES", "dedup.scrapy.confirm.ArrivalMiddleware", 1_000_000),
    ("EXTENSIONS", "dedup.scrapy.extensions.Timeline", 0),
    ("EXTENSIONS", "dedup.scrapy.log.progress.Progress", 0),
)
#: Those of some crawls alone; in others, what they need is not loaded.  The first is still nearer to the engine: it parks
#: what has left the scheduler before anything else is done with it, and learns from verdicts.  The second is still next to
#: the spider: what it notes of a callback's requests is what the callback gave.
LINKS = ("DOWNLOADER_MIDDLEWARES", "dedup.scrapy.links.middleware.LinksMiddleware", -1)
REVISITS = ("SPIDER_MIDDLEWARES", "dedup.contrib.changes.revisits.RevisitMiddleware", 999_999)
#: Those of the workers of a crawl: next to the downloader, so that what it lets pass is sent, and next to the engine, so
#: that it sees the start requests that are to be scheduled.
SHARD_COMPONENTS = (
    ("DOWNLOADER_MIDDLEWARES", "dedup.contrib.workers.shards.ShardMiddleware", 1_000_000),
    ("SPIDER_MIDDLEWARES", "dedup.contrib.workers.start.ShardStartMiddleware", 5),
)


class Addon:
    """Puts middlewares and extensions into their places."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Called by Scrapy.  A project that has given them other places keeps those."""
        from dedup.scrapy.queues import warn_of_queue
        from dedup.scrapy.settings import asks_for, is_sharded, may_revisit, weighs_links

        if is_sharded(settings):
            for component in SHARD_COMPONENTS:
                _place(settings, *component)
        if not asks_for(settings, "enabled"):
            return  # and nothing of it is loaded
        for component in COMPONENTS:
            _place(settings, *component)
        if weighs_links(settings):
            _place(settings, *LINKS)
        if may_revisit(settings):
            _place(settings, *REVISITS)
        warn_of_queue(settings)


def _place(settings: BaseSettings, name: str, path: str, order: int) -> None:
    """As `setdefault_in_component_priority_dict` does it, but for a component that is not loaded yet."""
    places = settings.getdict(name)
    if not any(_is_at(path, component) for component in places):
        settings.set(name, places | {path: order}, settings.getpriority(name) or 0)


def _is_at(path: str, component: str | type) -> bool:
    """Whether a component, or its path, which may be another one, is the component at this path."""
    name = component.rpartition(".")[2] if isinstance(component, str) else getattr(component, "__name__", "")
    if name != path.rpartition(".")[2]:
        return False  # and nothing of it is loaded
    return component == path or load_object(component) is load_object(path)
