"""The settings of a worker, checked."""

from typing import NamedTuple
from urllib.parse import urlsplit

from scrapy.settings import BaseSettings

from dedup.contrib.workers.partition import Shard
from dedup.errors import SettingsError
from dedup.scrapy.settings import namespace_of, read_setting, shared_address, spelled


class Options(NamedTuple):
    """The settings of a worker."""

    shard: Shard
    address: str  #: of the index's Redis
    namespace: str
    key: str  #: signs what is handed over
    leaves_rest: bool  #: what is scheduled and done is noted for the next worker


def shard_options(settings: BaseSettings, spider: str = "") -> Options | None:
    """Returns the options of a worker; None without a shard.  Raises `SettingsError`."""
    try:
        text = read_setting(settings, "shard")
        if text is None:
            return None
        shard = Shard.read(text)
        address = shared_address(settings, str(shard))
        if shard.number is None and settings.get("JOBDIR"):
            why = "but any free shard is not that of the job: with a JOBDIR, name the shard, such as 1/4"
            raise SettingsError(
                name="shard", value=str(shard), others={"JOBDIR": settings["JOBDIR"]}, why=why
            )
        key: str = read_setting(settings, "hash_key")
        leaves_rest = read_setting(settings, "heir") == "rest"
        if leaves_rest and settings.get("JOBDIR"):
            why = "but what is left is in Redis then, and a JOBDIR would hold it, too; leave one of them out"
            raise SettingsError(name="heir", value="rest", others={"JOBDIR": settings["JOBDIR"]}, why=why)
        if leaves_rest:
            check_feeds(settings)
    except SettingsError as error:
        raise spelled(error) from None
    return Options(shard, address, namespace_of(settings, spider), key, leaves_rest)


def check_feeds(settings: BaseSettings) -> None:
    """Refuses feeds that a worker which is killed would not leave, or the next would spoil.  Raises `SettingsError`."""
    feeds = settings.getdict("FEEDS") or {each: {} for each in [settings.get("FEED_URI")] if each}
    for uri, options in feeds.items():
        scheme = urlsplit(str(uri)).scheme
        if scheme == "stdout":
            continue
        if len(scheme) > 1 and scheme != "file":
            why = "but this feed is stored when the crawl ends, so that a worker which is killed leaves nothing; name a file"
        elif options.get("postprocessing"):
            why = "but the postprocessing of this feed holds back what was exported; leave it out"
        elif "%(time)s" not in str(uri):
            why = "but the next worker would write into this feed, too; put %(time)s into its name"
        else:
            continue
        raise SettingsError(name="heir", value="rest", others={"FEEDS": str(uri)}, why=why)
