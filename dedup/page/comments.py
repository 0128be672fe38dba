"""Comments: all of a page's markup that no reader, script or link can see."""

from dedup.compiled import fast
from dedup.page.tokenizer import comments


def without_comments(markup: bytes) -> bytes:
    """Returns markup without comments, but for those that are none in XHTML.  O(octets).

    >>> without_comments(b"<p>7<!-- made in 3 ms --><script><!-- draw() --></script>")
    b'<p>7<script><!-- draw() --></script>'
    """
    if b"<!--" not in markup:
        return markup
    if fast:
        whole: bytes = fast.without_comments(markup)
        return whole
    left, parts = 0, list[bytes]()
    for start, end in comments(markup):
        parts.append(markup[left:start])
        left = end
    return b"".join([*parts, markup[left:]])
