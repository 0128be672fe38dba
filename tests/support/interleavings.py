"""Every order in which crawlers can carry out a protocol, each state once.

What is carried out are the generators of `dedup.index.redis.cluster.protocol` themselves.  A step is one thing that a
node does at once: it reads a record, or compares and sets it; it files a page in one bucket, and looks into that; it
reads the leases.  Between two steps of a crawler the others take any number of theirs; any may crash.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from dedup.index.redis.cluster.protocol import Do, File, Look, Swap, Unfile, Wait
from dedup.index.redis.cluster.record import Leases, Record

LEASE = 60
Life = Callable[[], Generator[Do, Any, Any]]
Bucket = frozenset[bytes]


class World(NamedTuple):
    """All of it at one moment."""

    doing: tuple[int, ...]  #: how far each crawler has come, by the place of that in `Explorer.known`
    records: tuple[Record | None, ...]
    filed: frozenset[tuple[Bucket, bytes]] = frozenset()
    crashed: frozenset[int] = frozenset()
    expired: frozenset[int] = frozenset()  #: of those, whose leases have ended
    impatience: int = 0  #: how often somebody did not wait


@dataclass(frozen=True, slots=True)
class Doing:
    """How far a crawler has come: what it was told, what it asks for now, and what it has been told of that."""

    number: int
    told: tuple[Any, ...]
    request: Any  # an `Ended` at the end
    left: tuple[Any, ...] = ()
    answers: tuple[Any, ...] = ()
    base: int = -1  # where the state is in which it asked for that


class Ended(NamedTuple):
    """What has become of a crawler's page."""

    value: Any


class Explorer:
    """Goes through every order of steps."""

    def __init__(
        self,
        pages: list[bytes],
        lives: list[tuple[bytes, Life]],
        buckets: set[Bucket],
        *,
        crashes: int = 0,
        impatience: int = 0,
    ) -> None:
        self.pages = pages
        self.lives = lives
        self.buckets = buckets
        self.crashes = crashes
        self.impatience = impatience
        self.known: list[Doing] = []
        self._places: dict[Any, int] = {}
        self._told: dict[tuple[int, Any], int] = {}

    def explore(self, check: Callable[[World, list[Any]], None]) -> int:
        """Calls ``check`` with each state in which nobody can go on, and what each crawler has said; counts states."""
        doing = tuple(self._doing(number, ()) for number in range(len(self.lives)))
        first = World(doing, (None,) * len(self.pages))
        seen, waiting = {first}, [first]
        while waiting:
            world = waiting.pop()
            following = list(self._moves(world))
            if not following:
                said = [self.known[place].request for place in world.doing]
                for number, one in enumerate(said):
                    assert number in world.crashed or isinstance(one, Ended), "a crawler waits for ever"
                check(world, said)
            for then in following:
                if then not in seen:
                    seen.add(then)
                    waiting.append(then)
        return len(seen)

    # --- How far a crawler has come

    def _doing(self, number: int, told: tuple[Any, ...]) -> int:
        """The state after all that it was told: two are the same if all that its code remembers is the same."""
        todo = self.lives[number][1]()
        try:
            request: Any = next(todo)
            for answer in told:
                request = todo.send(answer)
            frames = _frames(todo)
        except StopIteration as end:
            request, frames = Ended(end.value), repr(end.value)
        return self._place((number, frames), Doing(number, told, request, self._steps(request)))

    def _place(self, key: Any, doing: Doing) -> int:
        if key not in self._places:
            self._places[key] = len(self.known)
            self.known.append(doing)
        return self._places[key]

    def _steps(self, request: Any) -> tuple[Any, ...]:
        """What a request consists of."""
        match request:
            case Look(pages):
                return (*pages, "leases") if self.crashes else pages
            case File(entry) | Unfile(entry, _):
                return tuple(
                    sorted((b for b in self.buckets if entry.page_id.encode() in b), key=sorted)
                ) or (None,)
            case _:
                return (None,)

    def _tell(self, place: int, step: Any, answer: Any) -> int:
        """The state of a crawler that is told of a step."""
        if (place, (step, answer)) in self._told:
            return self._told[place, (step, answer)]
        doing = self.known[place]
        left = tuple(other for other in doing.left if other != step)
        answers = (*doing.answers, answer)
        if left:
            answers = tuple(sorted(answers, key=repr))
            base = place if doing.base < 0 else doing.base
            told = Doing(doing.number, doing.told, doing.request, left, answers, base)
            after = self._place((base, left, answers), told)
        else:
            after = self._doing(doing.number, (*doing.told, self._answer(doing, answers)))
        self._told[place, (step, answer)] = after
        return after

    def _answer(self, doing: Doing, answers: tuple[Any, ...]) -> Any:
        match doing.request:
            case Look():
                leases = [answer for answer in answers if isinstance(answer, Leases)]
                records = dict(answer for answer in answers if not isinstance(answer, Leases))
                return records, leases[0] if leases else self._leases(doing.number, frozenset())
            case File():
                return tuple(sorted({other for answer in answers for other in answer or ()}))
            case Unfile():
                return None
            case _:
                return answers[0]

    def _leases(self, number: int, expired: frozenset[int]) -> Leases:
        ends = Ends({run(other): LEASE for other in range(len(self.lives)) if other not in expired})
        return Leases(run(number), 0, 0, 0, LEASE, ends)

    # --- The steps

    def _moves(self, world: World) -> Iterator[World]:
        for number, place in enumerate(world.doing):
            doing = self.known[place]
            if number in world.crashed:
                if number not in world.expired:
                    yield world._replace(expired=world.expired | {number})
                continue
            if isinstance(doing.request, Ended):
                continue
            if len(world.crashed) < self.crashes:
                yield world._replace(crashed=world.crashed | {number})
            for step in doing.left:
                if step != "leases" or len(doing.left) == 1:  # they are read last
                    yield from self._step(world, number, place, doing, step)

    def _step(self, world: World, number: int, place: int, doing: Doing, step: Any) -> Iterator[World]:
        answer: Any = None
        match doing.request:
            case Look():
                answer = (
                    self._leases(number, world.expired)
                    if step == "leases"
                    else (step, world.records[self.pages.index(step)])
                )
            case Swap(changed, expected, new):
                at = self.pages.index(changed)
                there = world.records[at]
                if (there and there.head) == (expected and expected.head) or (
                    there and new and there.head == new.head
                ):
                    world = world._replace(records=(*world.records[:at], new, *world.records[at + 1 :]))
                else:
                    answer = (there,)
            case File(entry):
                page = entry.page_id.encode()
                if step:
                    world = world._replace(filed=world.filed | {(step, page)})
                    answer = tuple(
                        sorted(other for bucket, other in world.filed if bucket == step and other != page)
                    )
            case Unfile(entry, other):
                if other is None:  # else its other content is in the same buckets
                    world = world._replace(filed=world.filed - {(step, entry.page_id.encode())})
            case Wait():
                if world.impatience < self.impatience:
                    yield self._with(world, number, self._tell(place, step, False))._replace(
                        impatience=world.impatience + 1
                    )
                if self._waits_in_vain(world, doing):
                    return
                answer = True
        yield self._with(world, number, self._tell(place, step, answer))

    def _with(self, world: World, number: int, place: int) -> World:
        return world._replace(doing=(*world.doing[:number], place, *world.doing[number + 1 :]))

    def _waits_in_vain(self, world: World, doing: Doing) -> bool:
        """Whether it would be told once more what it was told last: it goes on when that has changed."""
        records, leases = next(
            told
            for told in reversed(doing.told)
            if isinstance(told, tuple) and told and isinstance(told[0], dict)
        )
        now = {page: world.records[self.pages.index(page)] for page in records}
        return bool(
            records == now and (not self.crashes or leases == self._leases(doing.number, world.expired))
        )


class Ends(dict[str, float]):
    """Leases, by runs; never changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self))


def run(number: int) -> str:
    """The name of a crawler's run."""
    return f"{number:032x}"


def _frames(todo: Any) -> str:
    """All that a generator remembers, and those that it waits for: where they are, and the values of their names."""
    found = []
    while todo is not None and hasattr(todo, "gi_frame"):
        names = todo.gi_frame.f_locals.items()
        found.append(
            (
                todo.gi_code.co_name,
                todo.gi_frame.f_lasti,
                sorted((n, repr(v)) for n, v in names if not callable(v)),
            )
        )
        todo = todo.gi_yieldfrom
    return repr(found)
