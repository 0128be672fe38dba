"""The settings of a worker, checked."""

from typing import NamedTuple

from scrapy.settings import BaseSettings

from dedup.contrib.workers.feeds import are_on_disk
from dedup.contrib.workers.partition import Shard
from dedup.errors import SettingsError
from dedup.scrapy.settings import namespace_of, read_setting, shared_address, spelled


class Options(NamedTuple):
    """The settings of a worker."""

    shard: Shard
    address: str  #: of the index's Redis
    namespace: str
    key: str = ""  #: signs what is handed over
    leaves_rest: bool = False  #: what is scheduled and done is noted for the next worker
    names_files: bool = False  #: and where the items are, which the next worker has to have


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
        heir = read_setting(settings, "heir")
        names_files = heir is None and not settings.get("JOBDIR") and are_on_disk(settings)
        leaves_rest = heir == "rest" or names_files
        if leaves_rest and settings.get("JOBDIR"):
            why = "but what is left is in Redis then, and a JOBDIR would hold it, too; leave one of them out"
            raise SettingsError(name="heir", value="rest", others={"JOBDIR": settings["JOBDIR"]}, why=why)
    except SettingsError as error:
        raise spelled(error) from None
    return Options(shard, address, namespace_of(settings, spider), key, leaves_rest, names_files)
