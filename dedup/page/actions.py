"""Tells addresses that look as if a request of them does something: those are not asked for a second time.

A link may log out, delete, confirm or buy, though it should not, and an address with a token for one use is spent.  It is
enough that a part of an address begins or ends with such a word: a page that is called so and does nothing is only left in
peace.
"""

import re

#: What the parts of such an address begin or end with.
VERBS = (
    "logout log-out logoff log-off signout sign-out signoff sign-off delete remove destroy erase purge trash "
    "unsubscribe subscribe optout opt-out confirm verify activate deactivate approve reject cancel revoke reset "
    "buy checkout purchase pay vote upvote downvote otp nonce token onetime one-time"
)
#: What says in either order that something is put somewhere.
ADDED = "cart basket bag wishlist"

_HUMP = re.compile("(?<=[a-z])(?=[A-Z])")
_verbs, _added = VERBS.replace("-", "[-_.+]").replace(" ", "|"), ADDED.replace(" ", "|")
_ACTION = re.compile(
    rf"""(?: ^|[/?&;=]) (?:{_verbs}) (?![a-z])
    | (?<![a-z]) (?:{_verbs}) (?: \.[a-z]+)? (?: [/?&;=]|$)
    | (?<![a-z]) add (?: [^a-z]*to)? [^a-z]* (?:{_added}) (?![a-z])
    | (?<![a-z]) (?:{_added}) (?: \.[a-z]+)? [^a-z]* add (?![a-z])""",
    re.VERBOSE,
)


def is_action(url: str) -> bool:
    """Returns whether an address looks as if a request of it did something.

    >>> [is_action(f"http://a.org/{path}") for path in ("user/logout.php", "?do=deleteItem&id=7", "cart/add/7")]
    [True, True, True]
    >>> is_action("http://a.org/how-to-delete-files.html"), is_action("http://a.org/tokens?page=2")
    (False, False)
    """
    where = url.partition("://")[2].partition("#")[0].partition("/")[2]
    return _ACTION.search(_HUMP.sub("-", where).lower()) is not None
