"""Crawls in any order of events, crashes among them: every store gives the verdicts of the model."""

import asyncio
import shutil
import tempfile
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import redis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index import Entry, Index, Verdict, open_index
from dedup.index.survey import Finding
from tests.support import slow
from tests.support.fingerprints import ALL_BITS, fingerprint_of
from tests.support.model import Model
from tests.support.stores import DETECTOR


def content(fingerprint: Fingerprint) -> tuple[int, bytes]:
    return fingerprint.digest, fingerprint.sketch


@dataclass
class Crashing(Model):
    """The contract, run after run.  What earlier runs have done is there, but shadows nothing until it is met."""

    earlier: dict[str, tuple[str, Fingerprint]] = field(default_factory=dict)
    dead: dict[str, tuple[str, Fingerprint]] = field(default_factory=dict)  # pending when its run died
    met: set[str] = field(default_factory=set)  # pages of earlier runs that are pending once more
    replaceable: dict[str, set[str]] = field(
        default_factory=dict
    )  # earlier pages like a page that is pending

    def claim(self, page_id: str, url: str, fingerprint: Fingerprint) -> Verdict:
        if page_id in self.kept:
            return Verdict("same")
        if matches := self.matches(url, fingerprint):
            return matches[0]
        for status, pages in (("same", self.earlier), ("new", self.dead)):
            filed = pages.pop(page_id, None)
            if filed and content(filed[1]) == content(fingerprint):
                self.kept[page_id] = filed
                if pages is self.earlier:
                    self.met.add(page_id)
                return Verdict(status)
        earlier = Model(self.detector, kept=self.earlier)
        like = {match.of for match in earlier.matches(url, fingerprint)}
        self.replaceable[page_id] = {name for name, (url, _) in self.earlier.items() if url in like}
        self.kept[page_id] = url, fingerprint
        return Verdict("new")

    def confirm(self, page_id: str) -> None:
        super().confirm(page_id)
        self.met.discard(page_id)

    def release(self, page_id: str) -> None:
        if page_id in self.met:
            self.met.discard(page_id)
            self.earlier[page_id] = self.kept[page_id]
        self.replaceable.pop(page_id, None)
        super().release(page_id)

    def annul(self, page_id: str) -> bool:
        if page_id in self.kept.keys() - self.done:
            self.release(page_id)
            return True
        return self.dead.pop(page_id, None) is not None

    def reopen(self, *, forget_all: bool = False) -> None:
        for page_id in list(self.kept.keys() - self.done):
            self.release(page_id)
        self.earlier = {} if forget_all else self.earlier | self.kept
        self.kept = {}
        self.done.clear()
        self.replaceable.clear()

    def add(self, page_id: str, url: str, fingerprint: Fingerprint) -> None:
        if page_id not in self.filed:
            self.earlier[page_id] = url, fingerprint

    def forget(self, page_id: str) -> None:
        for pages in (self.kept, self.earlier, self.dead):
            pages.pop(page_id, None)
        for names in (self.done, self.met):
            names.discard(page_id)

    def crash(self, found: dict[str, tuple[str, str, Fingerprint]]) -> None:
        """What was confirmed may have been written, or not yet; and what was taken out, too."""
        assert self.earlier.keys() <= found.keys(), "what earlier runs have done is lost"
        for page_id, (state, url, fingerprint) in found.items():
            pending = page_id in self.kept.keys() - self.done - self.met
            assert not (
                pending and state == "earlier" and content(fingerprint) == content(self.kept[page_id][1])
            )
            self.forget(page_id)
            pages = {"earlier": self.earlier, "dead": self.dead}[state]
            pages[page_id] = url, fingerprint
        for page_id in self.filed.keys() - found.keys():
            self.forget(page_id)
        self.replaceable.clear()

    @property
    def filed(self) -> dict[str, tuple[str, Fingerprint]]:
        """All that can be found."""
        return self.kept | self.earlier | self.dead

    def state(self, page_id: str) -> str | None:
        if page_id not in self.kept:
            return None
        return "done" if page_id in self.done else "pending"


class Crawls(RuleBasedStateMachine):
    """Crawls against the model.  A subclass says where the index is."""

    store: str
    redis_socket: Path | None
    steps: int

    @initialize()
    def start(self) -> None:
        self.runner = asyncio.Runner()
        self.folder = tempfile.mkdtemp(prefix="shingleback-")
        self.namespace = f"test-{uuid.uuid4().hex[:12]}"
        self.model = Crashing(DETECTOR)
        self.pages = [fingerprint_of(0)]
        self.page_ids: list[str] = []
        self.dead: list[Index] = []
        self.open()

    def open(self) -> None:
        self.index = self.opened()
        type(self).steps += 1

    def opened(self) -> Index:
        path = Path(self.folder, str(len(self.dead)), "index.sqlite")
        address = {"memory": "memory:", "file": f"file:{path}", "redis": f"unix://{self.redis_socket}"}
        return open_index(address[self.store], DETECTOR, namespace=self.namespace, expected_pages=100)

    def claim(self, page_id: str, fingerprint: Fingerprint) -> None:
        url = f"http://example.org/{page_id}/{len(self.pages)}"
        matches = self.model.matches(url, fingerprint)
        right = self.model.claim(page_id, url, fingerprint)
        verdict = self.runner.run(self.index.claim(page_id, url, fingerprint))
        if right.status == "duplicate":  # reopening may change which of two equally near ones is earlier
            ties = [match for match in matches if match.distance == right.distance]
            assert verdict in [match for match in ties if match.resemblance == right.resemblance]
        else:
            assert verdict == right
        self.pages.append(fingerprint)
        self.page_ids.append(page_id)
        type(self).steps += 1

    @rule(simhash=st.integers(0, ALL_BITS), changed=st.sampled_from([0, 50, 110]))
    def claim_an_unrelated_page(self, simhash: int, changed: int) -> None:
        self.claim(f"page {len(self.pages)}", fingerprint_of(simhash, changed))

    @rule(data=st.data(), bits=st.sets(st.integers(0, 63), max_size=5), changed=st.sampled_from([0, 50, 110]))
    def claim_a_page_near_an_earlier_one(self, data: st.DataObject, bits: set[int], changed: int) -> None:
        near = data.draw(st.sampled_from(self.pages)).simhash ^ sum(1 << bit for bit in bits)
        self.claim(f"page {len(self.pages)}", fingerprint_of(near, changed))

    @precondition(lambda self: self.page_ids)
    @rule(data=st.data())
    def claim_a_twin_of_an_earlier_one(self, data: st.DataObject) -> None:
        self.claim(f"page {len(self.pages)}", data.draw(st.sampled_from(self.pages)))

    @precondition(lambda self: self.page_ids)
    @rule(data=st.data())
    def claim_an_earlier_page_again(self, data: st.DataObject) -> None:
        content = data.draw(st.sampled_from(self.pages))
        self.claim(data.draw(st.sampled_from(self.page_ids[-4:])), content)

    @precondition(lambda self: self.page_ids)
    @rule(data=st.data())
    def confirm(self, data: st.DataObject) -> None:
        page_id = data.draw(st.sampled_from(self.page_ids[-4:]))
        self.model.confirm(page_id)
        self.runner.run(self.index.confirm(page_id))
        if like := self.model.replaceable.pop(page_id, set()) & self.model.earlier.keys():
            self.runner.run(self.index._confirmations.flush())  # type: ignore[attr-defined]
            replaced = {name for name in like if self.runner.run(self.index.find(name)) is None}
            assert len(replaced) <= 1
            for name in replaced:
                self.model.forget(name)
        type(self).steps += 1

    @precondition(lambda self: self.page_ids)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        page_id = data.draw(st.sampled_from(self.page_ids[-4:]))
        self.model.release(page_id)
        self.runner.run(self.index.release(page_id))
        type(self).steps += 1

    @precondition(lambda self: self.page_ids)
    @rule(data=st.data())
    def annul(self, data: st.DataObject) -> None:
        """Another run takes a claim back; what this one says of it later is not heard."""
        page_id = data.draw(st.sampled_from(self.page_ids[-4:]))
        assert self.runner.run(self.annul_elsewhere(page_id)) == self.model.annul(page_id)
        type(self).steps += 1

    async def annul_elsewhere(self, page_id: str) -> bool:
        await self.index._confirmations.flush()  # type: ignore[attr-defined]
        if self.store == "memory":  # which has one run
            return await self.index.annul(page_id)
        async with self.opened() as other:
            return await other.annul(page_id)

    @precondition(lambda self: self.page_ids)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        page_ids = data.draw(st.lists(st.sampled_from(self.page_ids), max_size=3))
        there = len(self.model.filed.keys() & set(page_ids))
        for page_id in page_ids:
            self.model.forget(page_id)
        assert self.runner.run(self.index.forget(page_ids)) == there
        type(self).steps += 1

    @rule(data=st.data(), old=st.booleans())
    def add_a_page_like_an_earlier_one(self, data: st.DataObject, old: bool) -> None:
        content = data.draw(st.sampled_from(self.pages))
        page_id = (
            data.draw(st.sampled_from(self.page_ids)) if old and self.page_ids else f"added {len(self.pages)}"
        )
        url = f"http://example.org/{page_id}/{len(self.pages)}"
        keys = (content.simhash, 0, content.digest, content.bands)
        entry = Entry(page_id, url, *keys, content.sketch, 1_800_000_000, "0f" * 16)
        new = page_id not in self.model.filed
        self.model.add(page_id, url, content)
        assert self.runner.run(self.index.add([entry])) == new
        self.pages.append(content)
        self.page_ids.append(page_id)
        type(self).steps += 1

    @rule()
    def close_and_reopen(self) -> None:
        self.model.reopen(forget_all=self.store == "memory")
        self.runner.run(self.index.close())
        self.open()

    @rule()
    def crash(self) -> None:
        """The process is gone; a minute later there is another."""
        self.runner.run(self.cancel_all())
        self.dead.append(self.index)
        before, after = (Path(self.folder, str(len(self.dead) - late)) for late in (1, 0))
        if self.store == "file" and before.exists():  # copied, as the dead one still holds the file
            shutil.copytree(before, after, ignore=shutil.ignore_patterns("*.lock"))
        if self.store == "redis":
            with redis.Redis(unix_socket_path=str(self.redis_socket)) as client:
                client.zadd(f"shingleback:{{{self.namespace}}}:runs", {self.dead[-1].run: 1}, xx=True)
        self.open()
        found = {}
        for page_id in dict.fromkeys(self.page_ids):
            if entry := self.runner.run(self.index.find(page_id)):
                (state,) = self.runner.run(self.index.states([page_id]))
                fingerprint = replace(fingerprint_of(entry.simhash), sketch=entry.sketch, digest=entry.digest)
                found[page_id] = state.value, entry.url, fingerprint
        if self.store == "memory":
            self.model.earlier.clear()
        self.model.crash(found)

    @staticmethod
    async def cancel_all() -> None:
        """No task lives on."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @rule()
    def count(self) -> None:
        assert self.runner.run(self.index.count()) == len(self.model.filed)
        type(self).steps += 1

    @precondition(lambda self: self.page_ids)
    @rule(data=st.data())
    def find(self, data: st.DataObject) -> None:
        page_id = data.draw(st.sampled_from(self.page_ids))
        entry = self.runner.run(self.index.find(page_id))
        if filed := self.model.filed.get(page_id):
            url, content = filed
            assert entry is not None
            assert (entry.url, entry.simhash, entry.sketch) == (url, content.simhash, content.sketch)
        else:
            assert entry is None
        type(self).steps += 1

    async def check(self) -> list[Finding]:
        """Which invariants don't hold."""
        self.open()
        survey = await self.index.survey()
        findings = [finding async for finding in survey.findings()] if survey else []
        if survey:
            await survey.close()
        await self.index.close()
        return findings

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            for index in (self.index, *self.dead):
                self.runner.run(index.close())
            assert self.store == "memory" or self.runner.run(self.check()) == []
            self.runner.close()
            shutil.rmtree(self.folder)


@pytest.mark.parametrize("store", ["file", "redis"])
def test_a_page_that_a_run_had_met_again_when_it_died_is_an_earlier_one_which_nobody_can_annul(
    store: str, request: pytest.FixtureRequest
) -> None:
    socket = request.getfixturevalue("redis_socket") if store == "redis" else None
    crawls = type("Crawls", (Crawls,), {"store": store, "redis_socket": socket, "steps": 0})()
    crawls.start()
    page = crawls.pages[0]
    crawls.claim("page", page)
    crawls.model.confirm("page")
    crawls.runner.run(crawls.index.confirm("page"))
    crawls.close_and_reopen()
    crawls.claim("page", page)
    crawls.crash()
    assert not crawls.runner.run(crawls.annul_elsewhere("page"))
    assert "page" in crawls.model.earlier
    crawls.teardown()


@pytest.mark.parametrize("store", [slow("memory"), "file", "redis"])
@pytest.mark.parametrize(("examples", "steps"), [(8, 25), slow(480, 50)], ids=str)
def test_any_order_of_events_gives_the_verdicts_of_the_model(
    store: str, examples: int, steps: int, request: pytest.FixtureRequest
) -> None:
    socket = request.getfixturevalue("redis_socket") if store == "redis" else None
    machine = type("Crawls", (Crawls,), {"store": store, "redis_socket": socket, "steps": 0})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            suppress_health_check=[HealthCheck.too_slow],  # the machine may be busy
        ),
    )
    print(f"\n{store}: {machine.steps} steps")
