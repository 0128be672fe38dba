"""`scrapy links VERB`: shows what was learnt of links."""

import argparse

from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from dedup.scrapy.commands import base

#: The verbs, each with its arguments, and the number of them.
VERBS = {"rules": ("[--json | --discarder]", 0), "explain": ("URL [--json]", 1)}
HELP = {
    "rules": "shows the parameters and the groups of pages that never brought anything new, with the counts that say so.",
    "explain": "shows what is expected of a link, whether it would be parked, and what that is made of.",
}
EXIT_STATUS = (
    "0: all is well. 2: the usage or a setting is wrong. 3: no crawl has learnt anything of links here."
)


class Command(base.Command):
    """The exit status is one of `EXIT_STATUS`."""

    name = "links"
    arguments = "rules | explain URL [options]"
    summary = "Show what was learnt of links: rules, and why a link is parked"
    description = (
        "With DEDUP_FOLLOW, DEDUP_SKIP or DEDUP_PRIORITY, a crawl learns which links bring new content. What the last "
        "crawl of a spider has learnt is shown here."
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Adds the options."""
        super().add_options(parser)
        for verb, text in HELP.items():
            parser.add_argument_group(verb, f"scrapy links {verb} {VERBS[verb][0]}: {text}")
        parser.add_argument_group("exit status", EXIT_STATUS)
        whose = "the spider that has learnt; only needed where the project has several"
        parser.add_argument("--spider", default="", metavar="NAME", help=whose)
        parser.add_argument("--json", action="store_true", help="print JSON")
        theirs = "print the parameters that never mattered as rules of the package duplicate-url-discarder"
        parser.add_argument("--discarder", action="store_true", help=theirs)

    def work(self, args: list[str], opts: argparse.Namespace, settings: Settings) -> int:
        """Does what the verb says."""
        verb, *rest = args or [""]
        if verb not in VERBS:
            raise UsageError(f"links takes one of: {', '.join(VERBS)}")
        arguments, count = VERBS[verb]
        if len(rest) != count or (opts.discarder and (opts.json or verb != "rules")):
            raise UsageError(f"usage: scrapy links {verb} {arguments}")
        from dedup.scrapy.commands.links.run import print_explanation, print_rules, read_links

        links = read_links(settings, opts.spider)
        if verb == "rules":
            print_rules(links, as_json=opts.json, as_discarder=opts.discarder)
        else:
            print_explanation(links, rest[0], as_json=opts.json)
        return 0
