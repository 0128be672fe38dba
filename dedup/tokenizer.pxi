# Octets of a page -> tags, texts and comments: what dedup.page.tokenizer finds, where it stands.
#
# Reading needs no object of Python, so other threads go on; only what is asked for becomes a str.  The octets of a page end
# with a NUL, which is part of no mark, so that no look ahead goes beyond it.

from html.entities import html5

cdef dict NAMED = html5

cdef enum:
    TEXT, START, END, COMMENT, DOCTYPE

cdef enum:
    DATA, RCDATA, RAWTEXT, SCRIPT, PLAINTEXT, CDATA

cdef enum:
    IS_SPACE = 1, IS_SLASH = 2, IS_CLOSE = 4, IS_EQUAL = 8, IS_LETTER = 16, IS_DIGIT = 32, IS_RARE = 64, IS_CAPITAL = 128
    ENDS_NAME = IS_SPACE | IS_SLASH | IS_CLOSE
    IS_WORD = IS_LETTER | IS_DIGIT
#: Of each octet: what it is in a tag, and whether it may mean something else in a text, or in a name.
cdef uint8_t IN_TAG[256]
memset(IN_TAG, 0, 256)
for octet in b"\t\n\f\r ":
    IN_TAG[octet] = IS_SPACE
IN_TAG[c"/"], IN_TAG[c">"], IN_TAG[c"="] = IS_SLASH, IS_CLOSE, IS_EQUAL
for octet in range(256):
    if octet < 128 and chr(octet).isalnum():
        IN_TAG[octet] = IS_DIGIT if chr(octet).isdigit() else IS_LETTER | IS_CAPITAL * chr(octet).isupper()
IN_TAG[c"&"] = IN_TAG[c"\r"] = IN_TAG[0] = IS_RARE
IN_TAG[c"\r"] |= IS_SPACE

#: SVG and MathML, and the elements of each in which HTML stands; a number of one of these is its place here.
cdef enum:
    SVG, MATH, OF_SVG, OF_MATH = 5, FOREIGN = 10
cdef const char* FOREIGN_NAMES[10]
FOREIGN_NAMES[:] = [b"svg", b"math", b"foreignobject", b"desc", b"title", b"mi", b"mo", b"mn", b"ms", b"mtext"]
#: Elements of HTML whose tags end SVG and MathML.
cdef const char* ENDING[44]
ENDING[:] = [
    b"b", b"big", b"blockquote", b"body", b"br", b"center", b"code", b"dd", b"div", b"dl", b"dt", b"em", b"embed", b"h1", b"h2", b"h3", b"h4",
    b"h5", b"h6", b"head", b"hr", b"i", b"img", b"li", b"listing", b"menu", b"meta", b"nobr", b"ol", b"p", b"pre", b"ruby", b"s", b"small",
    b"span", b"strong", b"strike", b"sub", b"sup", b"table", b"tt", b"u", b"ul", b"var",
]
#: Elements in whose text no tag begins.
cdef const char* WITHOUT_TAGS[9]
WITHOUT_TAGS[:] = [b"title", b"textarea", b"style", b"xmp", b"iframe", b"noembed", b"noframes", b"script", b"plaintext"]
cdef int CONTENTS[9]
CONTENTS[:] = [RCDATA, RCDATA, RAWTEXT, RAWTEXT, RAWTEXT, RAWTEXT, RAWTEXT, SCRIPT, PLAINTEXT]

cdef struct Span:
    const unsigned char* at
    const unsigned char* end

cdef struct Attribute:
    Span name
    Span value

cdef struct Markup:
    const unsigned char* at  #: what is to be read is from here
    const unsigned char* end  #: to before here
    int content  #: what begins there,
    Span element  #: and the name of the element whose text it is
    uint8_t opened[64]  #: open elements of SVG and MathML, and the islands of HTML in them
    int depth  #: how many these are
    bint sections  #: whether a CDATA section of HTML is as long as it is in XHTML
    # Of the event that was read last:
    int kind
    Span whole
    Span text  #: its characters as they are written, or its name
    int written  #: what may be among these
    bint flag
    Attribute* attributes
    Py_ssize_t count, room


cdef inline bint is_named(const unsigned char* at, const unsigned char* end, const char* name) noexcept nogil:
    """Whether letters are a name that is in lower case."""
    while at < end and name[0] == (at[0] | 32 if c"A" <= at[0] <= c"Z" else at[0]) and name[0]:
        at += 1
        name += 1
    return at == end and not name[0]


cdef inline int place_among(Span name, const char** names, int count) noexcept nogil:
    """Which of the names it is; ``count`` if none."""
    cdef int place
    for place in range(count):
        if (names[place][0] == name.at[0] | 32) and is_named(name.at, name.end, names[place]):
            return place
    return count


cdef inline bint is_foreign(const Markup* page) noexcept nogil:
    return page.depth > 0 and page.opened[page.depth - 1] <= MATH


cdef void turn(Markup* page) noexcept nogil:
    """Goes into SVG or MathML, or out of it, with a tag."""
    cdef int name, depth
    if not page.depth and not (3 <= page.text.end - page.text.at <= 4):
        return
    name = place_among(page.text, FOREIGN_NAMES, FOREIGN)
    if is_foreign(page) and place_among(page.text, ENDING, 44) < 44:
        while is_foreign(page):
            page.depth -= 1
    elif name == FOREIGN:
        return
    elif page.kind == END:
        for depth in range(page.depth - 1, -1, -1):
            if page.opened[depth] == name:
                page.depth = depth
                break
    elif name <= MATH or (is_foreign(page) and (name < OF_MATH) == (page.opened[page.depth - 1] == SVG)):
        if not page.flag and page.depth < 64:
            page.opened[page.depth] = name
            page.depth += 1


cdef inline bint ends_element(const unsigned char* at, const unsigned char* end, Span name) noexcept nogil:
    """Whether an end tag with this name begins here."""
    cdef const unsigned char* letter = name.at
    if at[0] != c"<" or at[1] != c"/":
        return False
    at += 2
    while letter < name.end and at < end and (at[0] == letter[0] or ((at[0] ^ letter[0]) == 32 and IN_TAG[at[0]] & IS_LETTER)):
        at += 1
        letter += 1
    return letter == name.end and IN_TAG[at[0]] & ENDS_NAME


cdef const unsigned char* end_of_script(const unsigned char* at, const unsigned char* end) noexcept nogil:
    cdef bint in_comment = False, is_quoted = False
    cdef bint closes
    cdef const unsigned char* name
    while at < end:
        if not in_comment:
            at = <const unsigned char*> memchr(at, c"<", end - at)
            if at == NULL:
                return end
        if at[0] == c"<":
            closes = at[1] == c"/"
            name = at + 1 + closes
            if at[1] == c"!" and at[2] == c"-" and at[3] == c"-":
                in_comment = True
                at += 1
            elif end - name > 6 and is_named(name, name + 6, b"script") and IN_TAG[name[6]] & ENDS_NAME:
                if not closes:
                    is_quoted = in_comment
                elif is_quoted:
                    is_quoted = False
                else:
                    return at
        elif at[0] == c"-" and at[1] == c"-" and at[2] == c">":
            in_comment = is_quoted = False
            at += 2
        at += 1
    return end


cdef const unsigned char* end_of_text(const Markup* page) noexcept nogil:
    """Where a text ends that begins here."""
    cdef const unsigned char* at = page.at
    cdef const unsigned char* end = page.end
    cdef int content = page.content
    cdef unsigned char mark = c"]" if content == CDATA else c"<"
    if content == PLAINTEXT or (RCDATA <= content <= SCRIPT and page.element.at == page.element.end):
        return end
    if content == SCRIPT:
        return end_of_script(at, end)
    while True:
        at = <const unsigned char*> memchr(at, mark, end - at)
        if at == NULL:
            return end
        if content == DATA:
            if IN_TAG[at[1]] & IS_LETTER or at[1] == c"!" or at[1] == c"?" or (at[1] == c"/" and at + 2 < end):
                return at
        elif content == CDATA:
            if at[1] == c"]" and at[2] == c">":
                return at
        elif ends_element(at, end, page.element):
            return at
        at += 1


cdef int read_event(Markup* page) noexcept nogil:
    """Reads the next event; 0 if there is none, -1 without memory."""
    cdef const unsigned char* start
    cdef const unsigned char* end
    cdef int content
    while page.at < page.end:
        start, content, end = page.at, page.content, end_of_text(page)
        page.at, page.content = end, DATA
        if content == CDATA:
            page.at = min(end + 3, page.end)
        if start < end:
            page.kind, page.written, page.flag, page.count = TEXT, content, False, 0
            page.whole.at, page.whole.end = start, end
            page.text = page.whole
            return 1
        if content == CDATA:
            continue
        if page.at[1] == c"/" and page.at[2] == c">":
            page.at += 3
        elif is_foreign(page) and strncmp(<const char*> page.at, b"<![CDATA[", 9) == 0:
            page.at += 9
            page.content = CDATA
        elif IN_TAG[page.at[1]] & IS_LETTER or (page.at[1] == c"/" and IN_TAG[page.at[2]] & IS_LETTER):
            return read_tag(page)
        else:
            read_comment(page)
            return 1
    return 0


cdef int read_tag(Markup* page) noexcept nogil:
    """Reads a tag; 0 if it never ends, -1 without memory."""
    cdef const unsigned char* at = page.at + 1
    cdef const unsigned char* end = page.end
    cdef Attribute* each
    cdef bint was_foreign
    cdef int place
    page.whole.at = page.at
    page.at = end
    page.kind = END if at[0] == c"/" else START
    at += page.kind == END
    page.written, page.count = RAWTEXT, 0
    page.text.at = at
    while at < end and not IN_TAG[at[0]] & ENDS_NAME:
        at += 1
    page.text.end = at
    while True:
        page.flag = False
        while at < end and IN_TAG[at[0]] & (IS_SPACE | IS_SLASH):
            page.flag = at[0] == c"/"
            at += 1
        if at == end:
            return 0
        if at[0] == c">":
            break
        if page.count == page.room:
            each = <Attribute*> realloc(page.attributes, 2 * (page.room + 8) * sizeof(Attribute))
            if each == NULL:
                return -1
            page.attributes, page.room = each, 2 * (page.room + 8)
        each = page.attributes + page.count
        each.name.at = at
        at += 1
        while at < end and not IN_TAG[at[0]] & (ENDS_NAME | IS_EQUAL):
            at += 1
        each.name.end = each.value.at = each.value.end = at
        while at < end and IN_TAG[at[0]] & IS_SPACE:
            at += 1
        if at < end and at[0] == c"=":
            at += 1
            while at < end and IN_TAG[at[0]] & IS_SPACE:
                at += 1
            if at < end and (at[0] == c'"' or at[0] == c"'"):
                each.value.at = at + 1
                at = <const unsigned char*> memchr(at + 1, at[0], end - at - 1)
                if at == NULL:
                    return 0
                each.value.end = at
                at += 1
            else:
                each.value.at = at
                while at < end and not IN_TAG[at[0]] & (IS_SPACE | IS_CLOSE):
                    at += 1
                each.value.end = at
        page.count += page.kind == START
    page.at = page.whole.end = at + 1
    page.flag = page.flag and page.kind == START
    was_foreign = is_foreign(page)
    turn(page)
    if page.kind == START and not was_foreign:
        place = place_among(page.text, WITHOUT_TAGS, 9)
        if place < 9:
            page.content, page.element = CONTENTS[place], page.text
    return 1


cdef void read_comment(Markup* page) noexcept nogil:
    """Reads a comment, or a doctype, whose text is what follows that word."""
    cdef const unsigned char* at = page.at
    cdef const unsigned char* end = page.end
    page.kind, page.written, page.flag, page.count = COMMENT, RAWTEXT, False, 0
    page.whole.at = at
    if at[1] == c"!" and at[2] == c"-" and at[3] == c"-":
        read_true_comment(page)
        return
    at += 1 if at[1] == c"?" else 2
    if page.at[1] == c"!" and end - at >= 7 and is_named(at, at + 7, b"doctype"):
        page.kind = DOCTYPE
        at += 7
    page.text.at = at
    page.text.end = <const unsigned char*> memchr(at, c">", end - at)
    if page.sections and strncmp(<const char*> page.at, b"<![CDATA[", 9) == 0:
        read_section(page)
        return
    if page.text.end == NULL:
        page.text.end = end
    page.flag = page.kind == DOCTYPE and page.text.end < end
    page.at = page.whole.end = min(page.text.end + 1, end)


cdef void read_section(Markup* page) noexcept nogil:
    cdef const unsigned char* at = page.at
    while True:
        at = <const unsigned char*> memchr(at, c"]", page.end - at)
        if at == NULL:
            page.at = page.text.end = page.whole.end = page.end
            return
        if at[1] == c"]" and at[2] == c">":
            page.text.end = at
            page.at = page.whole.end = at + 3
            return
        at += 1


cdef void read_true_comment(Markup* page) noexcept nogil:
    cdef const unsigned char* at = page.at + 4
    cdef const unsigned char* end = page.end
    page.text.at = page.text.end = at
    if at[0] == c">" or (at[0] == c"-" and at[1] == c">"):
        page.at = page.whole.end = at + (1 if at[0] == c">" else 2)
        return
    while True:
        at = <const unsigned char*> memchr(at, c"-", end - at)
        if at == NULL:
            break
        if at[1] == c"-" and (at[2] == c">" or (at[2] == c"!" and at[3] == c">")):
            page.text.end = at
            page.at = page.whole.end = at + (3 if at[2] == c">" else 4)
            return
        at += 1
    page.at = page.whole.end = at = end
    if at - page.text.at >= 3 and at[-1] == c"!" and at[-2] == c"-" and at[-3] == c"-":
        at -= 3
    else:
        at -= at > page.text.at and at[-1] == c"-"
        at -= at > page.text.at and at < end and at[-1] == c"-"
    page.text.end = at


cdef str text_of(Span text, int written, bint in_value, bint is_name, Octets room):
    """The characters of a text; those of a name are in lower case."""
    cdef const unsigned char* at = text.at
    cdef uint8_t rare = IS_RARE | (IS_CAPITAL if is_name else 0)
    while at < text.end and not IN_TAG[at[0]] & rare:
        at += 1
    if at == text.end:
        return decode(<const char*> text.at, text.end - text.at)
    room.size = 0
    at = text.at
    while at < text.end:
        room.ask(4)
        if at[0] == c"\r":
            room.data[room.size] = c"\n"
            at += at + 1 < text.end and at[1] == c"\n"
        elif at[0] == 0 and written != DATA and written != CDATA:
            room.add(b"\xef\xbf\xbd", 3)
            at += 1
            continue
        elif at[0] == c"&" and (in_value or written == DATA or written == RCDATA):
            at = resolve(at, text.end, in_value, room)
            continue
        else:
            room.data[room.size] = at[0] | 32 if is_name and IN_TAG[at[0]] & IS_CAPITAL else at[0]
        room.size += 1
        at += 1
    return decode(<const char*> room.data, room.size)


cdef str decode(const char* octets, Py_ssize_t size):
    try:
        return PyUnicode_DecodeUTF8(octets, size, "surrogatepass")
    except UnicodeDecodeError:
        return PyUnicode_DecodeUTF8(octets, size, "replace")


#: Which characters the numbers from 128 mean, as in Windows.
cdef unsigned int WINDOWS[32]
for octet in range(32):
    WINDOWS[octet] = octet + 128
    if octet + 128 not in (0x81, 0x8D, 0x8F, 0x90, 0x9D):
        WINDOWS[octet] = ord(bytes([octet + 128]).decode("cp1252"))


cdef int add_character(Octets room, unsigned int code) except -1:
    """Adds the character that has a number."""
    cdef unsigned char* out = room.ask(4)
    if 128 <= code < 160:
        code = WINDOWS[code - 128]
    elif code == 0 or code > 0x10FFFF or 0xD800 <= code < 0xE000:
        code = 0xFFFD
    if code < 0x80:
        out[0] = code
        room.size += 1
    elif code < 0x800:
        out[0], out[1] = 0xC0 | code >> 6, 0x80 | (code & 0x3F)
        room.size += 2
    elif code < 0x10000:
        out[0], out[1], out[2] = 0xE0 | code >> 12, 0x80 | (code >> 6 & 0x3F), 0x80 | (code & 0x3F)
        room.size += 3
    else:
        out[0], out[1] = 0xF0 | code >> 18, 0x80 | (code >> 12 & 0x3F)
        out[2], out[3] = 0x80 | (code >> 6 & 0x3F), 0x80 | (code & 0x3F)
        room.size += 4
    return 0


cdef const unsigned char* resolve(const unsigned char* start, const unsigned char* end, bint in_value, Octets room) except NULL:
    """Adds what a reference means, or it as it is; returns where it ends."""
    cdef const unsigned char* at = start + 1
    cdef const unsigned char* name = at
    cdef const unsigned char* digits
    cdef unsigned int code = 0, digit
    cdef bint is_hexadecimal
    cdef Py_ssize_t size
    cdef PyObject* characters = NULL
    cdef const char* told
    if at < end and at[0] == c"#":
        at += 1
        is_hexadecimal = at < end and (at[0] | 32) == c"x"
        at += is_hexadecimal
        digits = at
        while at < end:
            if IN_TAG[at[0]] & IS_DIGIT:
                digit = at[0] - c"0"
            elif is_hexadecimal and c"a" <= (at[0] | 32) <= c"f":
                digit = (at[0] | 32) - c"a" + 10
            else:
                break
            code = min(code * (16 if is_hexadecimal else 10) + digit, <unsigned int> 0x110000)
            at += 1
        if at > digits:
            add_character(room, code)
            return at + (at < end and at[0] == c";")
        at = name
    elif at < end and IN_TAG[at[0]] & IS_LETTER:
        while at < end and at - name < 32 and IN_TAG[at[0]] & IS_WORD:
            at += 1
        at += at < end and at[0] == c";"
        size = at - name
        while size > 1:
            characters = PyDict_GetItem(NAMED, PyUnicode_DecodeASCII(<const char*> name, size, NULL))
            if characters != NULL:
                break
            size = min(size - 1, 6)
        at = name + size
        if characters != NULL and (
            at[-1] == c";" or not (in_value and at < end and IN_TAG[at[0]] & (IS_WORD | IS_EQUAL))
        ):
            told = PyUnicode_AsUTF8AndSize(<str> characters, &size)
            room.add(told, size)
            return at
        at = name
    room.add(start, at - start)
    return at


cdef dict attributes_of(const Markup* page, Octets room):
    cdef dict found = {}
    cdef Py_ssize_t number
    for number in range(page.count):
        name = text_of(page.attributes[number].name, RAWTEXT, False, True, room)
        if name not in found:
            found[name] = text_of(page.attributes[number].value, RAWTEXT, True, False, room)
    return found


cdef void begin(Markup* page, bytes octets, int content, bytes name) noexcept:
    """Goes to where a page begins."""
    memset(page, 0, sizeof(page[0]))
    page.at = <const unsigned char*> PyBytes_AS_STRING(octets)
    page.end = page.at + len(octets)
    page.content = content
    page.element.at = <const unsigned char*> PyBytes_AS_STRING(name)
    page.element.end = page.element.at + len(name)


def tokenize(bytes octets, int content, bytes name, bint sections, object rules):
    """What `dedup.page.tokenizer.tokenize` gives, as a list of the values of its events."""
    cdef const char* start = PyBytes_AS_STRING(octets)
    cdef Octets room = Octets()
    cdef list found = []
    cdef tuple kinds = tuple(rules.Kind)
    cdef Markup page
    cdef int read = 1
    begin(&page, octets, content, name)
    page.sections = sections
    try:
        while (read := read_event(&page)) > 0:
            where = kinds[page.kind], <const char*> page.whole.at - start, <const char*> page.whole.end - start
            if page.kind == DOCTYPE:
                said = octets[<const char*> page.text.at - start : <const char*> page.text.end - start]
                found.append((*where, *rules.read_doctype(said, page.flag)))
            else:
                text = text_of(page.text, page.written, False, page.kind == START or page.kind == END, room)
                found.append((*where, text, attributes_of(&page, room), page.flag))
    finally:
        free(page.attributes)
    if read < 0:
        raise MemoryError
    return found
