"""What becomes of a page whose claim fails: the table of docs/reliability.md, "When the index fails"."""

from enum import Enum, auto


class Failure(Enum):
    """What can be wrong when a claim fails."""

    AWAY = auto()  #: the index is out of reach, and may come back
    UNUSABLE = auto()  #: the index is damaged, or it is another one: it will not come back
    FAULT = auto()  #: the program has a fault, and the index may have none


class Response(Enum):
    """What becomes of a page whose claim fails."""

    SET_ASIDE = auto()  #: it is kept unjudged, and filed when the index is back
    WAIT = auto()  #: its claim is made again; if the crawl is about to end, it is kept unjudged
    KEEP = auto()  #: it is kept unjudged, and never filed
    STOP = auto()  #: it is kept unjudged, and the crawl ends


#: By ``on_index_failure`` and by what is wrong; a line has the responses to the failures in their order.
RESPONSES = {
    (policy, failure): response
    for policy, responses in {
        "keep": (Response.SET_ASIDE, Response.KEEP, Response.KEEP),
        "pause": (Response.WAIT, Response.STOP, Response.KEEP),
        "stop": (Response.STOP, Response.STOP, Response.KEEP),
    }.items()
    for failure, response in zip(Failure, responses, strict=True)
}
