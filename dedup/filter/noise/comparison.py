"""What differs between a page and a kept one: noise, or content; or one of the two has to be fetched again to tell.

Before a page is dropped for what others have shown, it is asked itself: the first is, and one whenever there are four times
as many.  If it stays as it is, that was content, what was dropped since is fetched again, and from then on each page has to
change itself.  So has any page with a line that nobody has seen come or go, where it stands among others that do: unless
its address means the same page.  Numbers that the kept page shows by now need not change: a clock stands still meanwhile.
"""

from collections import Counter
from collections.abc import Callable, Sequence

from dedup.filter.noise.answers import said_in
from dedup.filter.noise.gaps import SEVERAL, Gaps
from dedup.filter.noise.kept import KeptPages, Shown, share_name
from dedup.filter.noise.kinds import ENOUGH, Kind, has_own
from dedup.filter.noise.known import Known
from dedup.filter.noise.left import Own, as_on, changed_of, least_of, left_of, steady_of
from dedup.filter.noise.lines import Line, at_one
from dedup.filter.noise.reasons import BARE, NOISE, OTHER, STAYED, UNASKED, told
from dedup.filter.noise.tokens import may_link
from dedup.fingerprint.evidence import LEAST_PROBED, Evidence
from dedup.page.ids import have_one_address


class Comparison:
    """Compares the pages of one crawl."""

    def __init__(self, kept: KeptPages, known: Known, undo: Callable[[str, str], None]) -> None:
        """``undo`` is told of a kept page for which pages were dropped, and why these drops are not right."""
        self._kept = kept
        self._known = known
        self._undo = undo

    def step(self, here: Shown, kept: Shown, *, near: bool) -> Shown | str:
        """Returns why a page is no copy of a kept one, "" if it is; or which of the two has to be fetched again before that can be told."""
        a, b = self._kept.read(kept), here.read()
        if not a:
            return kept if self.may_ask(kept) else UNASKED
        step = self._compare(here, kept, a, b, near=near)
        a, b = kept.read_nameless(), here.read_nameless()
        if step != NOISE and a and b:  # of pages in a row, the name is no content
            nameless = self._compare(here, kept, a, b, near=near)
            return nameless if isinstance(step, str) or nameless == NOISE else step
        return step

    def _compare(
        self, here: Shown, kept: Shown, a: Sequence[Line], b: Sequence[Line], *, near: bool
    ) -> Shown | str:
        """Returns the same, given the lines of both."""
        is_linked = may_link(kept.markup, here.url) or may_link(here.markup, kept.url)

        def are_one(its: Sequence[Line], own: Sequence[Line]) -> bool:
            return its == own or (is_linked and at_one(its, here.url, own) == at_one(own, kept.url, its))

        if are_one(a, b):
            return NOISE
        kinds = self._known.of_both(kept.url, here.url)
        kind = kinds[0]
        gaps = [kind.gaps for kind in kinds]
        least = least_of(b, *gaps)
        owns_any = a is kept.nameless or has_own(least, *kinds)
        address, its_changes, changes = kept.address, kept.own or Own(), here.own or Own()
        its_own = changed_of(a, address, its_changes, *gaps)
        own = changed_of(b, address, changes, *gaps)
        is_one = have_one_address(kept.url, here.url)
        if owns_any is False and not is_one:
            return BARE
        is_own = is_one or owns_any or share_name(kept.url, here.url)  # what else, is not known yet
        # Each has changed there itself, as a check would show.
        if (here.own or kept.own) and are_one(its_own, own):
            return NOISE if is_own else BARE
        if owns_any and (is_one or all(kind.is_trusted for kind in kinds)):
            mean_one = self._mean_one(here, kept)
            its = left_of(a, address, its_changes, *gaps, mean_one=mean_one)
            rest = left_of(b, address, changes, *gaps, mean_one=mean_one)
            if are_one(its, rest):
                if is_one:
                    return NOISE
                if (kind.is_due or here.asked) and not (
                    are_one(its, own)
                    or are_one(its, steady_of(b, address, changes, *gaps))
                    or self._agree_now(kept, here, are_one, *gaps)
                ):
                    if here.asked in {1, ENOUGH} and kept.seen < here.seen and not kept.is_gone:
                        return kept  # its clock may have gone on meanwhile
                    return self._check(here, None if kept.is_gone else kind)
                kind.drops += 1
                kind.dropped[kept.page_id] = None
                return NOISE
            its_own, own = its, rest
        its, rest = (least_of(lines, *gaps, some=True) for lines in (a, b))
        if not are_one(its, rest):
            if not (near or is_one):
                return OTHER
            if kept.asked:
                return told(its, rest, "stayed when it was fetched again")
            if not ((is_one or self._known.may_learn(kept.url)) and are_like(a, b)):
                return told(its, rest, "were not seen to change")
            return kept if self.may_ask(kept) else UNASKED
        if a is not kept.nameless and is_own and self._agree_now(kept, here, are_one):
            return NOISE
        its_more, more = Counter(its_own) - Counter(own), Counter(own) - Counter(its_own)
        asked = self._next(kept, here, [kept] * bool(its_more) + [here] * bool(more))
        if self.may_ask(asked):
            return asked
        has_stayed = asked.asked >= ENOUGH and not asked.is_gone
        return told(a, b, "stayed when both were fetched again") if has_stayed else UNASKED

    def _agree_now(self, kept: Shown, here: Shown, are_one: Callable[..., bool], *gaps: Gaps) -> bool:
        """Whether a page differs from the last answer of a kept one only where it has changed itself: a clock may stand still."""
        if not kept.last:
            return False
        its_changes, changes = kept.own or Own(), here.own or Own()
        moved = Own(moved=its_changes.moved | changes.moved)

        def left(*lines: Line) -> list[Line]:
            return left_of(lines, kept.address, its_changes, *gaps)

        last = self._kept.read_last(kept)
        now = as_on(here.read_last(), changes, last, left, words=have_one_address(kept.url, here.url))
        return are_one(*(left_of(lines, kept.address, moved) for lines in (left(*last), now)))

    @staticmethod
    def _next(kept: Shown, here: Shown, stays: Sequence[Shown]) -> Shown:
        """Returns which of two pages is fetched again: one that stays; once it did twice, the one that was seen longer ago."""
        return min(
            (kept, here),
            key=lambda page: (
                page.is_gone or page.asked >= ENOUGH,
                page.asked >= SEVERAL or page not in stays,
                page.seen,
            ),
        )

    def _mean_one(self, here: Shown, kept: Shown) -> bool:
        """Whether the addresses of two pages mean one, by what is said of parameters, or was seen on others."""
        return have_one_address(here.url, kept.url) or self._known.addresses.may_mean_one(kept.url, here.url)

    def _check(self, page: Shown, kind: Kind | None = None) -> Shown | str:
        """Returns a page that would be dropped, or for which one would be, if it can be asked itself whether it changes.

        If it has not, its ``kind`` is not trusted any more.
        """
        if page.own is not None and page.asked >= ENOUGH and not page.is_gone:
            if kind is not None:
                self._distrust(kind)
            return STAYED
        return page if self.may_ask(page) else UNASKED

    @staticmethod
    def may_ask(page: Shown) -> bool:
        """Returns whether one more answer of a page may tell more."""
        return page.asked < ENOUGH and not page.is_gone

    def _distrust(self, kind: Kind) -> None:
        """A page stayed as it is where others of its kind change: that is content, and what was dropped by it is fetched again."""
        kind.is_trusted = False
        for page_id in kind.dropped:
            self._undo(page_id, "what differs between them does not change on pages like these")
        kind.dropped.clear()

    def noise(self, here: Shown, of: Shown) -> str:
        """Returns the words of a page that are noise."""
        least = least_of(here.read(), self._known.kind(here.url).gaps)
        lines, left = Counter(here.read()), Counter(left_of(least, of.address, here.own or Own()))
        stay = Counter(token for line in (left - lines).elements() for token in said_in(line.tokens))
        gone = list[str]()
        for token in (token for line in (lines - left).elements() for token in said_in(line.tokens)):
            if stay[token] > 0:
                stay[token] -= 1
            else:
                gone.append(token)
        return " ".join(gone)


def is_near(here: Shown, kept: Shown, evidence: Evidence | None) -> bool:
    """Returns whether two pages have the same tokens, or most of what is their own in common."""
    return kept.digest == here.digest or (evidence is not None and evidence.share >= LEAST_PROBED)


def are_like(a: Sequence[Line], b: Sequence[Line]) -> bool:
    """Returns whether most lines of two pages are the same, so that they are of one template."""
    return 2 * len({*a} & {*b}) >= max(len({*a}), len({*b}))
