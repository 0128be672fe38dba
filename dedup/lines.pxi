# Octets of a page -> its lines: what dedup.filter.noise.lines finds.

cdef enum:
    IN_WORD = 1, IN_NUMBER = 2, IS_WHITE = 4, IS_ASCII = 8, IN_ID = 16, IS_UPPER = 32, IS_LOWER = 64
#: Of each of the first characters: what it may be part of, and whether it is ASCII.
cdef uint8_t IN_LINE[256]
for octet in range(256):
    IN_LINE[octet] = (
        IN_WORD * chr(octet).isalnum()
        + IN_NUMBER * chr(octet).isdecimal()
        + IS_WHITE * chr(octet).isspace()
        + (octet < 128)
        * (
            IS_ASCII
            + IN_ID * (chr(octet).isalnum() or chr(octet) in "_+=-")
            + IS_UPPER * chr(octet).isupper()
            + IS_LOWER * chr(octet).islower()
        )
    )


#: Short tokens that were met, each at its place: pages say the same again and again.
cdef list KNOWN = [""] * 4096
cdef enum:
    SHORT = 24


cdef str token_of(const unsigned char* at, Py_ssize_t size):
    """A token of ASCII."""
    cdef uint32_t place = 2166136261
    cdef Py_ssize_t number
    cdef str known
    if size > SHORT:
        return PyUnicode_DecodeASCII(<const char*> at, size, NULL)
    for number in range(size):
        place = (place ^ at[number]) * 16777619
    place = (place ^ place >> 15) & 4095
    known = <str> KNOWN[place]
    if len(known) != size or memcmp(PyUnicode_DATA(known), at, size) != 0:
        known = PyUnicode_DecodeASCII(<const char*> at, size, NULL)
        KNOWN[place] = known
    return known


cdef str name_of(Span name, Octets room):
    cdef const unsigned char* at = name.at
    while at < name.end and at[0] < 128 and not IN_TAG[at[0]] & (IS_RARE | IS_CAPITAL):
        at += 1
    return token_of(name.at, at - name.at) if at == name.end else text_of(name, RAWTEXT, False, True, room)


cdef str framed(str before, str name, str after):
    """The token of a tag or an attribute."""
    cdef unsigned char room[SHORT]
    cdef Py_ssize_t first = len(before), size = first + len(name)
    if size + len(after) > SHORT or not PyUnicode_IS_ASCII(name):
        return before + name + after
    memcpy(room, PyUnicode_DATA(before), first)
    memcpy(room + first, PyUnicode_DATA(name), size - first)
    memcpy(room + size, PyUnicode_DATA(after), len(after))
    return token_of(room, size + len(after))


cdef inline int class_of(uint32_t code) noexcept:
    if code < 256:
        return IN_LINE[code]
    if Py_UNICODE_ISDECIMAL(code):
        return IN_WORD | IN_NUMBER
    return IN_WORD if Py_UNICODE_ISALNUM(code) else IS_WHITE if Py_UNICODE_ISSPACE(code) else 0


cdef inline int class_at(int kind, const void* data, Py_ssize_t at, Py_ssize_t size) noexcept:
    return class_of(PyUnicode_READ(kind, data, at)) if at < size else 0


cdef Py_ssize_t end_of_number(int kind, const void* data, Py_ssize_t end, Py_ssize_t size, int digits) noexcept:
    """Where a number ends whose first digits end here: behind its groups of three digits, or behind minutes and seconds; 0 if it has none."""
    cdef Py_ssize_t last = 0, groups = 0, at
    cdef uint32_t sign
    cdef bint is_time = end < size and PyUnicode_READ(kind, data, end) == c":"
    cdef int length = 2 if is_time else 3
    if digits > length:
        return 0
    while end < size and (not is_time or groups < 2):
        sign = PyUnicode_READ(kind, data, end)
        if (sign != c":") if is_time else (sign != c"." and sign != c"," and sign != 39):
            break
        for at in range(end + 1, end + 1 + length):
            if not class_at(kind, data, at, size) & IN_NUMBER:
                return last
        end += 1 + length
        groups += 1
        if not class_at(kind, data, end, size) & (IN_NUMBER if is_time else IN_WORD):
            last = end
    return last


#: Characters of the shortest id; and within so many it has letters of either case and digits.
cdef enum:
    ID = 16, TOLD = 64


cdef Py_ssize_t end_of_id(int kind, const void* data, Py_ssize_t at, Py_ssize_t size) noexcept:
    """Where the id that begins here ends; 0 if none does."""
    cdef Py_ssize_t end = at
    cdef int its = class_at(kind, data, end, size), found = 0
    while its & IN_ID and end < at + TOLD:
        found |= its
        end += 1
        its = class_at(kind, data, end, size)
    if end < at + ID or not (found & IS_UPPER and found & IS_LOWER and found & IN_NUMBER):
        return 0
    while class_at(kind, data, end, size) & IN_ID:
        end += 1
    return end


cdef Py_ssize_t end_of_word(int kind, const void* data, Py_ssize_t at, Py_ssize_t size) noexcept:
    """Where the word, number or id that begins here ends."""
    cdef int sort = class_at(kind, data, at, size) & IN_NUMBER, its = IN_WORD | sort
    cdef Py_ssize_t end = at, last, number
    cdef bint is_plain = True
    while its & IN_WORD and its & IN_NUMBER == sort:
        is_plain = is_plain and class_at(kind, data, end, size) & IS_ASCII
        end += 1
        its = class_at(kind, data, end, size)
    if sort:
        number = end_of_number(kind, data, end, size, min(end - at, 4))
        if number:
            return number
    if not is_plain:
        return end
    last = end
    while its & IN_WORD and its & IS_ASCII and its & IN_NUMBER != sort:
        last += 1
        its = class_at(kind, data, last, size)
    if last == end or (sort and not (its & IN_WORD and its & IS_ASCII)):
        return end  # what a number counts is apart
    while its & IN_WORD and its & IS_ASCII:
        last += 1
        its = class_at(kind, data, last, size)
    return last


cdef int add_tokens(list line, str text, bint with_spaces) except -1:
    """Adds the words and signs of a text, or all spaces, too."""
    cdef int kind = PyUnicode_KIND(text), its
    cdef const void* data = PyUnicode_DATA(text)
    cdef Py_ssize_t at = 0, end, size = len(text)
    cdef bint is_ascii = PyUnicode_IS_ASCII(text)
    while at < size:
        its = class_of(PyUnicode_READ(kind, data, at))
        end = end_of_id(kind, data, at, size) if its & IN_ID else 0
        if not end:
            end = end_of_word(kind, data, at, size) if its & IN_WORD else at + 1
        if with_spaces or not its & IS_WHITE:
            line.append(
                token_of(<const unsigned char*> data + at, end - at)
                if is_ascii
                else PyUnicode_Substring(text, at, end)
            )
        at = end
    return 0


@cython.final
cdef class Lines:
    """A page that is read to its lines."""

    cdef Markup page
    cdef Octets room
    cdef object values, rules, Line
    cdef frozenset own, items
    cdef tuple quoted
    cdef dict ended_by
    cdef bint marks_like
    cdef Py_ssize_t longest
    cdef list found, line, opened  #: the lines, the one that is read, and the names of open blocks
    #: Of the top and of each open block: its name, its path, its place, its first line, and the blocks in it so far, by name and each.
    cdef list names, paths, places, starts, beside, inside
    cdef list cards  #: blocks that are one line
    cdef int pre  #: how many open blocks keep their spaces

    def __cinit__(self, bytes octets, object values, object rules):
        begin(&self.page, octets, DATA, b"")
        self.page.sections = True
        self.room, self.values, self.rules, self.Line = Octets(), values, rules, rules.Line
        self.own, self.quoted, self.longest = values.own, values.quoted, len(values.quoted[0])
        self.marks_like, self.items, self.ended_by = bool(values.like), rules.ITEMS, rules.ENDED_BY
        self.found, self.line, self.opened = [], [], []
        self.names, self.paths, self.places, self.starts = [""], [""], [""], [0]
        self.beside, self.inside, self.cards = [{}], [[]], []

    def __dealloc__(self):
        free(self.page.attributes)

    cdef list read(self):
        cdef Markup* page = &self.page
        cdef str tag = ""
        cdef int read
        cdef frozenset in_lines = self.rules.IN_LINES, code = self.rules.CODE, void = self.rules.VOID
        while (read := read_event(page)) > 0:
            if page.kind == TEXT:
                text = text_of(page.text, page.written, False, False, self.room)
                add_tokens(self.line, text, self.pre > 0 and tag not in code)
            elif page.kind == DOCTYPE or page.kind == COMMENT:
                if strncmp(<const char*> page.whole.at, b"<!--", 4) != 0:
                    add_tokens(self.line, decode(<const char*> page.whole.at, page.whole.end - page.whole.at), False)
            else:
                tag = name_of(page.text, self.room)
                if tag in in_lines or tag in code:
                    if page.kind == START:
                        self.add_tag(tag)
                    elif tag not in code:
                        self.line.append(framed("</", tag, ""))
                elif not (page.count and (tag == "link" or tag == "meta") and self.says_address(tag)):
                    self.end_line()
                    if page.kind == START:
                        self.begin_block(tag, tag in void)
                    elif tag != "dt":
                        self.end_block(tag)
                    if tag in void:
                        self.end_line()
        if read < 0:
            raise MemoryError
        self.end_line()
        self.close(0)
        self.is_plain(0)
        return self.rules.joined(self.found, self.cards) if self.cards else self.found

    cdef bint says_address(self, str tag) except -1:
        return self.rules.says_address(tag, attributes_of(&self.page, self.room))

    cdef int end_line(self) except -1:
        cdef Py_ssize_t depth = len(self.opened)
        if self.line:
            self.found.append(tuple.__new__(self.Line, (self.paths[depth], tuple(self.line), self.places[depth])))
            self.line = []
        return 0

    cdef int begin_block(self, str tag, bint is_void) except -1:
        cdef Py_ssize_t depth = len(self.opened)
        cdef str name, number
        cdef dict beside
        cdef Py_ssize_t at = depth
        while at and (ended_by := self.ended_by.get(self.opened[at - 1])) is not None:
            at -= 1
            if tag in ended_by:
                self.close(at)
                depth = at
        self.add_tag(tag)
        if is_void or depth == self.rules.MAX_DEPTH:
            return 0
        self.pre += tag == "pre"
        name, beside = self.rules.named(tag, self.class_in()), self.beside[depth]
        number = "" if tag in self.items else str(beside.get(name, 0))
        beside[name] = beside.get(name, 0) + 1
        self.opened.append(tag)
        self.names.append(name)
        self.starts.append(len(self.found))
        self.inside.append([])
        self.paths.append(f"{self.paths[depth]}/{name}" if depth else name)
        self.places.append(f"{self.places[depth]}/{name}{number}" if depth else name + number)
        self.beside.append({})
        return 0

    cdef int end_block(self, str tag) except -1:
        cdef Py_ssize_t at
        for at in range(len(self.opened) - 1, -1, -1):
            if self.opened[at] == tag:
                return self.close(at)
        return 0

    cdef int close(self, Py_ssize_t at) except -1:
        cdef Py_ssize_t depth
        for depth in range(len(self.opened), at, -1):
            run = (self.names.pop(), self.starts.pop(), len(self.found), self.is_plain(depth))
            self.pre -= self.opened.pop() == "pre"
            self.paths.pop()
            self.places.pop()
            self.beside.pop()
            self.inside.pop()
            self.inside[depth - 1].append(run)
        return 0

    cdef bint is_plain(self, Py_ssize_t depth) except -1:
        """Whether no two that may be cards stand beside each other in an open block; notes those in it that are one line."""
        cdef dict beside = self.beside[depth]
        cdef bint is_plain = True
        for run in <list> self.inside[depth]:
            if beside[run[0]] > 1:
                if self.rules.may_be_card(run[0]):
                    is_plain = False
                    if run[3] and run[2] - run[1] > 1:
                        self.cards.append(run)
            if not run[3]:
                is_plain = False
        return is_plain

    cdef str class_in(self):
        """The first class of the element whose tag is the line."""
        cdef Py_ssize_t at, end
        if " class=" not in self.line:
            return ""
        at = end = self.line.index(" class=") + 1
        while end < at + 3 and (<str> self.line[end])[0] not in " <":
            end += 1
        return "".join(self.line[at:end])

    cdef bint is_own(self, str value) except -1:
        """Whether a value may be the page's own address, or quote it, or be one like it."""
        cdef int kind = PyUnicode_KIND(value)
        cdef const void* data = PyUnicode_DATA(value)
        cdef uint32_t code
        cdef Py_ssize_t at, end = len(value)
        for at in range(len(value)):
            code = PyUnicode_READ(kind, data, at)
            if self.marks_like and (code >= 128 or c"0" <= code <= c"9"):
                return True
            if code == c"#" and end == len(value):
                end = at
        if (value if end == len(value) else value[:end]) in self.own:
            return True
        if len(value) > self.longest:
            for quoted in self.quoted:
                if <str> quoted in value:
                    return True
        return False

    cdef int add_tag(self, str tag) except -1:
        cdef Py_ssize_t number
        cdef str name, value
        cdef set met = set() if self.page.count > 1 else None
        self.line.append(framed("<", tag, ""))
        for number in range(self.page.count):
            name = name_of(self.page.attributes[number].name, self.room)
            if met is not None:
                if name in met:
                    continue
                met.add(name)
            self.line.append(framed(" ", name, "="))
            value = text_of(self.page.attributes[number].value, RAWTEXT, True, False, self.room)
            if self.is_own(value):
                self.line.extend(self.values.tokens(value, name))
            else:
                add_tokens(self.line, value, False)
        if self.page.count:
            self.line.append("<>")
        return 0


def lines(bytes octets, object values, object rules):
    """What `dedup.filter.noise.lines.lines_of` gives."""
    return Lines(octets, values, rules).read()
