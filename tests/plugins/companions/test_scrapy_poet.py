"""scrapy-poet: page objects are built as without the filter, or, if the project puts it before them, for kept pages only."""

import pytest

from tests.support.crawls import page
from tests.support.projects import Project

SPIDER = """
    import scrapy
    from web_poet import HttpResponse, WebPage

    class Story(WebPage):
        def __init__(self, response: HttpResponse):
            super().__init__(response)
            with open("built.txt", "a") as file:
                file.write(f"{response.url}\\n")

    class Walker(scrapy.Spider):
        name = "walker"

        async def start(self):
            yield scrapy.Request(self.url)

        def parse(self, response, page: Story):
            yield {"url": str(page.url), "title": page.css("title::text").get()}
            yield from response.follow_all(css="a")
"""
PAGES = {
    "/": page("home", "/a", "/b", "/c"),
    "/a": page("story"),
    "/b": page("story", more="b"),
    "/c": page("another"),
}


@pytest.mark.parametrize("order", [0, 545])
def test_page_objects(project: Project, order: int) -> None:
    project.site.pages = PAGES
    project.write("spiders", SPIDER)
    project.settings["ADDONS"] |= {"scrapy_poet.Addon": 300}
    if order:
        where = {"dedup.scrapy.middleware.NearDuplicateMiddleware": order}
        project.settings["DOWNLOADER_MIDDLEWARES"] = where
    built = project.folder / "built.txt"
    without = project.crawl(DEDUP_ENABLED=False)
    assert project.paths(without) == ["/", "/a", "/b", "/c"]
    built.unlink()
    done = project.crawl()
    assert project.paths(done) == ["/", "/a", "/c"]
    assert done.items == [item for item in without.items if not item["url"].endswith("/b")]
    assert (done.stats["dedup/dropped"], done.mishaps) == (1, [])
    assert len(built.read_text().splitlines()) == (3 if order else 4)
