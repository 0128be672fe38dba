"""Pages added and forgotten in bulk, as `scrapy index import` and `forget` do."""

from msgspec.structs import replace

from dedup.index import Verdict
from tests.support.coroutines import driven
from tests.support.fingerprints import fingerprint_of
from tests.support.stores import opened_at
from tests.support.surveys import claim_of, entry


@driven
async def test_added_pages_are_done_as_if_they_had_been_claimed(address: str, namespace: str) -> None:
    entries = [entry(number) for number in range(80)]
    async with opened_at(address, namespace=namespace) as index:
        await index.claim("own", "http://own/", fingerprint_of(0))
        assert await index.add(entries[:50]) == 50
        assert await index.add(entries) == 30
        assert await index.add([entry(0, page_id="own"), entry(1)]) == 0
        assert await index.add([]) == 0
        assert await index.count() == 81
        for filed in entries[::4]:
            assert await index.find(filed.page_id) == filed
            page_id, url, fingerprint = claim_of(filed)
            assert await index.claim(page_id, url, fingerprint) == Verdict("same")
            assert await index.states([page_id]) == ["reclaimed"], "added pages are those of an earlier run"
            verdict = await index.claim(f"twin of {page_id}", "http://twin/", fingerprint)
            assert (verdict.status, verdict.of, verdict.rule) == ("duplicate", url, "exact")
            near = replace(fingerprint, simhash=filed.simhash ^ 0b111, digest=0)
            assert (await index.claim(f"near {page_id}", "http://near/", near)).of == url
        await index.release("id 0")  # it is again what it was
        assert await index.find("id 0") is not None


@driven
async def test_of_pages_added_together_with_one_id_the_first_is_filed(address: str, namespace: str) -> None:
    async with opened_at(address, namespace=namespace) as index:
        assert await index.add([entry(1), entry(2, page_id="id 1"), entry(3)]) == 2
        assert await index.find("id 1") == entry(1)


@driven
async def test_a_page_filed_again_is_what_it_is_now(address: str, namespace: str) -> None:
    async with opened_at(address, namespace=namespace) as index:
        await index.add([entry(1), entry(2)])
        await index.forget(["id 2"])
        await index.add([entry(3, page_id="id 2")])
        for filed in (entry(1), entry(3, page_id="id 2")):
            assert (await index.claim(*claim_of(filed))).status == "same"
        assert (await index.claim("a", "http://a/", claim_of(entry(2))[2])).status == "new"
        assert (await index.claim("b", "http://b/", claim_of(entry(3))[2])).of == entry(3).url
        assert (await index.claim("c", "http://c/", claim_of(entry(1))[2])).of == entry(1).url
