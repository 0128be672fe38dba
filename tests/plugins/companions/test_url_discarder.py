"""duplicate-url-discarder: what its rules call one URL is fetched once, and what only its content tells is dropped."""

import json

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


def test_both_filters(project: Project) -> None:
    project.site.pages = PAGES
    (project.folder / "rules.json").write_text(json.dumps(RULES))
    project.settings["ADDONS"] |= {"duplicate_url_discarder.Addon": 600}
    project.settings["DUD_LOAD_RULE_PATHS"] = ["rules.json"]
    assert project.paths(project.crawl(DEDUP_ENABLED=False)) == ["/", "/a?sid=1", "/b", "/c"]
    done = project.crawl()
    assert project.paths(done) == ["/", "/a?sid=1", "/c"]
    assert (done.status, done.mishaps) == (0, [])
    assert project.paths(project.crawl()) == ["/", "/a?sid=1", "/c"]
