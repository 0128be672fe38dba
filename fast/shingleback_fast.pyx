# cython: language_level=3, boundscheck=False, wraparound=False
"""What Shingleback does with every page, compiled: the walk over its tree, and the numbers of its tokens.

`dedup.page.walk` and `dedup.fingerprint.numbers` do the same in Python and numpy where this is not installed.  The walk
reads lxml's tree in place through lxml's public C interface.  Every loop goes along the nodes of the tree or the
octets of a text, without recursion, so that no page can exhaust the stack.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from cpython.ref cimport PyObject
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset, strcmp
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
VERSION = 2

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
    """What an element means to the walk; the sets of names are those of dedup.page.walk."""
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
    """The words of a page, and what else `dedup.page.walk` notes.

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


# --- Tokens -> numbers --------------------------------------------------------------------------------


cdef inline uint64_t mix(uint64_t value) noexcept nogil:
    value = (value ^ (value >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    value = (value ^ (value >> 27)) * <uint64_t> 0x94D049BB133111EB
    return value ^ (value >> 31)


cdef struct Sample:
    Py_ssize_t slots
    int shift  #: of a value, to its slot
    uint64_t key
    uint64_t* least
    uint8_t* marked
    uint64_t* table  #: of the values that were met; 0 is a free place
    Py_ssize_t places, different
    bint zero  #: whether the value 0 was met


cdef void hash_all(list tokens, object memory, uint64_t* hashes) except *:
    cdef Py_ssize_t at
    cdef PyObject* known
    for at in range(len(tokens)):
        token = tokens[at]
        known = PyDict_GetItem(memory, token)
        octets = <bytes> known if known != NULL else memory[token]
        memcpy(&hashes[at], <const char*> (<bytes> octets), 8)


cdef inline uint8_t flag(const uint8_t* flags, Py_ssize_t at) noexcept nogil:
    return 1 if flags == NULL else flags[at]


cdef void take(Sample* sample, const uint64_t* hashes, const uint8_t* outside, Py_ssize_t count, Py_ssize_t size,
               uint8_t inside_mark) noexcept nogil:
    """Adds all shingles of some tokens; those that are not outside marked chrome as a whole have another mark."""
    cdef Py_ssize_t start, at, window = min(size, count), place, within = 0
    cdef uint64_t value
    cdef uint8_t mark
    if count == 0:
        return
    for at in range(window - 1):
        within += flag(outside, at)
    for start in range(count - window + 1):
        within += flag(outside, start + window - 1)
        mark = 3 if within == window else inside_mark
        within -= flag(outside, start)
        value = hashes[start]
        for at in range(1, window):
            value = value * <uint64_t> 0x9E3779B97F4A7C15 + hashes[start + at]
        value = mix((mix(value) if size > 1 else value) ^ sample.key)
        at = value >> sample.shift
        if value < sample.least[at]:
            sample.least[at] = value
            sample.marked[at] = mark
        elif value == sample.least[at]:
            sample.marked[at] |= mark
        if value == 0:
            sample.different += not sample.zero
            sample.zero = True
            continue
        place = value & (sample.places - 1)
        while sample.table[place] and sample.table[place] != value:
            place = (place + 1) & (sample.places - 1)
        sample.different += sample.table[place] == 0
        sample.table[place] = value


cdef uint64_t simhash(const uint64_t* hashes, const uint8_t* is_word, Py_ssize_t count) noexcept nogil:
    cdef uint64_t lanes[8]
    cdef int32_t counts[64]
    cdef Py_ssize_t at, bit, words = 0, filled = 0
    cdef uint64_t result = 0
    memset(lanes, 0, sizeof(lanes))
    memset(counts, 0, sizeof(counts))
    for at in range(count):
        if is_word[at]:
            words += 1
            filled += 1
            for bit in range(8):
                lanes[bit] += SPREAD[(hashes[at] >> (8 * bit)) & 255]
        if filled == 255 or at == count - 1:
            for bit in range(64):
                counts[bit] += (lanes[bit >> 3] >> (8 * (bit & 7))) & 255
            memset(lanes, 0, sizeof(lanes))
            filled = 0
    for bit in range(64):
        result |= <uint64_t> (2 * counts[bit] > words) << bit
    return result


#: Of each octet: its bits, each in an octet of its own.
cdef uint64_t SPREAD[256]
cdef int number
for octet in range(256):
    SPREAD[octet] = 0
    for number in range(8):
        if octet >> number & 1:
            SPREAD[octet] |= <uint64_t> 1 << (8 * number)


def numbers(list tokens, list data, tuple chrome, object memory, bint keep_urls, Py_ssize_t size, Py_ssize_t least_words,
            Py_ssize_t slots, uint64_t key):
    """The numbers of a page, as `dedup.fingerprint.numbers` makes them in numpy.

    ``memory`` gives the hash of a token in eight bytes.  Words, words outside marked chrome, simhash, the least value of
    each slot and its mark as bytes, and how many shingles differ.
    """
    cdef Py_ssize_t count = len(tokens), more = len(data), start, end, at, words = 0, left = 0
    cdef bytearray least = bytearray(b"\xff") * (8 * slots)
    cdef bytearray marked = bytearray(slots)
    cdef Sample sample
    sample.slots, sample.key, sample.different, sample.zero = slots, key, 0, False
    sample.least = <uint64_t*> (<char*> least)
    sample.marked = <uint8_t*> (<char*> marked)
    sample.shift = 64
    while slots > 1:
        slots >>= 1
        sample.shift -= 1
    sample.places = 64
    while sample.places < 2 * (count + more):
        sample.places *= 2
    sample.table = <uint64_t*> PyMem_Calloc(sample.places, 8)
    cdef uint64_t* hashes = <uint64_t*> PyMem_Malloc(8 * max(1, count, more))
    cdef uint8_t* outside = <uint8_t*> PyMem_Malloc(max(1, count))
    cdef uint8_t* is_word = <uint8_t*> PyMem_Malloc(max(1, count))
    try:
        if sample.table == NULL or hashes == NULL or outside == NULL or is_word == NULL:
            raise MemoryError
        hash_all(tokens, memory, hashes)
        memset(outside, 1, count)
        for start, end in chrome:
            memset(outside + start, 0, end - start)
        for at in range(count):
            token = <str> tokens[at]
            is_word[at] = not keep_urls or not token or <Py_UCS4> (<str> token)[0] != c"/"
            words += is_word[at]
            left += is_word[at] and outside[at]
        simhashed = simhash(hashes, is_word, count)
        take(&sample, hashes, outside, count, size, 2 if left < least_words else 0)
        if more:
            hash_all(data, memory, hashes)
            take(&sample, hashes, NULL, more, size, 3)
        return words, left, simhashed, bytes(least), bytes(marked), sample.different
    finally:
        PyMem_Free(sample.table)
        PyMem_Free(hashes)
        PyMem_Free(outside)
        PyMem_Free(is_word)
