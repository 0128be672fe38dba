"""scrapy-deltafetch and scrapy-splash, which do not run on the newest Scrapy."""

from shutil import rmtree

from tests.plugins.companions.test_scrapy_poet import PAGES
from tests.support.projects import Project

DELTAFETCH = {"SPIDER_MIDDLEWARES": {"scrapy_deltafetch.DeltaFetch": 100}, "DELTAFETCH_ENABLED": True}
#: As its README has it; there is no Splash, and no request asks for it.
SPLASH = {
    "DOWNLOADER_MIDDLEWARES": {
        "scrapy_splash.SplashCookiesMiddleware": 723,
        "scrapy_splash.SplashMiddleware": 725,
        "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware": 810,
    },
    "SPIDER_MIDDLEWARES": {"scrapy_splash.SplashDeduplicateArgsMiddleware": 100},
    "REQUEST_FINGERPRINTER_CLASS": "scrapy_splash.SplashRequestFingerprinter",
}
#: It begins as these packages need it, and makes no item of the first page, so that deltafetch fetches that one again.
SPIDER = """
    import scrapy

    class Walker(scrapy.Spider):
        name = "walker"

        def start_requests(self):
            yield scrapy.Request(self.url)

        def parse(self, response):
            if response.css("a"):
                yield from response.follow_all(css="a")
            else:
                yield {"url": response.url}
"""


def test_deltafetch(project: Project) -> None:
    project.site.pages = dict(PAGES)
    project.write("spiders", SPIDER)
    project.settings |= DELTAFETCH
    for wanted in (["/a", "/b", "/c"], []):
        assert project.paths(project.crawl(DEDUP_ENABLED=False)) == wanted
    rmtree(project.folder / ".scrapy" / "deltafetch")
    for wanted in (["/a", "/c"], ["/b"], []):  # in the second crawl it is not known that /a is still there
        done = project.crawl()
        assert (project.paths(done), done.mishaps) == (wanted, [])


def test_splash(project: Project) -> None:
    project.site.pages = PAGES
    project.write("spiders", SPIDER)
    project.settings |= SPLASH
    assert project.paths(project.crawl(DEDUP_ENABLED=False)) == ["/a", "/b", "/c"]
    done = project.crawl()
    assert (project.paths(done), done.mishaps) == (["/a", "/c"], [])
