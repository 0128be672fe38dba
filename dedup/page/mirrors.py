"""Links between mirrors: pages of two hosts that lead to each other, and say the same besides.

Each of them names the other where the other names it: that is one difference in their words, and none in what they say.
"""

import re

from dedup.page.tokens import Tokens, join
from dedup.page.urls import folder, host, url_tokens


def named_alike(tokens: Tokens, url: str) -> Tokens:
    """Returns the tokens of the page at an address, with one name for all that lead to the same path on other hosts, and to itself.

    That name has all these hosts, and the page's own: so pages of two hosts have the same only if each leads to the other.
    O(tokens).

    >>> for own, other in (("a.org", "b.net"), ("b.net", "a.org")):
    ...     page = join(["lamp", f"//{other}/p/7", f"//{other}/p/8", "mirror"])
    ...     named_alike(Tokens(page, 4), f"http://{own}/p/7")[:2]
    ['lamp', '//a.org,b.net/p/7']
    ['lamp', '//a.org,b.net/p/7']
    """
    own, found = host(url), url_tokens(url, "", "")
    if not found or not found[1].startswith(f"//{own}/"):
        return tokens
    path = found[1].lower()[len(own) + 2 :]
    octets = b"\0%b\0" % join(tokens)
    if f"{path}\0".encode() not in octets:
        return tokens
    link = rb"//([^/\0,]+)%b" % re.escape(path.encode())
    hosts = {each.decode() for each in re.findall(rb"\0%b(?=\0)" % link, octets)}
    itself = url_tokens(url, url, folder(url))
    if not hosts or not itself:
        return tokens
    name = f"//{','.join(sorted({own, *hosts}))}{path}".encode()
    own_link = re.escape(itself[1].lower().encode())
    return Tokens(
        re.sub(rb"\0(?:%b|%b)(?=\0)" % (link, own_link), b"\0" + name, octets)[1:-1],
        len(tokens),
        tokens.find_breaks,
    )
