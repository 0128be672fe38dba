"""Comments: all of a page's markup that no reader, script or link can see."""

import re

from dedup.compiled import fast

#: Elements in which nothing is a comment.
RAW = b"script", b"style", b"textarea", b"title", b"xmp", b"iframe", b"noembed", b"noframes", b"plaintext"
_RAW = b"|".join(rb"%b\b.*?(?:</%b\b|\Z)" % (name, name) for name in RAW)
#: What is before a comment, such as tags, in whose values nothing is one either; and the comment.
_COMMENT = re.compile(
    rb"((?:[^<]++|<(?:%b|!\[(?-i:CDATA)\[.*?(?:\]\]>|\Z)|[a-z](?:[^>\"']++|\"[^\"]*\"|'[^']*')*+|(?!!--)))*+)"
    % _RAW
    + rb"(?:<!--(?:-?>|.*?(?:--!?>|\Z))|\Z)",
    re.DOTALL | re.IGNORECASE,
)


def without_comments(markup: bytes) -> bytes:
    """Returns markup without comments.  O(octets).

    >>> without_comments(b"<p>7<!-- made in 3 ms --><script><!-- draw() --></script>")
    b'<p>7<script><!-- draw() --></script>'
    """
    if b"<!--" not in markup:
        return markup
    if fast:
        left: bytes = fast.without_comments(markup)
        return left
    return _COMMENT.sub(rb"\1", markup)
