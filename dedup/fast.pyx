# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""What Shingleback does with every page, compiled: tree -> tokens -> the numbers of a fingerprint.

`dedup.page.walk` and `dedup.fingerprint.numbers` do the same in Python and numpy where this is not installed, and
tests/test_fast.py shows that it is the same.  The walk reads lxml's tree in place through lxml's public C interface.  What
is rare is left to Python: words that are not ASCII, and URLs that are not plain.  Every loop goes along the nodes of
the tree or the octets of a text, without recursion, so that no page can exhaust the stack.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_GetItem
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.ref cimport PyObject
from cpython.unicode cimport PyUnicode_DecodeASCII, PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, qsort, realloc
from libc.string cimport memchr, memcmp, memcpy, memset, strcmp, strlen, strncmp, strstr
from lxml.includes cimport etreepublic as cetree
from lxml.includes.etreepublic cimport _Element, import_lxml__etree
from lxml.includes.tree cimport const_xmlChar, xmlAttr, xmlNode

import_lxml__etree()

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

    int Py_UNICODE_ISALNUM(uint32_t code)
    int Py_UNICODE_ISDECIMAL(uint32_t code)
    int Py_UNICODE_ISSPACE(uint32_t code)
    bint PyUnicode_IS_ASCII(object text)
    int PyUnicode_KIND(object text)
    const void* PyUnicode_DATA(object text)
    uint32_t PyUnicode_READ(int kind, const void* data, Py_ssize_t at)
    object PyUnicode_Substring(object text, Py_ssize_t start, Py_ssize_t end)

cdef extern from "libxml/tree.h":
    int XML_ELEMENT_NODE
    int XML_TEXT_NODE
    int XML_CDATA_SECTION_NODE

#: What this module gives: it is not used by a version of the package that wants something else.
VERSION = 20

cdef enum:
    OTHER, LINK, OBJECT, META, INPUT, BASE, RELATED, CODE, IGNORED, NAME, CONTENT, MARGIN, CHROME

#: Of each octet: 0 for a separator, else what it is folded to.
cdef unsigned char FOLD[256]
#: Of each octet: whether it is no sign, but a letter, a digit or a space of ASCII, or controls a terminal.
cdef uint8_t IS_PLAIN[256]
#: Of each octet: whether it is such a space, or controls a terminal, and does not end a text.
cdef uint8_t IS_BLANK[256]
#: Of each octet of a URL: whether it may be in a plain host, path, query or fragment.
cdef unsigned char URL[256]
cdef enum:
    IN_HOST = 1, IN_PATH = 2, IN_QUERY = 4, IN_FRAGMENT = 8, TELLING = 16
cdef int octet
for octet in range(256):
    FOLD[octet] = octet if octet >= 128 or chr(octet).isalnum() or octet == 95 else 0
    if 65 <= octet <= 90:
        FOLD[octet] = octet + 32
    IS_PLAIN[octet] = octet <= 32 or octet == 127 or (octet < 128 and FOLD[octet] != 0)
    IS_BLANK[octet] = IS_PLAIN[octet] and FOLD[octet] == 0 and octet != 0
    URL[octet] = 0
    if 0x21 <= octet < 0x7F:
        is_word = chr(octet).isalnum() or octet == 95
        URL[octet] = (
            IN_HOST * (is_word or chr(octet) in ".-")
            + IN_PATH * (is_word or chr(octet) in "!$%'()*+,.~@/=:-")
            + IN_QUERY * (is_word or chr(octet) in "!$%'()*+,.~@/=:;?&-")
            + IN_FRAGMENT
            + TELLING * (chr(octet).lower() in "acfgjmopsuz")  # with which the name of a session's parameter may begin
        )

#: Characters of a URL that is kept, at most, and of the tokens of one that is resolved.
cdef enum:
    MAX_URL = 2000, MAX_TOKEN = 4 * MAX_URL


#: What elements mean to the walk, by their names; `learn_names` adds those that dedup.page.flat knows by sets.
cdef dict KINDS = {
    "a": LINK, "area": LINK, "base": BASE, "button": INPUT, "input": INPUT, "link": RELATED, "meta": META, "object": OBJECT,
}
#: Elements that neither begin nor end a block.
cdef set NO_BLOCKS = {"base"}

#: The marks of the attributes that count, by their names, as dedup.page.flat has them, and "r" for a role.
cdef dict MARKS = {}
cdef uint8_t IS_SIGN[256]  #: whether an octet is a sign that counts in names


cdef int learn_names(object rules) except -1:
    """From here on, these elements, attributes and signs count."""
    for kind, names in (
        (CODE, rules.CODE), (IGNORED, [rules.IGNORED]), (NAME, [rules.TITLE, rules.HEADING]),
        (CONTENT, rules.CONTENT), (MARGIN, rules.MARGINS), (CHROME, rules.CHROME),
    ):
        KINDS.update(dict.fromkeys(names, kind))
    NO_BLOCKS.update(rules.INLINE, rules.CODE, [rules.IGNORED])
    for each in rules.SIGNS:
        IS_SIGN[ord(each)] = True
    MARKS.update((name, ord(mark)) for name, mark in {**rules.ATTRIBUTES, "role": "r"}.items())
    return 0


#: A bit for each character below U+10000: whether it only separates words.
cdef uint8_t SEPARATES[8192]


cdef inline int separator(const unsigned char* text) noexcept:
    """How many octets a separator has that begins here and is not ASCII; 0 if this is none, or a rare one."""
    cdef unsigned int code
    if (text[0] & 0xE0) == 0xC0 and text[1]:
        code = (text[0] & 0x1F) << 6 | (text[1] & 0x3F)
        return 2 if SEPARATES[code >> 3] >> (code & 7) & 1 else 0
    if (text[0] & 0xF0) == 0xE0 and text[1] and text[2]:
        code = (text[0] & 0x0F) << 12 | (text[1] & 0x3F) << 6 | (text[2] & 0x3F)
        return 3 if SEPARATES[code >> 3] >> (code & 7) & 1 else 0
    return 0


cdef bint separators_known = False


cdef int learn_separators(object rules) except -1:
    """From here on, these characters only separate words; it takes some milliseconds to find them."""
    global separators_known
    cdef unsigned int code
    separators_known = True
    for each in rules.separators():
        code = ord(each)
        if 0x80 <= code < 0x10000:
            SEPARATES[code >> 3] |= 1 << (code & 7)
    return 0


cdef inline object attribute(xmlNode* node, const char* name):
    """The value of an attribute; None if the element has none of that name."""
    if node.properties == NULL:
        return None
    return cetree.attributeValueFromNsName(node, NULL, <const_xmlChar*> name)


cdef const unsigned char* sole_text(xmlAttr* attribute) noexcept:
    """The value of an attribute that is one text, as it is if anything; NULL if it is empty, or more than that."""
    cdef xmlNode* text = attribute.children
    if text != NULL and text.next == NULL and text.type == XML_TEXT_NODE:
        return <const unsigned char*> text.content
    return NULL


cdef bint is_told(xmlNode* node) except -1:
    """Whether the content of an element META counts: that of a description, whatever its case, or of none that has a name."""
    name = attribute(node, "name")
    if name is None:
        return attribute(node, "http-equiv") is None
    return name.lower() == "description"


@cython.final
cdef class Octets:
    """A run of octets that grows."""

    cdef unsigned char* data
    cdef Py_ssize_t size, room

    def __dealloc__(self):
        PyMem_Free(self.data)

    cdef unsigned char* ask(self, Py_ssize_t more) except NULL:
        """Where so many octets more have room."""
        cdef Py_ssize_t room
        cdef void* data
        if self.size + more > self.room:
            room = max(4096, 2 * self.room, self.size + more)
            data = PyMem_Realloc(self.data, room)
            if data == NULL:
                raise MemoryError
            self.data, self.room = <unsigned char*> data, room
        return self.data + self.size

    cdef int add(self, const void* octets, Py_ssize_t count) except -1:
        memcpy(self.ask(count), octets, count)
        self.size += count
        return 0

    cdef int add_token(self, str token) except -1:
        """Adds a token and the NUL after it."""
        cdef Py_ssize_t size
        cdef const char* octets = PyUnicode_AsUTF8AndSize(token, &size)
        return self.add(octets, size + 1)


#: Nodes that are visited before another thread may have its turn.
cdef enum:
    TURN = 4096

cdef enum:
    STRANGE, ODD, PART

cdef struct Event:
    Py_ssize_t at, tokens, words  #: so many octets, tokens and words among them were met before it
    int kind
    Py_ssize_t number  #: of the strange word, of the odd URL, or of the part

cdef struct Break:
    Py_ssize_t events, tokens, signs  #: so many were met before it; of signs, octets
    int64_t depth  #: how many blocks are open, the one that begins or ends here included

cdef struct Edge:  #: a break as it is given, or several at one place
    int64_t at, depth, signs  #: so many tokens and octets of signs are before it

cdef enum:
    MAX_KNOWN = 64  #: names of elements that are remembered, and of attributes: a power of two

cdef struct Name:
    const char* name  #: where a tree has it, once for all elements of the name, or all attributes
    int kind
    bint is_block

cdef struct Mark:
    const char* name
    char mark


cdef inline size_t place_of(const char* name) noexcept:
    """Where a name is remembered that is at this address."""
    return (<size_t> name ^ <size_t> name >> 6) & (MAX_KNOWN - 1)


@cython.final
cdef class Walk:
    """What was met of a page: its tokens, but for those that are yet to be made, and what else is noted."""

    cdef Octets text, events, titles, signs, breaks
    cdef Py_ssize_t tokens, words, depth
    cdef Name known[MAX_KNOWN]
    cdef Mark marks[MAX_KNOWN]
    cdef list strange, odd, data, related
    cdef set links
    cdef dict bare, remembered
    cdef bint keep_urls
    cdef str base, below
    cdef object rules
    cdef bytes own_host, own_path
    cdef unsigned char url[MAX_TOKEN]

    def __cinit__(self, str base, bint keep_urls, object rules):
        self.text, self.events, self.titles, self.signs, self.breaks = (Octets() for _ in range(5))
        self.strange, self.odd, self.data, self.related = [], [], [], []
        self.links, self.bare = set(), {}
        self.keep_urls, self.rules = keep_urls, rules
        self.remembered = rules.remembered
        self.rebase(base)

    cdef int rebase(self, str base) except -1:
        """From here on, links are resolved against this."""
        self.base, self.below = base, self.rules.folder(base)
        self.own_host, self.own_path = self.rules.plain_folder(self.below)
        return 0

    cdef int note(self, int kind, Py_ssize_t number) except -1:
        cdef Event event
        event.at, event.tokens, event.words = self.text.size, self.tokens, self.words
        event.kind, event.number = kind, number
        return self.events.add(&event, sizeof(Event))

    cdef int note_break(self) except -1:
        cdef Break met
        met.events, met.tokens, met.signs = self.events.size // <Py_ssize_t> sizeof(Event), self.tokens, self.signs.size
        met.depth = self.depth
        return self.breaks.add(&met, sizeof(Break))

    cdef inline Name* kind_at(self, const char* name) except NULL:
        """What is known of elements of a name."""
        cdef Name* known = &self.known[place_of(name)]
        if known.name != name:
            self.learn_kind(known, name)
        return known

    cdef int learn_kind(self, Name* known, const char* name) except -1:
        cdef str spelled = cetree.pyunicode(<const_xmlChar*> name)
        known.kind, known.is_block = KINDS.get(spelled, OTHER), spelled not in NO_BLOCKS
        known.name = name
        return 0

    cdef inline char mark_at(self, const char* name) except? -1:
        """The mark of an attribute; 0 if it doesn't count."""
        cdef Mark* known = &self.marks[place_of(name)]
        if known.name != name:
            self.learn_mark(known, name)
        return known.mark

    cdef int learn_mark(self, Mark* known, const char* name) except -1:
        cdef char otherwise = c"d" if strncmp(name, "data-", 5) == 0 else 0
        known.mark = MARKS.get(cetree.pyunicode(<const_xmlChar*> name), otherwise)
        known.name = name
        return 0

    cdef inline bint is_chrome(self, xmlNode* node) except -1:
        """Whether an element has the role of chrome."""
        cdef xmlAttr* each = node.properties
        while each != NULL:
            if self.mark_at(<const char*> each.name) == c"r" and each.ns == NULL:
                return attribute(node, "role").strip().lower() in self.rules.CHROME_ROLES
            each = each.next
        return False

    cdef int add_words(self, const unsigned char* text, bint is_name) except -1:
        """Splits a text into words; in a name, signs are words, too.  Notes what of it is no letter or digit of ASCII, and no space."""
        cdef const unsigned char* end
        cdef Py_ssize_t times = 2 if is_name else 1  # a sign has a NUL of its own
        cdef unsigned char* to
        cdef unsigned char* signs
        cdef unsigned char* start
        cdef unsigned char folded
        cdef bint is_foreign
        cdef int size
        while IS_BLANK[text[0]]:
            text += 1
        if text[0] == 0:  # as between most tags
            return 0
        end = text + strlen(<const char*> text)
        # A word takes its own place, and its NUL that of the separator behind it, or at the end of the text.
        to, signs = self.text.ask(times * (end - text) + 1), self.signs.ask(end - text + 1)
        while True:
            while True:  # up to the next word
                while IS_BLANK[text[0]]:
                    text += 1
                folded = FOLD[text[0]]
                if folded == 0:
                    if text == end or (is_name and IS_SIGN[text[0]]):
                        break
                    signs[0] = text[0]
                    signs += not IS_PLAIN[text[0]]
                    text += 1
                else:
                    size = separator(text) if folded >= 128 else 0
                    if size == 0:
                        break
                    memcpy(signs, text, size)
                    signs += size
                    text += size
            if text == end:
                self.text.size, self.signs.size = to - self.text.data, signs - self.signs.data
                return 0
            start, is_foreign = to, False
            if folded == 0:
                while IS_SIGN[text[0]]:
                    to[0] = signs[0] = text[0]
                    to += 1
                    signs += 1
                    text += 1
            while folded:
                while <unsigned char> (folded - 1) < 127:
                    to[0] = folded
                    to += 1
                    text += 1
                    folded = FOLD[text[0]]
                if folded == 0 or separator(text):
                    break
                is_foreign = True
                to[0] = signs[0] = folded
                to += 1
                signs += 1
                text += 1
                folded = FOLD[text[0]]
            if not is_foreign:
                to[0] = 0
                to += 1
                self.tokens += 1
                self.words += 1
            else:
                self.text.size = start - self.text.data
                self.add_strange(PyUnicode_DecodeUTF8(<const char*> start, to - start, "replace"))
                to = self.text.ask(times * (end - text) + 1)

    cdef int add_strange(self, str word) except -1:
        """Adds the tokens of a word that is not ASCII, if they are remembered."""
        cdef PyObject* known
        cdef str token
        if not separators_known:
            learn_separators(self.rules)
        known = PyDict_GetItem(self.remembered, word)  # only lent, so nothing of Python runs before it is used
        if known == NULL:
            self.note(STRANGE, len(self.strange))
            self.strange.append(word)
            return 0
        for token in <tuple> known:
            self.text.add_token(token)
            self.tokens += 1
            self.words += 1
        return 0

    cdef int add_attributes(self, xmlNode* node, int kind, bint is_name) except -1:
        """Adds what is read of the attributes of an element."""
        cdef xmlAttr* each = node.properties
        cdef const unsigned char* value
        cdef char mark
        while each != NULL:
            mark = self.mark_at(<const char*> each.name) if each.ns == NULL else 0
            if mark == c"l":
                mark = 0 if kind == LINK or kind == RELATED else c"w"
                if kind == LINK:
                    self.add_title(node, each)
            if mark == c"w":
                value = sole_text(each)
                if value != NULL:
                    self.add_words(value, is_name)
                else:
                    self.add_text(cetree.attributeValue(node, each), is_name)
            elif mark == c"i" or (mark == c"o" and kind == OBJECT):
                self.add_url(node, each, False)
            elif mark == c"h":
                value = sole_text(each)
                if kind == LINK and value != NULL and strncmp(<const char*> value, "javascript:", 11) == 0:
                    self.add_title(node, each)
                elif kind == LINK and value != NULL and (
                    strncmp(<const char*> value, "mailto:", 7) == 0 or strncmp(<const char*> value, "tel:", 4) == 0
                ):
                    self.add_value_to(self.signs, node, each)
                elif kind != RELATED:
                    self.add_url(node, each, kind == LINK)
            elif mark == c"t":
                found = cetree.attributeValue(node, each).split(None, 1)
                if found:
                    self.add_odd(found[0].rstrip(","), False)
            elif mark == c"v":
                if kind == INPUT:
                    self.add_value(node, each, is_name)
                else:
                    self.add_value_to(self.signs, node, each)
            elif mark == c"e":
                self.add_value_to(self.signs, node, each)
            elif mark == c"d" or (mark == c"c" and (kind != META or is_told(node))):
                self.data.append(("@" + cetree.pyunicode(each.name), cetree.attributeValue(node, each)))
            elif mark == c"u":
                self.add_title(node, each)
            elif mark == c"y":
                value = sole_text(each)
                if value == NULL or strstr(<const char*> value, "url(") != NULL:
                    found = cetree.attributeValue(node, each)
                    if "url(" in found:
                        self.data.append(("@style", found))
                    else:
                        self.titles.add_token(found)
                else:
                    self.add_title(node, each)
            each = each.next
        return 0

    cdef int add_title(self, xmlNode* node, xmlAttr* each) except -1:
        """Adds the title of a link, its program, or what is no words, and a NUL."""
        return self.add_value_to(self.titles, node, each)

    cdef int add_value_to(self, Octets to, xmlNode* node, xmlAttr* each) except -1:
        cdef const unsigned char* value = sole_text(each)
        if value != NULL:
            return to.add(value, strlen(<const char*> value) + 1)
        return to.add_token(cetree.attributeValue(node, each))

    cdef int add_text(self, str text, bint is_name) except -1:
        cdef Py_ssize_t size
        cdef const char* octets = PyUnicode_AsUTF8AndSize(text, &size)
        return self.add_words(<const unsigned char*> octets, is_name)

    cdef int add_value(self, xmlNode* node, xmlAttr* each, bint is_name) except -1:
        """Adds the value of an input, as a text if it is shown."""
        kind, name = (attribute(node, "type") or ""), (attribute(node, "name") or "")
        value = cetree.attributeValue(node, each)
        key = self.rules.datum_name(cetree.pyunicode(node.name), kind.replace("\n", " "), name.replace("\n", " "))
        if key is None:
            return self.add_text(value, is_name)
        self.data.append((key, value))
        return 0

    cdef int add_url(self, xmlNode* node, xmlAttr* each, bint is_link) except -1:
        cdef const unsigned char* value = sole_text(each)
        cdef Py_ssize_t size, at
        cdef unsigned char* to
        if value != NULL:
            size = self.resolve(value)
            if size == 0:
                return 0
            if size > 0:
                if is_link:
                    self.links.add(PyUnicode_DecodeASCII(<const char*> self.url, size, NULL))
                if self.keep_urls:
                    to = self.text.ask(size + 1)
                    for at in range(size):
                        to[at] = self.url[at] + 32 if 65 <= self.url[at] <= 90 else self.url[at]
                    to[size] = 0
                    self.text.size += size + 1
                    self.tokens += 1
                return 0
        return self.add_odd(cetree.attributeValue(node, each), is_link)

    cdef int add_odd(self, value, bint is_link) except -1:
        """The same, by Python."""
        if is_link:
            found = self.rules.url_tokens(value, self.base, self.below)
        elif value.startswith("data:"):
            self.data.append(("@data:", value))
            return 0
        else:
            found = self.rules.source_tokens(value, self.base, self.below)
        if found is None:
            return 0
        token, stripped = found
        if is_link:
            self.links.add(token)
        if self.keep_urls:
            if stripped != token:
                self.bare.setdefault(stripped, set()).add(token)
                self.note(ODD, len(self.odd))
                self.odd.append((token, stripped))
            else:
                self.text.add_token((<str> token).lower())
                self.tokens += 1
        return 0

    cdef Py_ssize_t resolve(self, const unsigned char* value) noexcept:
        """How long the token of a URL is, which is put into ``self.url``; 0: it has none; -1: Python has to say.

        The rules are those of dedup.page.urls, as far as they say anything of a plain URL.
        """
        cdef const unsigned char* at = value
        cdef const unsigned char* host = NULL
        cdef const unsigned char* path
        cdef const unsigned char* own = <const unsigned char*> PyBytes_AS_STRING(self.own_path)
        cdef unsigned char* to = self.url
        cdef Py_ssize_t host_size = 0, path_size, own_size = len(self.own_path), shared, last, whole
        if at[0] == c"#":
            return 0
        if own_size == 0:
            return -1
        if strncmp(<const char*> at, "http://", 7) == 0 or strncmp(<const char*> at, "https://", 8) == 0:
            host = at + (7 if at[4] == c":" else 8)
            at = host
            while URL[at[0]] & IN_HOST:
                at += 1
            if at == host:
                return -1
            if at[0] == c":":
                at += 1
                if not 48 <= at[0] <= 57:
                    return -1
                while 48 <= at[0] <= 57:
                    at += 1
            if at[0] != c"/":
                return -1
            host_size = at - host
        elif at[0] != c"/":
            while at[0] == c"." and at[1] == c"." and at[2] == c"/":
                at += 3
                if own_size > 1:
                    own_size -= 1
                    while own[own_size - 1] != c"/":
                        own_size -= 1
            if at[0] == c"/":
                return -1
        path = at
        if at[0] == c"." or at[0] == c"?" or at[0] == 0:
            return -1
        while URL[at[0]] & IN_PATH:
            if at[0] == c"/" and (at[1] == c"/" or at[1] == c"."):
                return -1
            if at[0] == c":" and path[0] != c"/":
                return -1
            at += 1
        path_size = at - path
        if path_size == 0:
            return -1
        if at[0] == c"?":
            while URL[at[0]] & IN_QUERY:
                if at[0] in b"?&;" and URL[at[1]] & TELLING:
                    return -1
                at += 1
            if (at - 1)[0] in b"?&":
                return -1
        whole = at - path
        if at[0] == c"#":
            while URL[at[0]] & IN_FRAGMENT:
                at += 1
        if at[0] != 0:
            return -1
        if at - value > MAX_URL:
            return 0
        if host != NULL and not self.is_own(host, host_size):
            to[0] = to[1] = c"/"
            to += 2
            for last in range(host_size):
                to[last] = host[last] + 32 if 65 <= host[last] <= 90 else host[last]
            to += host_size
        elif path[0] == c"/":  # what it shares with the page's own folder is left out
            last = shared = 0
            while shared < path_size and shared < own_size and path[shared] == own[shared]:
                if path[shared] == c"/":
                    last = shared
                shared += 1
            path += last
            whole -= last
        elif own_size == len(self.own_path):
            to[0] = c"/"
            to += 1
        else:
            # Below another folder than the page's own: it may go back into that, so that both are compared.
            last = shared = own_size - 1
            while shared < own_size + path_size and shared < len(self.own_path) and (
                path[shared - own_size] if shared >= own_size else own[shared]
            ) == own[shared]:
                if own[shared] == c"/":
                    last = shared
                shared += 1
            if last == own_size - 1:
                to[0] = c"/"
                to += 1
            else:
                path += last - own_size
                whole -= last - own_size
        memcpy(to, path, whole)
        to += whole
        return -1 if may_be_opaque(self.url, to) else to - self.url

    cdef bint is_own(self, const unsigned char* host, Py_ssize_t size) noexcept:
        cdef const unsigned char* own = <const unsigned char*> PyBytes_AS_STRING(self.own_host)
        cdef Py_ssize_t at
        if size != len(self.own_host):
            return False
        for at in range(size):
            if (host[at] + 32 if 65 <= host[at] <= 90 else host[at]) != own[at]:
                return False
        return True

    cdef int visit(self, _Element root) except -1:
        """Goes through a tree in document order."""
        cdef str url = self.base
        cdef xmlNode* top = root._c_node
        cdef xmlNode* node = top
        cdef xmlNode* dropping = NULL
        cdef xmlNode* chrome = NULL
        cdef xmlNode* content = NULL
        cdef xmlNode* named = NULL
        cdef bint no_title = True, no_heading = True, opened, is_name, is_block, has_chrome_role
        cdef int kind
        cdef Name* known
        cdef list inner = []  # the parts of lines that are blocks because of their roles, and open
        cdef Py_ssize_t visited = 0
        while True:
            visited += 1
            if visited % TURN == 0:
                with nogil:  # for other threads that wait
                    pass
            if node.type == XML_ELEMENT_NODE:
                kind, is_block = OTHER, True
                if node.ns == NULL:
                    known = self.kind_at(<const char*> node.name)
                    kind, is_block = known.kind, known.is_block
                if kind == RELATED:
                    rel, href = attribute(node, "rel"), attribute(node, "href")
                    if rel is not None and href is not None:
                        self.related.append((rel, href))
                if dropping != NULL:
                    pass
                elif kind == CODE or kind == IGNORED:
                    dropping = node
                    if kind == CODE:
                        type_of = "style" if node.name[1] == c"t" else (attribute(node, "type") or "").replace("\n", " ")
                        self.data.append((type_of, cetree.textOf(node) or ""))
                else:
                    opened = False
                    has_chrome_role = (not is_block or chrome == NULL) and self.is_chrome(node)
                    if is_block or has_chrome_role:
                        if not is_block:
                            inner.append(<size_t> node)
                        self.depth += 1
                        self.note_break()
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
                        kind == CHROME or (kind == MARGIN and content == NULL) or has_chrome_role
                    ):
                        chrome = node
                        opened = True
                    if opened:
                        self.note(PART, NAME if named != NULL else CHROME)
                    if kind == BASE:
                        value = attribute(node, "href") if self.base == url else None
                        if value:
                            self.rebase(self.rules.base_of(url, value))
                    elif node.properties != NULL:
                        self.add_attributes(node, kind, named != NULL)
                if node.children != NULL:
                    node = node.children
                    continue
            elif dropping == NULL and (node.type == XML_TEXT_NODE or node.type == XML_CDATA_SECTION_NODE):
                if node.content != NULL:
                    self.add_words(<const unsigned char*> node.content, named != NULL)
            while True:  # the node, and all that is in it, has been visited
                if node.type == XML_ELEMENT_NODE and dropping == NULL:
                    is_block = node.ns != NULL or self.kind_at(<const char*> node.name).is_block
                    if not is_block and inner and <size_t> inner[len(inner) - 1] == <size_t> node:
                        is_block = True
                        inner.pop()
                    if is_block:
                        self.note_break()
                        self.depth -= 1
                if node == dropping:
                    dropping = NULL
                if node == content:
                    content = NULL
                if node == named or node == chrome:
                    if node == named:
                        named = NULL
                    else:
                        chrome = NULL
                    self.note(PART, NAME if named != NULL else CHROME if chrome != NULL else OTHER)
                if node == top:
                    return 0
                if node.next != NULL:
                    node = node.next
                    break
                node = node.parent

    cdef tuple settle(self):
        """The tokens, joined by NULs, and how many they are; the runs of chrome among them; the heading's words;
        how many words are outside chrome; and the breaks among the tokens, an `Edge` each."""
        cdef Octets out = Octets(), edges = Octets()
        cdef Break* next_break = <Break*> self.breaks.data
        cdef Break* last_break = next_break + self.breaks.size // <Py_ssize_t> sizeof(Break)
        cdef Event* events = <Event*> self.events.data
        cdef Event event, before
        cdef Py_ssize_t number, count = 0, left = 0, start = 0, part = OTHER, chrome_start = 0, chrome_end = 0
        cdef list chrome = [], heading = []
        cdef str word
        self.note(PART, OTHER)
        folded = self.rules.fold_each(self.strange)
        memset(&before, 0, sizeof(Event))
        events = <Event*> self.events.data
        out.ask(self.text.size + 1)
        for number in range(self.events.size // <Py_ssize_t> sizeof(Event)):
            event = events[number]
            while next_break < last_break and next_break.events <= number:
                add_edge(edges, count + next_break.tokens - before.tokens, next_break)
                next_break += 1
            if event.at > before.at:
                if part == NAME:
                    add_heading(heading, self.text.data + before.at, self.text.data + event.at)
                out.add(self.text.data + before.at, event.at - before.at)
                count += event.tokens - before.tokens
                if part != CHROME:
                    left += event.words - before.words
            if event.kind == STRANGE:
                if event.number >= len(folded):  # there are too many tokens
                    break
                for word in folded[event.number]:
                    out.add_token(word)
                    count += 1
                    left += part != CHROME
                    if part == NAME:
                        heading.append(word)
            elif event.kind == ODD:
                token, stripped = self.odd[event.number]
                word = stripped if len(self.bare[stripped]) == 1 else token
                out.add_token(word.lower())
                count += 1
            else:
                if part == CHROME and count > start:
                    if start != chrome_end:
                        chrome_start = start
                    elif chrome:
                        chrome.pop()
                    chrome_end = count
                    chrome.append((chrome_start, chrome_end))
                part, start = event.number, count
            before = event
        octets = PyBytes_FromStringAndSize(<char*> out.data, max(0, out.size - 1))
        return octets, count, tuple(chrome), tuple(heading), left, bytes_of(edges)


cdef int add_edge(Octets edges, Py_ssize_t at, const Break* met) except -1:
    """Adds a break before a token; where there is one already, the outermost counts."""
    cdef Edge* last = <Edge*> (edges.data + edges.size) - 1
    cdef Edge edge
    if edges.size and last.at == at:
        last.depth, last.signs = min(last.depth, met.depth), met.signs
        return 0
    edge.at, edge.depth, edge.signs = at, met.depth, met.signs
    return edges.add(&edge, sizeof(Edge))


cdef bytes bytes_of(Octets octets):
    return PyBytes_FromStringAndSize(<char*> octets.data, octets.size)


cdef bint may_be_opaque(const unsigned char* at, const unsigned char* end) noexcept:
    """Whether a part of a URL token may look like an id to dedup.page.urls: all that do, and some others."""
    cdef Py_ssize_t digits = 0, run = 0, size = 0, hyphens = 0
    cdef bint upper = False, lower = False, digit = False, in_run = False, is_id = False, is_other = False
    while True:
        if at == end or at[0] in b"/?&=;":
            if not is_other and (is_id or (size >= 20 and upper and lower and digit) or (size >= 36 and hyphens >= 4)):
                return True
            if at == end:
                return False
            digits = run = size = hyphens = 0
            upper = lower = digit = in_run = is_id = is_other = False
        else:
            size += 1
            if 48 <= at[0] <= 57:
                digit = in_run = True
                digits += 1
                run += 1
            elif 65 <= at[0] <= 90 or 97 <= at[0] <= 122:
                if at[0] <= 90:
                    upper = True
                else:
                    lower = True
                digits = 0
                run += 1
            else:
                hyphens += at[0] == c"-"
                is_other |= at[0] not in b"_+-()%"
                digits = run = 0
                in_run = False
            is_id |= digits >= 10 or (run >= 16 and in_run)
        at += 1


cdef int add_heading(list heading, const unsigned char* at, const unsigned char* end) except -1:
    """The words among some tokens."""
    cdef Py_ssize_t size
    while at < end:
        size = strlen(<const char*> at)
        if at[0] != c"/":
            heading.append(PyUnicode_DecodeUTF8(<const char*> at, size, NULL))
        at += size + 1
    return 0


def walk(_Element root, str base, bint keep_urls, object rules):
    """The tokens of a page, and what else `dedup.page.walk` notes; ``rules`` are the functions of its own that it lends.

    Returns the tokens as octets, joined by NULs, and their number; the runs of chrome among them; the words of the
    heading; how many words are outside marked chrome; how many links differ; the pieces of data, the relations (rel and
    href of each link element), the base and the signs.  And where blocks begin and end: for each such place, as three
    numbers of 8 bytes, how many tokens are before it, how deep it is, and how many octets of signs are before it.
    """
    if not MARKS:
        learn_names(rules)
    cdef Walk met = Walk(base, keep_urls, rules)
    met.visit(root)
    if met.titles.size:
        met.data.append(("@links", PyUnicode_DecodeUTF8(<const char*> met.titles.data, met.titles.size, "replace")))
    octets, count, chrome, heading, left, edges = met.settle()
    return octets, count, chrome, heading, left, len(met.links), met.data, met.related, met.base, bytes_of(met.signs), edges


def without(bytes octets, tuple ranges):
    """What is left of tokens, joined by NULs, without some ranges of them."""
    cdef const char* at = PyBytes_AS_STRING(octets)
    cdef const char* end = at + len(octets) + 1  # bytes end with a NUL
    cdef const char* start
    cdef Octets out = Octets()
    cdef Py_ssize_t number = 0, first, last
    out.ask(len(octets) + 1)
    for first, last in ranges:
        start = at
        while number < first:
            at += strlen(at) + 1
            number += 1
        out.add(start, at - start)
        while number < last:
            at += strlen(at) + 1
            number += 1
    out.add(at, end - at)
    return PyBytes_FromStringAndSize(<char*> out.data, max(0, out.size - 1))


include "tokenizer.pxi"
include "lines.pxi"


def without_comments(bytes markup):
    """What `dedup.page.tokenizer.without_comments` gives."""
    cdef const unsigned char* left = <const unsigned char*> PyBytes_AS_STRING(markup)  # what is not copied yet
    cdef Octets out = Octets()
    cdef Markup page
    cdef int read = 1
    out.ask(len(markup) + 1)
    begin(&page, markup, DATA, b"")
    page.sections = True
    with nogil:
        while read > 0:
            read = read_event(&page)
            if read > 0 and page.kind == COMMENT and strncmp(<const char*> page.whole.at, b"<!--", 4) == 0:
                memcpy(out.data + out.size, left, page.whole.at - left)
                out.size += page.whole.at - left
                left = page.whole.end
        free(page.attributes)
    if read < 0:
        raise MemoryError
    out.add(left, page.end - left)
    return PyBytes_FromStringAndSize(<char*> out.data, out.size)


def without_letters(bytes signs, object in_python):
    """What `dedup.page.words.without_letters` gives; what is no UTF-8 is left to it in Python."""
    cdef const unsigned char* text = <const unsigned char*> PyBytes_AS_STRING(signs)
    cdef const unsigned char* end = text + len(signs)
    cdef Octets out = Octets()
    cdef unsigned char* to = out.ask(len(signs) + 1)
    cdef uint32_t code
    cdef int size, at
    while text < end:
        size, code = 1, text[0]
        if code >= 0xF0:
            size, code = 4, code & 7
        elif code >= 0xE0:
            size, code = 3, code & 15
        elif code >= 0xC0:
            size, code = 2, code & 31
        elif code >= 0x80:
            return in_python(signs)
        for at in range(1, size):
            if (text[at] & 0xC0) != 0x80:  # there is a NUL behind the last
                return in_python(signs)
            code = code << 6 | (text[at] & 63)
        if size > 1 and (code < LEAST[size] or code > 0x10FFFF or 0xD800 <= code < 0xE000):
            return in_python(signs)
        if size == 1 or not (code == 0xA0 or Py_UNICODE_ISALNUM(code)):
            memcpy(to, text, size)
            to += size
        text += size
    return PyBytes_FromStringAndSize(<char*> out.data, to - out.data)


cdef uint32_t LEAST[5]  #: The least character that is written with so many octets.
LEAST[:] = [0, 0, 0x80, 0x800, 0x10000]


def breaks(bytes edges, bytes signs, object without_letters):
    """Where blocks begin and end, as `dedup.page.walk` finds them, by the edges and the signs that `walk` gives."""
    cdef const Edge* edge = <const Edge*> PyBytes_AS_STRING(edges)
    cdef const unsigned char* all_signs = <const unsigned char*> PyBytes_AS_STRING(signs)
    cdef Py_ssize_t number, at, before = 0
    cdef bint is_foreign
    cdef list found = []
    for number in range(len(edges) // <Py_ssize_t> sizeof(Edge)):
        its = b""
        if edge[number].signs > before:
            is_foreign = False
            for at in range(before, edge[number].signs):
                is_foreign |= all_signs[at] >= 128
            its = PyBytes_FromStringAndSize(<const char*> all_signs + before, edge[number].signs - before)
            if is_foreign:
                its = without_letters(its)
            before = edge[number].signs
        found.append((edge[number].at, edge[number].depth, its))
    return found


# --- A text, before it is parsed ----------------------------------------------------------------------

cdef enum:
    BLOCK = 240  #: characters that are counted at a time, of which no octet can have more

ctypedef fused character:
    uint8_t
    uint16_t
    uint32_t


cdef tuple count_all(const character* text, Py_ssize_t size, Py_ssize_t head):
    cdef Py_ssize_t at, first = 0, end, tags = 0, nuls = 0, controls = 0, lost = 0
    cdef character some, ends, others  # so few that the vectors of a processor count many characters at a time
    while first < size:
        some = ends = others = 0
        end = min(size, first + BLOCK)
        for at in range(first, end):
            some += text[at] == c"<"
            ends += text[at] == 0
            if character is not uint8_t:
                others += text[at] == 0xFFFD
        tags, nuls, lost, first = tags + some, nuls + ends, lost + others, end
    for first in range(0, min(head, size), BLOCK):
        some = 0
        for at in range(first, min(head, size, first + BLOCK)):
            some += (text[at] < 32) & ((text[at] < 9) | (text[at] > 13)) & (text[at] != 27)
        controls += some
    return tags, nuls, controls, lost


def survey(str text, Py_ssize_t head):
    """Of a text: its less-than signs, its NULs, the control characters in its head, and its U+FFFD."""
    cdef int kind = PyUnicode_KIND(text)
    cdef const void* data = PyUnicode_DATA(text)
    if kind == 1:
        return count_all(<const uint8_t*> data, len(text), head)
    if kind == 2:
        return count_all(<const uint16_t*> data, len(text), head)
    return count_all(<const uint32_t*> data, len(text), head)


# --- Tokens -> numbers --------------------------------------------------------------------------------

cdef extern from *:
    """
    #if defined(_MSC_VER)
    #include <intrin.h>
    static uint64_t fold_product(uint64_t a, uint64_t b) {
        uint64_t high, low = _umul128(a, b, &high);
        return low ^ high;
    }
    #else
    static uint64_t fold_product(uint64_t a, uint64_t b) {
        unsigned __int128 product = (unsigned __int128) a * b;
        return (uint64_t) product ^ (uint64_t) (product >> 64);
    }
    #endif
    """
    uint64_t fold_product(uint64_t a, uint64_t b) noexcept nogil

#: The first octets of XXH3's secret.
cdef bytes _secret = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674f743248e"
    "e03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d8a"
    "51e04bcdb45931c89f7ec9d9787364"
)
cdef const uint8_t* SECRET = <const uint8_t*> PyBytes_AS_STRING(_secret)
cdef enum:
    LONGEST = 128  #: octets that are hashed here; longer ones are left to the package xxhash
cdef uint64_t PRIME_1 = 0x9E3779B185EBCA87U, PRIME_2 = 0xC2B2AE3D27D4EB4FU, PRIME_3 = 0x165667B19E3779F9U


cdef inline uint64_t read_64(const uint8_t* at) noexcept nogil:
    cdef uint64_t value
    memcpy(&value, at, 8)
    return value


cdef inline uint64_t read_32(const uint8_t* at) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, at, 4)
    return value


cdef inline uint64_t reverse(uint64_t value) noexcept nogil:
    """The octets in the other order."""
    value = (value & 0x00FF00FF00FF00FFU) << 8 | (value >> 8) & 0x00FF00FF00FF00FFU
    value = (value & 0x0000FFFF0000FFFFU) << 16 | (value >> 16) & 0x0000FFFF0000FFFFU
    return value << 32 | value >> 32


cdef inline uint64_t avalanche(uint64_t value) noexcept nogil:
    value = (value ^ value >> 37) * <uint64_t> 0x165667919E3779F9U
    return value ^ value >> 32


cdef inline uint64_t avalanche_64(uint64_t value) noexcept nogil:
    value = (value ^ value >> 33) * PRIME_2
    value = (value ^ value >> 29) * PRIME_3
    return value ^ value >> 32


cdef inline uint64_t mix_16(const uint8_t* at, const uint8_t* secret, uint64_t seed) noexcept nogil:
    return fold_product(
        read_64(at) ^ (read_64(secret) + seed), read_64(at + 8) ^ (read_64(secret + 8) - seed)
    )


cdef uint64_t xxh3(const uint8_t* at, Py_ssize_t size, uint64_t seed) noexcept nogil:
    """XXH3, 64 bits, of up to 128 octets, as its specification has it."""
    cdef uint64_t low, high, value
    cdef Py_ssize_t step
    if size > 16:
        value = <uint64_t> size * PRIME_1
        step = (size - 1) // 32
        while step >= 0:
            value += mix_16(at + 16 * step, SECRET + 32 * step, seed)
            value += mix_16(at + size - 16 * (step + 1), SECRET + 32 * step + 16, seed)
            step -= 1
        return avalanche(value)
    if size > 8:
        low = read_64(at) ^ ((read_64(SECRET + 24) ^ read_64(SECRET + 32)) + seed)
        high = read_64(at + size - 8) ^ ((read_64(SECRET + 40) ^ read_64(SECRET + 48)) - seed)
        return avalanche(<uint64_t> size + reverse(low) + high + fold_product(low, high))
    if size > 3:
        seed ^= reverse(seed & 0xFFFFFFFFU)
        value = read_32(at + size - 4) + (read_32(at) << 32)
        value ^= (read_64(SECRET + 8) ^ read_64(SECRET + 16)) - seed
        value ^= (value << 49 | value >> 15) ^ (value << 24 | value >> 40)
        value *= <uint64_t> 0x9FB21C651E98DF25U
        value ^= (value >> 35) + <uint64_t> size
        value *= <uint64_t> 0x9FB21C651E98DF25U
        return value ^ value >> 28
    if size > 0:
        value = <uint64_t> at[0] << 16 | <uint64_t> at[size >> 1] << 24 | at[size - 1] | <uint64_t> size << 8
        return avalanche_64(value ^ ((read_32(SECRET) ^ read_32(SECRET + 4)) + seed))
    return avalanche_64(seed ^ read_64(SECRET + 56) ^ read_64(SECRET + 64))


cdef inline uint64_t mix(uint64_t value) noexcept nogil:
    value = (value ^ (value >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    value = (value ^ (value >> 27)) * <uint64_t> 0x94D049BB133111EB
    return value ^ (value >> 31)


cdef struct Values:
    uint64_t key
    uint64_t* all  #: those outside marked chrome from the beginning on, the others from the end on
    Py_ssize_t shown, first  #: how many are outside; where the others begin


cdef int hash_all(bytes octets, Py_ssize_t count, uint64_t seed, object hash_long, uint64_t* hashes,
                  uint8_t* is_url) except -1:
    """The hash of each token, and whether it is a URL token."""
    cdef const uint8_t* at = <const uint8_t*> PyBytes_AS_STRING(octets)
    cdef Py_ssize_t number, size
    for number in range(count):
        size = strlen(<const char*> at)
        is_url[number] = at[0] == c"/"
        if size <= LONGEST:
            hashes[number] = xxh3(at, size, seed)
        else:
            hashes[number] = hash_long(at[:size], seed)
        at += size + 1
    return 0


cdef inline uint8_t flag(const uint8_t* flags, Py_ssize_t at) noexcept nogil:
    return 1 if flags == NULL else flags[at]


cdef void take(Values* values, const uint64_t* hashes, const uint8_t* outside, Py_ssize_t count,
               Py_ssize_t size) noexcept nogil:
    """Adds the values of all shingles of some tokens, on the side of those that are outside marked chrome as a whole or not."""
    cdef Py_ssize_t start, at, window = min(size, count), within = 0
    cdef uint64_t polynomial = 0, highest = 1, multiplier = 0x9E3779B97F4A7C15U
    if count == 0:
        return
    for at in range(window - 1):
        within += flag(outside, at)
        polynomial = polynomial * multiplier + hashes[at]
        highest *= multiplier
    for start in range(count - window + 1):
        within += flag(outside, start + window - 1)
        polynomial = polynomial * multiplier + hashes[start + window - 1]
        if within == window:
            at = values.shown
            values.shown += 1
        else:
            at = values.first = values.first - 1
        values.all[at] = mix((mix(polynomial) if size > 1 else polynomial) ^ values.key)
        within -= flag(outside, start)
        polynomial -= hashes[start] * highest


cdef int sort(uint64_t* values, Py_ssize_t count, uint64_t* room) except -1 nogil:
    """Sorts values, which are as good as random: in buckets by their highest bits, of which each has a few.  O(count), then."""
    cdef int width = 8
    cdef Py_ssize_t at, place, first = 0
    cdef uint64_t value
    while <Py_ssize_t> 1 << width < count and width < 24:
        width += 1
    cdef int shift = 64 - width
    cdef uint32_t* ends = <uint32_t*> calloc((<size_t> 1 << width) + 1, 4)
    if not ends:
        with gil:
            raise MemoryError
    for at in range(count):
        ends[(values[at] >> shift) + 1] += 1
    for at in range(1 << width):
        ends[at + 1] += ends[at]
    for at in range(count):
        place = values[at] >> shift
        room[ends[place]] = values[at]
        ends[place] += 1
    for at in range(1 << width):
        if ends[at] - first > 16:  # values that come again, or of an author who knows the key
            qsort(room + first, ends[at] - first, 8, compare_ranks)
        first = ends[at]
    free(ends)
    for at in range(count):
        value, place = room[at], at
        while place and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value
    return 0


cdef uint64_t simhash(const uint64_t* hashes, const uint8_t* is_url, Py_ssize_t count) noexcept nogil:
    cdef uint64_t lanes[8]
    cdef int32_t counts[64]
    cdef Py_ssize_t at, bit, words = 0, filled = 0
    cdef uint64_t result = 0
    memset(lanes, 0, sizeof(lanes))
    memset(counts, 0, sizeof(counts))
    for at in range(count):
        if not is_url[at]:
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


def numbers(bytes octets, Py_ssize_t count, bytes data, Py_ssize_t more, tuple chrome, bint keep_urls, Py_ssize_t size,
            uint64_t key, int slots, int bits, Py_ssize_t least_words, uint64_t seed, object hash_long):
    """The numbers of a page, as `dedup.fingerprint.numbers` makes them in numpy.

    Tokens and data are given joined by NULs; ``hash_long(octets, seed)`` hashes those that are too long for this.
    Words, words outside marked chrome, simhash; the sketch of all shingles; and the values (8 bytes each) of those of the
    main view, ascending.
    """
    cdef Py_ssize_t start, end, at, after, most = count + more, words = 0, left = 0, different = 0, main = 0
    cdef uint64_t* hashes = NULL
    cdef uint64_t* every = NULL
    cdef uint8_t* outside = NULL
    cdef uint8_t* is_url = NULL
    cdef uint64_t simhashed, value
    cdef bytes main_view, sketch = PyBytes_FromStringAndSize(NULL, slots * bits // 8 + 8)
    cdef uint64_t* sketched = <uint64_t*> PyBytes_AS_STRING(sketch)
    cdef Values values
    values.key, values.shown, values.first = key, 0, most
    values.all = NULL
    try:
        values.all = <uint64_t*> PyMem_Malloc(8 * (most + 1))
        every = <uint64_t*> PyMem_Malloc(8 * (most + 1))
        hashes = <uint64_t*> PyMem_Malloc(8 * max(1, count, more))
        outside = <uint8_t*> PyMem_Malloc(max(1, count))
        is_url = <uint8_t*> PyMem_Malloc(max(1, count, more))
        if not (values.all and every and hashes and outside and is_url):
            raise MemoryError
        hash_all(octets, count, seed, hash_long, hashes, is_url)
        if not keep_urls:
            memset(is_url, 0, count)
        memset(outside, 1, count)
        for start, end in chrome:
            memset(outside + start, 0, end - start)
        for at in range(count):
            if not is_url[at]:
                words += 1
                left += outside[at]
        with nogil:
            simhashed = simhash(hashes, is_url, count)
            take(&values, hashes, outside, count, size)
        if more:
            hash_all(data, more, seed, hash_long, hashes, is_url)
            take(&values, hashes, NULL, more, size)
        with nogil:
            sort(values.all, values.shown, every)
            sort(values.all + values.first, most - values.first, every)
            at, after = 0, values.first
            while at < values.shown or after < most:
                if after == most or (at < values.shown and values.all[at] <= values.all[after]):
                    value = values.all[at]
                    at += 1
                    if main == 0 or values.all[main - 1] != value:
                        values.all[main] = value
                        main += 1
                else:
                    value = values.all[after]
                    after += 1
                if different == 0 or every[different - 1] != value:
                    every[different] = value
                    different += 1
            choose(every, NULL, different, 0, 0, slots, bits, sketched, NULL)
        if left < least_words:
            main_view = PyBytes_FromStringAndSize(<char*> every, 8 * different)
        else:
            main_view = PyBytes_FromStringAndSize(<char*> values.all, 8 * main)
        return words, left, simhashed, sketch, main_view
    finally:
        PyMem_Free(values.all)
        PyMem_Free(every)
        PyMem_Free(hashes)
        PyMem_Free(outside)
        PyMem_Free(is_url)


# --- What a page has of its own: its sketch, and how it compares with others -----------------------------


def count(const uint64_t[::1] main, const uint8_t[::1] cells, const uint8_t[::1] marks):
    """What `dedup.fingerprint.chrome.Chrome.counts` gives."""
    cdef Py_ssize_t at, size = main.shape[0]
    cdef bytes counted = PyBytes_FromStringAndSize(NULL, size)
    cdef uint8_t* counts = <uint8_t*> PyBytes_AS_STRING(counted)
    cdef uint64_t cell = cells.shape[0] - 1, bit = 8 * marks.shape[0] - 1, first, second
    for at in range(size):
        counts[at] = min(cells[main[at] & cell], cells[(main[at] >> 20) & cell])
        first, second = main[at] & bit, (main[at] >> 20) & bit
        if counts[at] < 255:
            counts[at] += (marks[first >> 3] >> (first & 7)) & (marks[second >> 3] >> (second & 7)) & 1
    return counted


def learn(const uint64_t[:] main, uint8_t[::1] cells, uint8_t[::1] marks):
    """What `dedup.fingerprint.chrome.Chrome` counts of a page, and how many shingles had no mark."""
    cdef Py_ssize_t at, size = main.shape[0], fresh = 0
    cdef bytes counted = PyBytes_FromStringAndSize(NULL, size)
    cdef uint8_t* counts = <uint8_t*> PyBytes_AS_STRING(counted)  # what they are counted as now; 0 without a mark
    cdef uint64_t cell = cells.shape[0] - 1, bit = 8 * marks.shape[0] - 1, first, second
    for at in range(size):
        first, second = main[at] & bit, (main[at] >> 20) & bit
        counts[at] = 0
        if (marks[first >> 3] >> (first & 7)) & (marks[second >> 3] >> (second & 7)) & 1:
            counts[at] = min(254, cells[main[at] & cell], cells[(main[at] >> 20) & cell]) + 1
        fresh += counts[at] == 0
    for at in range(2 * size):  # each of the two places of each shingle
        first = main[at >> 1] >> (20 * (at & 1))
        if counts[at >> 1]:
            cells[first & cell] = max(cells[first & cell], counts[at >> 1])
        else:
            marks[(first & bit) >> 3] |= 1 << (first & 7)
    return fresh


cdef void choose(const uint64_t* values, const uint8_t* counts, Py_ssize_t count, double most, double rare, int slots,
                 int bits, uint64_t* words, uint64_t* mask) noexcept nogil:
    """What `dedup.fingerprint.sketch.Sketcher.select` makes; without counts, of all values, and no mask."""
    cdef Py_ssize_t at, place, last = -1, slot, end = slots * bits >> 6
    cdef uint64_t kinds = (<uint64_t> 1 << bits) - 1
    cdef int shift = 64, size = slots
    while size > 1:
        size >>= 1
        shift -= 1
    memset(words, 0, 8 * (end + 1))
    if counts:
        memset(mask, 0, 8 * end)
    for at in range(count):
        if counts == NULL or counts[at] < most:
            words[end] += 1
            slot = values[at] >> shift
            if slot != last:  # the least value of a slot comes first
                last, place = slot, slot * bits
                words[place >> 6] |= ((values[at] & 0xFFFFFFFFU) % kinds + 1) << (place & 63)
                if counts and counts[at] < rare:
                    mask[place >> 6] |= <uint64_t> 1 << (place & 63)


def select(const uint64_t[::1] values, const uint8_t[::1] counts, double most, double rare, int slots, int bits,
           uint64_t[::1] words, uint64_t[::1] mask):
    """What `dedup.fingerprint.sketch.Sketcher.select` makes, into arrays."""
    if values.shape[0]:
        choose(&values[0], &counts[0], values.shape[0], most, rare, slots, bits, &words[0], &mask[0])
    else:
        words[:], mask[:] = 0, 0


cdef inline uint64_t lanes(uint64_t word, int bits, uint64_t lowest) noexcept nogil:
    """Per slot: 1 if any of its bits is set, else 0."""
    word |= word >> 1
    if bits > 2:
        word |= word >> 2
    if bits > 4:
        word |= word >> 4
    return word & lowest


cdef inline uint64_t by_octets(uint64_t word) noexcept nogil:
    """Of words that are set in every second bit at most: how many bits of each octet are set."""
    word = (word & 0x3333333333333333U) + (word >> 2 & 0x3333333333333333U)
    return (word + (word >> 4)) & 0x0F0F0F0F0F0F0F0FU


cdef inline int64_t sum_of(uint64_t octets) noexcept nogil:
    octets = (octets & 0x00FF00FF00FF00FFU) + (octets >> 8 & 0x00FF00FF00FF00FFU)
    return (octets * <uint64_t> 0x0001000100010001U) >> 48


def match(const uint64_t[:, ::1] stored, const uint64_t[:, ::1] queries, const uint64_t[:, ::1] among, int bits,
          int64_t[:, :, ::1] counts):
    """What `dedup.fingerprint.sketch.Sketcher.matches` counts, into an array."""
    cdef Py_ssize_t row, query, at, first, words = among.shape[1]
    cdef uint64_t lowest = 0xFFFFFFFFFFFFFFFFU // ((<uint64_t> 1 << bits) - 1), a, b, both, same
    cdef uint64_t either, filled, equal, filled_among, equal_among  # by octets, of which none is more than 4 for a word
    cdef const uint64_t* mine
    cdef const uint64_t* theirs
    cdef const uint64_t* chosen
    counts[:] = 0
    with nogil:
        for query in range(queries.shape[0]):
            for row in range(stored.shape[0]):
                mine, theirs, chosen = &queries[query, 0], &stored[row, 0], &among[query, 0]
                for first in range(0, words, 32):
                    either = filled = equal = filled_among = equal_among = 0
                    for at in range(first, min(words, first + 32)):
                        a, b = lanes(theirs[at], bits, lowest), lanes(mine[at], bits, lowest)
                        both = a & b
                        same = both & ~lanes(theirs[at] ^ mine[at], bits, lowest)
                        either += by_octets(a | b)
                        filled += by_octets(both)
                        equal += by_octets(same)
                        filled_among += by_octets(both & chosen[at])
                        equal_among += by_octets(same & chosen[at])
                    counts[0, query, row] += sum_of(either)
                    counts[1, query, row] += sum_of(filled)
                    counts[2, query, row] += sum_of(equal)
                    counts[3, query, row] += sum_of(filled_among)
                    counts[4, query, row] += sum_of(equal_among)


# --- The tables of an index in memory ----------------------------------------------------------------------

cdef extern from *:
    """
    #if defined(__GNUC__) && defined(__x86_64__)
    #define WITH_POPCNT __attribute__((target("popcnt")))
    #define HAS_POPCNT __builtin_cpu_supports("popcnt")
    #define WITH_AVX2 __attribute__((target("avx2")))
    #define HAS_AVX2 __builtin_cpu_supports("avx2")
    #else
    #define WITH_POPCNT
    #define HAS_POPCNT 0
    #define WITH_AVX2
    #define HAS_AVX2 0
    #endif
    #if defined(__GNUC__)
    #define PREFETCH(at) __builtin_prefetch(at)
    #define COUNT(word) __builtin_popcountll(word)
    #else
    #define PREFETCH(at)
    static int count_bits(uint64_t word) {
        int count = 0;
        for (; word; word &= word - 1) count++;
        return count;
    }
    #define COUNT(word) count_bits(word)
    #endif
    #define NEAR(name, type, attribute) \
        attribute static int64_t name(const type* keys, int64_t first, int64_t end, type key, int radius, \
                                      int64_t* found) { \
            int64_t n = 0; \
            for (int64_t at = first; at < end; at++) { \
                found[n] = at; \
                n += COUNT(keys[at] ^ key) <= radius; \
            } \
            return n; \
        }
    NEAR(near_keys_any, uint64_t, ) NEAR(near_keys_popcnt, uint64_t, WITH_POPCNT)
    NEAR(near_folds_any, uint32_t, ) NEAR(near_folds_popcnt, uint32_t, WITH_POPCNT)
    #define COUNT_EQUAL(name, attribute) \
        attribute static int64_t name(const uint64_t* keys, int64_t first, int64_t end, uint64_t key) { \
            int64_t n = 0; \
            for (int64_t at = first; at < end; at++) n += keys[at] == key; \
            return n; \
        }
    COUNT_EQUAL(count_equal_any, ) COUNT_EQUAL(count_equal_avx2, WITH_AVX2)
    #define LEAST(name, attribute) \
        attribute static uint32_t name(const uint32_t* values, int64_t count, uint32_t factor) { \
            uint32_t least = UINT32_MAX; \
            for (int64_t at = 0; at < count; at++) { \
                uint32_t drawn = factor * values[at]; \
                least = drawn < least ? drawn : least; \
            } \
            return least; \
        }
    LEAST(least_any, ) LEAST(least_avx2, WITH_AVX2)
    #define COUNT_APART(name, attribute) \
        attribute static void name(const uint64_t* keys, int64_t size, uint64_t key, int64_t* counts) { \
            int64_t odd[65] = {0};  /* or each key would wait for the one before it */ \
            for (int64_t at = 0; at < size; at++) (at & 1 ? odd : counts)[COUNT(keys[at] ^ key)]++; \
            for (int bits = 0; bits <= 64; bits++) counts[bits] += odd[bits]; \
        }
    COUNT_APART(count_apart_any, ) COUNT_APART(count_apart_popcnt, WITH_POPCNT)
    #define count_apart(...) (HAS_POPCNT ? count_apart_popcnt(__VA_ARGS__) : count_apart_any(__VA_ARGS__))
    #define count_equal(...) (HAS_AVX2 ? count_equal_avx2(__VA_ARGS__) : count_equal_any(__VA_ARGS__))
    #define least(...) (HAS_AVX2 ? least_avx2(__VA_ARGS__) : least_any(__VA_ARGS__))
    #define near_keys(...) (HAS_POPCNT ? near_keys_popcnt(__VA_ARGS__) : near_keys_any(__VA_ARGS__))
    #define near_folds(...) (HAS_POPCNT ? near_folds_popcnt(__VA_ARGS__) : near_folds_any(__VA_ARGS__))
    static int compare_ranks(const void* a, const void* b) {
        uint64_t one = *(const uint64_t*) a, other = *(const uint64_t*) b;
        return (one > other) - (one < other);
    }
    """
    void PREFETCH(const void* at) noexcept nogil
    int COUNT(uint64_t word) noexcept nogil
    int64_t near_keys(const uint64_t* keys, int64_t first, int64_t end, uint64_t key, int radius,
                      int64_t* found) noexcept nogil
    int64_t near_folds(const uint32_t* keys, int64_t first, int64_t end, uint32_t key, int radius,
                       int64_t* found) noexcept nogil
    int64_t count_equal(const uint64_t* keys, int64_t first, int64_t end, uint64_t key) noexcept nogil
    void count_apart(const uint64_t* keys, int64_t size, uint64_t key, int64_t* counts) noexcept nogil
    uint32_t least(const uint32_t* values, int64_t count, uint32_t factor) noexcept nogil
    int compare_ranks(const void* a, const void* b) noexcept nogil


def unmix(const uint64_t[::1] values, uint64_t key):
    """The shingles (8 bytes each) that have these values in a sketch of this key."""
    cdef bytes found = PyBytes_FromStringAndSize(NULL, 8 * values.shape[0])
    cdef uint64_t* shingles = <uint64_t*> PyBytes_AS_STRING(found)
    cdef uint64_t value
    cdef Py_ssize_t at
    with nogil:
        for at in range(values.shape[0]):
            value = values[at]
            value = (value ^ value >> 31 ^ value >> 62) * <uint64_t> 0x319642B2D24D8EC3
            value = (value ^ value >> 27 ^ value >> 54) * <uint64_t> 0x96DE1B173F119089
            shingles[at] = value ^ value >> 30 ^ value >> 60 ^ key
    return found


def signature(const uint64_t[::1] shingles, const uint32_t[:, ::1] factors, uint64_t key):
    """What each selector picks (4 bytes each), as `dedup.fingerprint.signatures` finds it in numpy."""
    cdef Py_ssize_t at, count = shingles.shape[0], selectors = factors.shape[0]
    cdef bytes found = PyBytes_FromStringAndSize(NULL, 4 * selectors)
    cdef uint32_t* picked = <uint32_t*> PyBytes_AS_STRING(found)
    cdef uint32_t* values = <uint32_t*> PyMem_Malloc(4 * max(1, count))
    if not values:
        raise MemoryError
    with nogil:
        for at in range(count):
            values[at] = mix(shingles[at] ^ key) >> 32 | 1
        for at in range(selectors):
            picked[at] = least(values, count, factors[at, 0])
    PyMem_Free(values)
    return found


cdef const void* start_of(object array) except? NULL:
    """Where an array begins, whose caller has it meanwhile.  A view of it, which would check its type, costs .5 us."""
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_SIMPLE)
    PyBuffer_Release(&view)
    return view.buf


cdef struct Exact:
    const uint32_t* values
    const uint32_t* numbers
    const uint64_t* keys
    Py_ssize_t covered  #: how many pages are in the table
    Py_ssize_t guess  #: where the key would be if all were as far apart, as they nearly are
    bint is_in_tail  #: whether it may be there


def note(object bits, list columns, int count, Py_ssize_t first, Py_ssize_t end):
    """Sets a bit, of 2^20, for each key that some pages have in the first ``count`` columns."""
    cdef uint8_t* octets = <uint8_t*> start_of(bits)
    cdef const uint64_t* keys
    cdef Py_ssize_t place, at
    for place in range(count):
        keys = <const uint64_t*> start_of(columns[place].rows)
        for at in range(first, end):
            octets[keys[at] >> 47] |= 1 << (keys[at] >> 44 & 7)


def equal(list tables, list columns, object bits, Py_ssize_t size, tuple keys):
    """What `dedup.index.local.tables.SortedTables.equal` finds: in tables of the upper halves of keys, and in the tail.

    The arrays of a table are of uint32, that of a column is of uint64; of each key in the tail one of the ``bits`` is set.
    """
    cdef const uint8_t* octets = <const uint8_t*> start_of(bits)
    cdef Py_ssize_t place, count = len(tables)
    cdef bytes room = PyBytes_FromStringAndSize(NULL, count * sizeof(Exact))
    cdef Exact* exact = <Exact*> PyBytes_AS_STRING(room)
    cdef uint64_t key
    for place in range(count):
        table, key = tables[place], keys[place]
        exact[place].values = <const uint32_t*> start_of(table.values)
        exact[place].numbers = <const uint32_t*> start_of(table.numbers)
        exact[place].keys = <const uint64_t*> start_of(columns[place].rows)
        exact[place].covered = len(table.numbers)
        exact[place].guess = (key >> 32) * exact[place].covered >> 32
        exact[place].is_in_tail = octets[key >> 47] >> (key >> 44 & 7) & 1
        PREFETCH(exact[place].values + exact[place].guess)
    return [equal_in(&exact[place], size, keys[place]) for place in range(count)]


cdef list equal_in(const Exact* table, Py_ssize_t size, uint64_t key):
    cdef Py_ssize_t low = 0, high = table.covered, at = table.guess, middle, step = 64
    cdef uint32_t half = key >> 32
    cdef list found = []
    while at < high and step < high:  # its place is next to the guess, but for keys that nobody has hashed
        if table.values[at] < half:
            low, at = at + 1, at + step
        else:
            high, at = at, max(low, at - step)
        step *= 4
    while low < high:
        middle = (low + high) >> 1
        if table.values[middle] < half:
            low = middle + 1
        else:
            high = middle
    while low < table.covered and table.values[low] == half:
        if table.keys[table.numbers[low]] == key:
            found.append(table.numbers[low])
        low += 1
    found.sort()
    if table.is_in_tail and count_equal(table.keys, table.covered, size, key):
        for at in range(table.covered, size):
            if table.keys[at] == key:
                found.append(at)
    return found


cdef void put_least_first(int64_t* ranks, int64_t count, int64_t most) noexcept nogil:
    """Moves the ``most`` least of some ranks to the front, in any order: Hoare's FIND.  O(count) but by bad luck, then it sorts."""
    cdef int64_t low = 0, high = count - 1, left, right, pivot, rounds = 0
    while low < high:
        rounds += 1
        if rounds > 64:
            qsort(ranks + low, high - low + 1, 8, compare_ranks)
            return
        pivot = ranks[low + <int64_t> (mix(rounds) % <uint64_t> (high - low + 1))]
        left, right = low, high
        while left <= right:
            while ranks[left] < pivot:
                left += 1
            while ranks[right] > pivot:
                right -= 1
            if left <= right:
                ranks[left], ranks[right] = ranks[right], ranks[left]
                left += 1
                right -= 1
        if most <= right:
            high = right
        elif most >= left:
            low = left
        else:
            return


cdef inline int64_t length(const int32_t* starts, int64_t bucket) noexcept nogil:
    return starts[bucket + 1] - starts[bucket]


def within(object bucket_starts, object all_folds, object all_numbers, object all_moves, int tables, int width, int flipped,
           object all_keys, Py_ssize_t covered, Py_ssize_t size, uint64_t key, int radius, Py_ssize_t most, Py_ssize_t most_met):
    """What `dedup.index.local.tables.SortedTables.within` finds in buckets, and in the tail of keys from ``covered`` on.

    The arrays are of int32, uint32, uint32, uint64, shape (n, 4), and uint64.  Moves bring the bits of a key together that are
    a prefix of ``width`` bits: each is a table, right, mask and left.  If the buckets hold more than ``most_met`` candidates,
    all keys are looked at instead.
    """
    cdef const int32_t* starts = <const int32_t*> start_of(bucket_starts)
    cdef const uint32_t* folds = <const uint32_t*> start_of(all_folds)
    cdef const uint32_t* numbers = <const uint32_t*> start_of(all_numbers)
    cdef const uint64_t* move = <const uint64_t*> start_of(all_moves)
    cdef const uint64_t* keys = <const uint64_t*> start_of(all_keys)
    cdef Py_ssize_t place, count = tables, met = 0, n = 0, first, at, told = 0, room
    cdef int64_t apart[65]
    cdef Py_ssize_t enough = most * (tables + 1) + 1  # all tables may have the same pages, and one twice, amid a merge
    cdef int64_t bucket, distance, last = -1
    cdef uint32_t fold = <uint32_t> (key ^ (key >> 32))
    cdef int64_t* found = NULL
    cdef int64_t* buckets = <int64_t*> PyMem_Calloc(tables + flipped * width, 8)
    cdef list groups = [], group = []
    try:
        if not buckets:
            raise MemoryError
        for at in range(len(all_moves)):
            buckets[move[0]] |= ((key >> move[1]) & move[2]) << move[3] >> (64 - width)
            move += 4
        for place in range(tables):
            buckets[place] += place << width
            PREFETCH(&starts[buckets[place]])
        for at in range(flipped):  # the emptiest ones
            for place in range(at + 1, tables):
                if length(starts, buckets[place]) < length(starts, buckets[at]):
                    buckets[at], buckets[place] = buckets[place], buckets[at]
        for at in range(flipped):
            for place in range(width):
                buckets[count] = buckets[at] ^ (<int64_t> 1 << place)
                PREFETCH(&starts[buckets[count]])
                count += 1
        for place in range(count):
            bucket = buckets[place]
            met += length(starts, bucket)
            PREFETCH(&folds[starts[bucket]])
            PREFETCH(&folds[starts[bucket + 1]])
        room = met + size - covered
        if met > most_met:
            count = covered = room = 0
            enough = most + 1
            memset(apart, 0, sizeof(apart))
            count_apart(keys, size, key, apart)
            for at in range(radius + 1):
                room += apart[at]
                if room > most:  # those that are farther away are not told
                    radius = at
                    break
        found = <int64_t*> PyMem_Malloc(8 * (room + 1))
        if not found:
            raise MemoryError
        with nogil:
            for place in range(count):
                bucket, first = buckets[place], n
                n += near_folds(folds, starts[bucket], starts[bucket + 1], fold, radius, found + n)
                for at in range(first, n):
                    found[at] = numbers[found[at]]
            first, met = n, 0
            n += near_keys(keys, covered, size, key, radius, found + n)
            for at in range(n):
                if at < first and found[at] >= covered:  # of a merge that is under way: the tail has it, too
                    continue
                distance = COUNT(keys[found[at]] ^ key)
                if distance <= radius:
                    found[met] = distance << 32 | found[at]
                    met += 1
            n = met
            if n > enough:
                put_least_first(found, n, enough)
                n = enough
            qsort(found, n, 8, compare_ranks)
        distance = -1
        for at in range(n):
            if found[at] == last:
                continue
            if told == most:
                return groups, True
            last = found[at]
            told += 1
            if last >> 32 != distance:
                distance = last >> 32
                group = []
                groups.append(group)
            group.append(last & 0xFFFFFFFF)
        return groups, False
    finally:
        PyMem_Free(buckets)
        PyMem_Free(found)
