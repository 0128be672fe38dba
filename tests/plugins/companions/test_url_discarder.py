"""duplicate-url-discarder: what its rules call one URL is fetched once, and what only its content tells is dropped."""

import json
from pathlib import Path

from dedup.links.rules import Rule, url_discarder
from tests.support.crawls import page
from tests.support.projects import Project

RULES = [{"args": ["sid"], "order": 1, "processor": "queryRemoval", "urlPattern": {"include": []}}]
PAGES = {
    "/": page("home", "/a?sid=1", "/a?sid=2", "/b", "/c"),
    "/a?sid=1": page("story"),
    "/a?sid=2": page("story"),
    "/b": page("story", more="b"),
    "/c": page("another"),
}


def test_both_do_their_part(project: Project) -> None:
    project.site.pages = PAGES
    (project.folder / "rules.json").write_text(json.dumps(RULES))
    project.settings["ADDONS"] |= {"duplicate_url_discarder.Addon": 600}
    project.settings["DUD_LOAD_RULE_PATHS"] = ["rules.json"]
    assert project.paths(project.crawl(DEDUP_ENABLED=False)) == ["/", "/a?sid=1", "/b", "/c"]
    done = project.crawl()
    assert project.paths(done) == ["/", "/a?sid=1", "/c"]
    assert (done.status, done.mishaps) == (0, [])
    assert project.paths(project.crawl()) == ["/", "/a?sid=1", "/c"]


def test_the_rules_that_were_learnt_are_taken_and_hold_for_their_hosts_alone(tmp_path: Path) -> None:
    from duplicate_url_discarder.url_canonicalizer import UrlCanonicalizer

    where = [("a.org", "sid"), ("b.a.org", "tok"), ("127.0.0.1:8080", "s[]"), ("[::1]:81", "sid")]
    learnt = [Rule("parameter", host, name, 40, 0, 39, 0.09) for host, name in where]
    (tmp_path / "rules.json").write_text(json.dumps(url_discarder(learnt)))
    plain = UrlCanonicalizer([str(tmp_path / "rules.json")]).process_url
    assert plain("https://a.org/list/page?sid=1&p=2") == "https://a.org/list/page?p=2"
    assert plain("http://b.a.org/?tok=1&p=2") == "http://b.a.org/?p=2"
    assert plain("http://127.0.0.1:8080/x?s[]=1&s[]=2&p=2") == "http://127.0.0.1:8080/x?p=2"
    assert plain("http://[::1]:81/?sid=1&p=2") == "http://[::1]:81/?p=2"
    for other in (
        "http://b.a.org/?sid=1",
        "http://a.org/?tok=1",
        "http://127.0.0.1/?s[]=1",
        "http://c.org/?sid=1",
    ):
        assert plain(other) == other
