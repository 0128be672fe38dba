"""Spiders of feeds, interfaces and forms: XML, CSV, JSON, POST, a login."""

import json
from collections.abc import Iterator
from typing import Any

import scrapy
from scrapy.http import JsonRequest

from tests.support.foreign.shops import price
from tests.support.foreign.site import Asked, Reply, Site, shell
from tests.support.pages.everyday import name, text


def interface(site: Site) -> type[scrapy.Spider]:
    """JSON is asked for by POST with an offset, and its ids lead to pages"""

    def search(asked: Asked) -> str:
        first = asked.form["offset"]
        return json.dumps({"total": 40, "ids": list(range(first, first + 10))})

    def offer(asked: Asked) -> str:
        at = int(asked.query["offer"])
        return shell("Offer", f"<h1>Offer</h1><b>{name(at)}</b><i>{price(at)}</i><p>{text(90, 'offer')}</p>")

    site.pages |= {"/api/search.json": search, "/offer": offer}

    class Interface(scrapy.Spider):
        name = "interface"

        async def start(self) -> Any:
            yield self.search(0)

        def search(self, offset: int) -> Any:
            return JsonRequest(
                site.url + "/api/search.json", data={"offset": offset}, meta={"offset": offset}
            )

        def parse(self, response: Any) -> Iterator[Any]:
            for one in response.json()["ids"]:
                yield response.follow(f"/offer?offer={one}", self.offer)
            if (offset := response.meta["offset"] + 10) < response.json()["total"]:
                yield self.search(offset)

        def offer(self, response: Any) -> Iterator[Any]:
            yield {"name": response.css("b::text").get(), "price": response.css("i::text").get()}

    return Interface


def postbacks(site: Site) -> type[scrapy.Spider]:
    """ASP.NET: all is one form, and the pages of a list are sent by POST, with a state that changes"""

    def cases(asked: Asked) -> str:
        page = int(asked.form.get("__EVENTARGUMENT", 0))
        state = f'<input type=hidden name=__VIEWSTATE value="state-{page}">'
        lines = "".join(
            f"<tr><td><a href='/case?no={at}'>{1200 + at}/26</a>" for at in range(8 * page, 8 * page + 8)
        )
        return shell("Cases", f"<form method=post action=/cases>{state}<table>{lines}</table></form>")

    def case(asked: Asked) -> str:
        at = int(asked.query["no"])
        order = (
            f"<p id=no>{1200 + at}/26</p><p>{text(300, 'order')}</p><p id=held>{text(20, ('held', at))}</p>"
        )
        return shell("Case", f"<form><h1>Court order</h1>{order}</form>")

    site.pages |= {"/cases": cases, "/case": case}

    class Postbacks(scrapy.Spider):
        name = "postbacks"
        start_urls = (site.url + "/cases",)
        page = 0

        def parse(self, response: Any) -> Iterator[Any]:
            yield from response.follow_all(css="td a", callback=self.case)
            if self.page < 4:
                self.page += 1
                yield scrapy.FormRequest.from_response(response, formdata={"__EVENTARGUMENT": str(self.page)})

        def case(self, response: Any) -> Iterator[Any]:
            yield {"no": response.css("#no::text").get(), "held": response.css("#held::text").get()}

    return Postbacks


def members(site: Site) -> type[scrapy.Spider]:
    """A login with a token; what the site shows depends on the cookie"""

    def login(asked: Asked) -> str | Reply:
        if asked.form.get("token") == "t1":
            return Reply(status=302, headers=(("Set-Cookie", "member=1"), ("Location", "/quotes?page=0")))
        return shell(
            "Log in", "<form method=post action=/login><input name=token value=t1><input name=user></form>"
        )

    def quotes(asked: Asked) -> str:
        if "member" not in asked.cookies:
            return shell("Log in", "<p>For members only</p>")
        page = int(asked.query["page"])
        shown = "".join(f"<q>{text(12, ('quote', at))}</q>" for at in range(2 * page, 2 * page + 2))
        following = f'<a class=next href="/quotes?page={page + 1}">Next</a>' if page < 19 else ""
        return shell("Quotes", shown + following)

    site.pages |= {"/login": login, "/quotes": quotes}

    class Members(scrapy.Spider):
        name = "members"
        start_urls = (site.url + "/login",)

        def parse(self, response: Any) -> Any:
            return scrapy.FormRequest.from_response(response, formdata={"user": "me"}, callback=self.quotes)

        def quotes(self, response: Any) -> Iterator[Any]:
            for quote in response.css("q::text").getall():
                yield {"quote": quote}
            yield from response.follow_all(css="a.next", callback=self.quotes)

    return Members
