# cython: language_level=3, boundscheck=False, wraparound=False
"""The walk over a page's tree, compiled: `dedup.page.html` does the same in Python where this is not installed.

It reads lxml's tree in place through lxml's public C interface.  Every loop goes along the nodes of the tree or the
octets of a text, without recursion, so that no page can exhaust the stack.
"""

from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.string cimport memcpy, strcmp
from lxml.includes cimport etreepublic as cetree
from lxml.includes.etreepublic cimport _Element, import_lxml__etree
from lxml.includes.tree cimport const_xmlChar, xmlAttr, xmlNode

import_lxml__etree()

cdef extern from "Python.h":
    object PyUnicode_New(Py_ssize_t size, Py_UCS4 maxchar)
    void* PyUnicode_DATA(object text)

cdef extern from "libxml/tree.h":
    int XML_ELEMENT_NODE
    int XML_TEXT_NODE
    int XML_CDATA_SECTION_NODE

#: What this module gives: it is not used by a version of the package that wants something else.
VERSION = 1

cdef enum:
    OTHER, LINK, IMAGE, BASE, RELATED, SCRIPT, DROPPED, NAME, CONTENT, MARGIN, CHROME

#: Of each octet: 0 for a separator, else what it is folded to.
cdef unsigned char FOLD[256]
cdef int octet
for octet in range(256):
    FOLD[octet] = octet if octet >= 128 or chr(octet).isalnum() or octet == 95 else 0
    if 65 <= octet <= 90:
        FOLD[octet] = octet + 32


cdef int kind_of(const char* name) noexcept:
    """What an element means to the walk; the sets of names are those of dedup.page.html."""
    cdef char first = name[0]
    if first == c"a":
        if name[1] == 0 or strcmp(name, "area") == 0:
            return LINK
        if strcmp(name, "aside") == 0:
            return CHROME
        if strcmp(name, "article") == 0:
            return CONTENT
    elif first == c"b":
        if strcmp(name, "base") == 0:
            return BASE
    elif first == c"f":
        if strcmp(name, "form") == 0:
            return CHROME
        if strcmp(name, "footer") == 0:
            return MARGIN
    elif first == c"h":
        if strcmp(name, "h1") == 0:
            return NAME
        if strcmp(name, "header") == 0:
            return MARGIN
    elif first == c"i":
        if strcmp(name, "img") == 0:
            return IMAGE
    elif first == c"l":
        if strcmp(name, "link") == 0:
            return RELATED
    elif first == c"m":
        if strcmp(name, "menu") == 0:
            return CHROME
        if strcmp(name, "main") == 0:
            return CONTENT
    elif first == c"n":
        if strcmp(name, "nav") == 0:
            return CHROME
        if strcmp(name, "noscript") == 0:
            return DROPPED
    elif first == c"s":
        if strcmp(name, "script") == 0:
            return SCRIPT
        if strcmp(name, "style") == 0:
            return DROPPED
        if strcmp(name, "section") == 0:
            return CONTENT
    elif first == c"t":
        if strcmp(name, "template") == 0:
            return DROPPED
        if strcmp(name, "title") == 0:
            return NAME
    return OTHER


cdef inline int separator(const unsigned char* text) noexcept:
    """How many octets a separator has that begins here and is not ASCII; 0 if it is not one of the usual ones."""
    if text[0] == 0xC2:
        return 2 if text[1] in (0xA0, 0xA3, 0xA9, 0xAB, 0xAE, 0xB0, 0xB7, 0xBB) else 0
    if text[0] == 0xE2 and text[1] == 0x80:
        return 3 if text[2] in (0x93, 0x94, 0x98, 0x99, 0x9C, 0x9D, 0xA2, 0xA6) else 0
    return 0


cdef bint add_words(list words, const unsigned char* text) except -1:
    """Splits a text into words; whether one of them is not ASCII, and has to be folded yet."""
    cdef const unsigned char* end
    cdef unsigned char* folded
    cdef Py_ssize_t at
    cdef unsigned char all_octets
    cdef bint is_left = False
    while True:
        while text[0] and (FOLD[text[0]] == 0 or (text[0] >= 128 and separator(text))):
            text += separator(text) if text[0] >= 128 else 1
        if not text[0]:
            return is_left
        end = text
        all_octets = 0
        while FOLD[end[0]] and not (end[0] >= 128 and separator(end)):
            all_octets |= end[0]
            end += 1
        if all_octets < 128:
            word = PyUnicode_New(end - text, 127)
            folded = <unsigned char*> PyUnicode_DATA(word)
            for at in range(end - text):
                folded[at] = FOLD[text[at]]
        else:
            is_left = True
            raw = (<const char*> text)[: end - text]
            word = PyUnicode_DecodeUTF8(raw.lower(), end - text, "replace")
        words.append(word)
        text = end


cdef inline object attribute(xmlNode* node, const char* name):
    """The value of an attribute; None if the element has none of that name."""
    if node.properties == NULL:
        return None
    return cetree.attributeValueFromNsName(node, NULL, <const_xmlChar*> name)


cdef bint has_role(xmlNode* node) noexcept:
    cdef xmlAttr* each = node.properties
    while each != NULL:
        if each.ns == NULL and strcmp(<const char*> each.name, "role") == 0:
            return True
        each = each.next
    return False


def walk(_Element root, str base, bint keep_urls, str mark, tuple parts, frozenset roles, find_base, folder, resolve):
    """The words of a page, and what else `dedup.page.html` notes on its walk.

    ``parts`` are those to which words may belong: text, chrome, name.  ``find_base(base, href)``, ``folder(base)`` and
    ``resolve(value, base)`` are those of `dedup.page.urls`.  Returns the words, whether some of them are to be folded
    yet, the marks among them, the links, the URL tokens by what is left of them without ids, the scripts, the
    relations (rel and href of each link element) and the base.
    """
    cdef list words = [], marks = [], scripts = [], related = []
    cdef set links = set()
    cdef dict bare = {}
    cdef str url = base, below = folder(base)
    cdef xmlNode* top = root._c_node
    cdef xmlNode* node = top
    cdef xmlNode* dropping = NULL
    cdef xmlNode* chrome = NULL
    cdef xmlNode* content = NULL
    cdef xmlNode* named = NULL
    cdef bint no_title = True, no_heading = True, is_left = False, opened, is_name
    cdef int kind
    while True:
        if node.type == XML_ELEMENT_NODE:
            kind = kind_of(<const char*> node.name) if node.ns == NULL else OTHER
            if kind == RELATED:
                rel, href = attribute(node, "rel"), attribute(node, "href")
                if rel is not None and href is not None:
                    related.append((rel, href))
            if dropping != NULL:
                pass
            elif kind == SCRIPT or kind == DROPPED:
                dropping = node
                if kind == SCRIPT:
                    scripts.append((attribute(node, "type") or "", cetree.textOf(node) or ""))
            else:
                opened = False
                is_name = kind == NAME and (no_heading if node.name[0] == c"h" else no_title)
                if content == NULL and kind == CONTENT:
                    content = node
                elif named == NULL and is_name:
                    named = node
                    opened = True
                    if node.name[0] == c"h":
                        no_heading = False
                    else:
                        no_title = False
                elif chrome == NULL and (
                    kind == CHROME
                    or (kind == MARGIN and content == NULL)
                    or (has_role(node) and attribute(node, "role").strip().lower() in roles)
                ):
                    chrome = node
                    opened = True
                if opened:
                    words.append(mark)
                    marks.append(parts[2] if named != NULL else parts[1])
                if kind == LINK or kind == IMAGE:
                    value = attribute(node, "href" if kind == LINK else "src")
                    if value:
                        found = resolve(value, base, below)
                        if found is not None:
                            token, stripped = found
                            if keep_urls:
                                words.append(mark)
                                marks.append(token)
                                if stripped is not token and stripped != token:
                                    bare.setdefault(stripped, set()).add(token)
                            if kind == LINK:
                                links.add(token)
                elif kind == BASE and base == url:
                    value = attribute(node, "href")
                    if value:
                        base = find_base(url, value)
                        below = folder(base)
            if node.children != NULL:
                node = node.children
                continue
        elif dropping == NULL and (node.type == XML_TEXT_NODE or node.type == XML_CDATA_SECTION_NODE):
            if node.content != NULL and add_words(words, <const unsigned char*> node.content):
                is_left = True
        while True:  # the node, and all that is in it, has been visited
            if node == dropping:
                dropping = NULL
            if node == content:
                content = NULL
            if node == named or node == chrome:
                if node == named:
                    named = NULL
                else:
                    chrome = NULL
                words.append(mark)
                marks.append(parts[2] if named != NULL else parts[1] if chrome != NULL else parts[0])
            if node == top:
                return words, is_left, marks, links, bare, scripts, related, base
            if node.next != NULL:
                node = node.next
                break
            node = node.parent
