"""Starts and ends Spark for a command, and tells its errors in one line."""

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile
from typing import BinaryIO

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dedup.contrib.archives.workers import cores
from dedup.errors import DedupError, SettingsError

#: Java has 1 GB on one machine unless it is told otherwise.
ENDED = (
    "Spark could not finish: Java has ended, which may have had too little memory; on one machine it has more with "
    "PYSPARK_SUBMIT_ARGS='--driver-memory 4g pyspark-shell'"
)


@contextmanager
def session(master: str) -> Iterator[SparkSession]:
    """Yields the session of this process, or a new one, which is ended afterwards.

    Raises `SettingsError` if Spark can't be started, and `DedupError` for an error that Spark raises later.
    """
    is_own = SparkSession.getActiveSession() is None
    spark = _begin(master) if is_own else SparkSession.builder.getOrCreate()
    try:
        yield spark
    except (Py4JNetworkError, ConnectionError):
        raise DedupError(ENDED) from None
    except (PySparkException, Py4JError) as error:
        raise DedupError(f"Spark could not finish: {_reason(error)}") from None
    finally:
        if is_own:
            with suppress(Py4JError, ConnectionError):  # Java may have ended
                spark.stop()


def _begin(master: str) -> SparkSession:
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        raise SettingsError("--engine spark needs Java 17, such as Debian's openjdk-17-jre-headless")
    settings = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"}
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        settings |= dict.fromkeys(("spark.driver.bindAddress", "spark.driver.host"), "127.0.0.1")
        settings |= {"spark.sql.shuffle.partitions": str(2 * cores())}
    builder = SparkSession.builder.master(master).appName("scrapy dedup")
    for name, value in settings.items():
        builder = builder.config(name, value)
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    with TemporaryFile() as said:
        try:
            with _heard(said):
                return builder.getOrCreate()
        except (PySparkException, Py4JError) as error:
            said.seek(0)
            thrown = [
                line for line in said.read().decode("utf-8", "replace").splitlines() if "Exception" in line
            ]
            why = thrown[0].partition("Exception: ")[2] if thrown else ""
            raise SettingsError(
                f"--master is {master!r}, where Spark can't be started: {why or _reason(error)}"
            ) from None


@contextmanager
def _heard(file: BinaryIO) -> Iterator[None]:
    """Sends all that Java prints to a file."""
    stderr = os.dup(2)
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def _reason(error: Exception) -> str:
    """Returns the line of an error that gives the reason."""
    java = getattr(error, "java_exception", None)
    lines = str(java.getMessage() if java is not None else error).strip().splitlines()
    told = [line for line in lines if line.startswith(("dedup.errors.", "MemoryError", "OSError"))]
    return (told or lines or ["unknown"])[-1 if told else 0]
