"""Kinds of values, `Setting`: a name with the values that it may have, and `Group`: settings that go together.

A value is *read* where people write it, in a settings file or on a command line, where all is text; it is
*checked* where a program passes it.
"""

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, NamedTuple, TypeVar

from dedup.errors import SettingsError

T = TypeVar("T")


class Kind(ABC):
    """Which values are allowed; as a string, that in words."""

    secret = False  #: whether a value is never shown

    def __init__(self, form: str) -> None:
        """``form``: which values are allowed, in words."""
        self.form = form

    def __str__(self) -> str:
        return self.form

    def read(self, value: object) -> object:
        """Returns the value that is meant.  One that can't be read is returned unchanged, and is not admitted."""
        return value

    @abstractmethod
    def admits(self, value: object) -> bool:
        """Returns whether a value is allowed, type included."""


class Number(Kind):
    """A number in a range, its ends included; it must be whole if the bounds are.

    >>> print(Number(0, 7), Number(0.5, 0.9999), sep=", ")
    a whole number from 0 to 7, a number from 0.5 to 0.9999
    >>> Number(0, 7).read("3"), Number(0, 7).read("3.5"), Number(0.0, 1.0).read("3.5")
    (3, '3.5', 3.5)
    """

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high, self.is_whole = low, high, isinstance(low, int)
        whole, bound = ("whole ", ",") if self.is_whole else ("", "g")
        super().__init__(f"a {whole}number from {low:{bound}} to {high:{bound}}")

    def read(self, value: object) -> object:
        if not isinstance(value, str) or (self.is_whole and not re.fullmatch(r"[+-]?\d+", value)):
            return value
        with suppress(ValueError):
            return int(value) if self.is_whole else float(value)
        return value

    def admits(self, value: object) -> bool:
        kinds = (int,) if self.is_whole else (int, float)
        return isinstance(value, kinds) and not isinstance(value, bool) and self.low <= value <= self.high


class Choice(Kind):
    """One of a few values."""

    def __init__(self, values: tuple[object, ...]) -> None:
        self.values = values
        super().__init__(", ".join(map(repr, values)))

    def admits(self, value: object) -> bool:
        return any(type(value) is type(choice) and value == choice for choice in self.values)


class Flag(Choice):
    """True or False; 1 and 0 are read, too, and any case.

    >>> Flag().read("true"), Flag().read("0"), Flag().admits("true")
    (True, False, False)
    """

    def __init__(self, values: tuple[object, ...] = (True, False)) -> None:
        super().__init__(values)

    def read(self, value: object) -> object:
        return {"true": True, "1": True, "false": False, "0": False}.get(str(value).lower(), value)


class Text(Kind):
    """Text, or a path; who uses it may ask more of it, which ``form`` puts into words."""

    def __init__(self, form: str = "text", *, secret: bool = False) -> None:
        """``secret``: whether it is never shown."""
        super().__init__(form)
        self.secret = secret

    def read(self, value: object) -> object:
        return os.fspath(value) if isinstance(value, os.PathLike) else value

    def admits(self, value: object) -> bool:
        # A secret is hashed, which lone surrogates can't be.
        return isinstance(value, str) and not (self.secret and re.search("[\ud800-\udfff]", value))


class LogPath(Text):
    """The path of a log; a relative one begins where whoever reads the setting says."""

    def __init__(self) -> None:
        super().__init__("a path, in which %(name)s and %(time)s are filled in, or '' for none")


class Texts(Kind):
    """Any number of texts, in the order given; a text alone is one of them, and "" is none.

    >>> Texts("words").read("one"), Texts("words").read(["one", "two"]), Texts("words").admits((1,))
    (('one',), ('one', 'two'), False)
    """

    def read(self, value: object) -> object:
        if isinstance(value, str):
            return (value,) if value else ()
        return tuple(value) if isinstance(value, list) else value

    def admits(self, value: object) -> bool:
        return isinstance(value, tuple) and all(isinstance(each, str) for each in value)


class _NotText:
    """Stands in an error for a secret that is not text."""

    def __repr__(self) -> str:
        return "not text"


class Setting(NamedTuple):
    """One setting: all that is said of it anywhere comes from here.

    >>> size = Setting("size", Number(1, 100), 6, "How many tokens a shingle has.")
    >>> size.read("8"), size.read(None)
    (8, 6)
    >>> size.read("few")
    Traceback (most recent call last):
    dedup.errors.SettingsError: size is 'few'; allowed: a whole number from 1 to 100
    """

    name: str  #: as a keyword of the library
    kind: Kind
    default: Any  #: None: depends on something else, as ``text`` says
    text: str  #: what it does, in a sentence

    def read(self, value: object) -> Any:
        """Returns the value that is meant in a settings file or, as text, on a command line.

        None is the default, and so is "" where the default is None, which a command line can't say otherwise.
        Raises `SettingsError`.
        """
        if value is None or (value == "" and self.default is None):
            return self.default
        meant = self.kind.read(value)
        self.check(meant)
        return meant

    def check(self, value: object) -> None:
        """Raises `SettingsError` unless the value is one that a program may pass."""
        if not self.kind.admits(value):
            raise self.refusal(value)

    def refusal(self, value: object, why: str = "") -> SettingsError:
        """Returns the error that refuses a value; ``why`` is a clause that goes on from it ("which ...")."""
        shown = _NotText() if self.kind.secret else value
        return SettingsError(name=self.name, value=shown, allowed=str(self.kind), why=why)


def setting(default: T, kind: Kind, text: str) -> T:
    """Returns a field of a `Group`: its default, the values that it may have, and what it does, in a sentence."""
    return field(default=default, repr=not kind.secret, metadata={"kind": kind, "text": text})


@dataclass(frozen=True)
class Group:
    """Settings that one part of the program carries: a dataclass each of whose fields is a `setting`.

    Raises `SettingsError` for a value that is not allowed.

    >>> @dataclass(frozen=True)
    ... class Shingles(Group):
    ...     size: int = setting(6, Number(1, 100), "How many tokens a shingle has.")
    >>> Shingles(size=8)
    Shingles(size=8)
    >>> Shingles(size=0)
    Traceback (most recent call last):
    dedup.errors.SettingsError: size is 0; allowed: a whole number from 1 to 100
    """

    def __post_init__(self) -> None:
        for name, each in self.settings().items():
            value = getattr(self, name)
            if value is not None or each.default is not None:
                each.check(value)

    @classmethod
    @cache
    def settings(cls) -> Mapping[str, Setting]:
        """Returns the settings of the group, by name."""
        return {
            each.name: Setting(each.name, each.metadata["kind"], each.default, each.metadata["text"])
            for each in fields(cls)
            if "kind" in each.metadata
        }


def check(name: str, value: object, kind: Kind) -> None:
    """Raises `SettingsError` unless a value that is no setting's is of its kind.

    >>> check("features.slots", 100, Choice((64, 128)))
    Traceback (most recent call last):
    dedup.errors.SettingsError: features.slots is 100; allowed: 64, 128
    """
    Setting(name, kind, None, "").check(value)
