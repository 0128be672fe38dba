"""Generated pages whose content is data in a script, beside the shell of an application.

>>> page = app("next", 3, random.Random(1))
>>> "__NEXT_DATA__" in page, "fact3x" in page
(True, True)
"""

import json
import random
from collections.abc import Callable

#: How frameworks write data into pages.
APPS: dict[str, Callable[[str], str]] = {
    "json": lambda data: f'<script type="application/json">{data}</script>',
    "ld+json": lambda data: f'<script type="application/ld+json">{data}</script>',
    "next": lambda data: f'<script id="__NEXT_DATA__" type="application/json">{data}</script>',
    "state": lambda data: f"<script>window.__INITIAL_STATE__ = {data};</script>",
}
_SHELL = " ".join(f"shell{n}" for n in range(60))


def app(kind: str, number: int, rng: random.Random, *, words: int = 20, shell: str = _SHELL) -> str:
    """One of many pages of an application: the same shell, and data of its own."""
    text = " ".join(f"fact{number}x{n}" for n in range(words))
    data = {
        "title": f"item {number}",
        "text": text,
        "csrf": f"{rng.getrandbits(128):032x}",
        "time": rng.getrandbits(40),
    }
    return f"<title>App</title><div id=app>{shell}</div>{APPS[kind](json.dumps(data))}"


def changing(rng: random.Random) -> str:
    """The same page at every view, but for what its server makes anew: tokens, ids, times."""
    data = {
        "csrfToken": f"{rng.getrandbits(160):040x}",
        "buildId": f"{rng.getrandbits(80):020x}",
        "generatedAt": 1_700_000_000_000 + rng.getrandbits(30),
        "session": f"{rng.getrandbits(128):032x}",
        "text": "one and the same",
    }
    return f"<title>App</title><div id=app>{_SHELL}</div>{APPS['next'](json.dumps(data))}"
