"""Pieces of hostile pages."""

#: A paragraph with enough words for a page to be judged.
SURE = "<p>" + "words that are here so that the page is not short " * 10
#: Pieces that may hide a tag, or look like one.
SOUP = [
    *("<p ", "</p>", "<a b=", "<html ", "<body ", "<1", "</ ", "<script>", "</script>", "<style>", "<title>"),
    *(
        "</title", "<xmp>", "<plaintext>", "<template>", "<!--", "-->", "<?x", "?>", "<![CDATA[", "]]>",
        "&amp;",
    ),
    *("='", "'", '"', ">", "<", " ", "/", "=", "\n", '="', "=''", '= "', '=">"', "\x0c", "\xa0", "é"),
    *("a1", "b2", "c", "d", " e", " f", " g"),
]  # fmt: skip


def numbered(form: str, count: int) -> str:
    """Makes ``count`` copies that differ in a number."""
    return "".join(form.replace("#", str(number)) for number in range(count))


def until(size: int, unit: str, before: str = "") -> str:
    """Makes as many copies as fit into ``size`` characters."""
    return before + unit * ((size - len(before)) // len(unit))
