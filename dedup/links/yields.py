"""Computes what a link is expected to bring from the rates of its groups, its parameters, and pages of the same name."""

from dedup.links.address import Address, address
from dedup.links.memory import Memory
from dedup.links.rates import Count, Rates, logit, sigmoid

#: What the host's repeats have taught counts as this many repeats of the link's own.
REPEATS = 2.0


class Yields:
    """The rates of one crawl, and what it has met."""

    def __init__(self) -> None:
        self.rates = Rates()
        self.met = Memory()

    def rate(self, parts: Address) -> tuple[float, str]:
        """Returns the expected share of new content, and the parameter that decides it; "" if groups do."""
        tail = self.tail(parts)
        rate, parameter = self.rates.rate(names_of(parts.groups, tail)), ""
        if tail:
            usual = self.rates.rate((repeats_of(parts.host, tail),))
            judged, new = self.met.repeats(parts.tails[tail - 1])
            own = (new + REPEATS * usual) / (judged + REPEATS)
            rate = sigmoid(logit(rate) + logit(own) - logit(usual))
        for name, rest in parts.others.items():
            if rest in self.met:
                of_parameter = self.rates.rate(names_of_parameter(parts, name))
                if of_parameter < rate:
                    rate, parameter = of_parameter, name
        return rate, parameter

    def tail(self, parts: Address) -> int:
        """Returns how many of its last segments were met before, together: 0 to 3."""
        for length in range(len(parts.tails), 0, -1):
            if parts.tails[length - 1] in self.met:
                return length
        return 0

    def evidence(self, url: str) -> list[tuple[str, int, Count]]:
        """Returns what is known of a URL's groups and parameters: the name, how much of its tail was met, and the counts."""
        parts = address(url)
        tail = self.tail(parts)
        names = [(group, tail, name_of(group, tail)) for group in parts.groups]
        for parameter, rest in parts.others.items():
            if rest in self.met:
                on_host, in_script = names_of_parameter(parts, parameter)
                names += [
                    (f"{parts.host} {parameter}=", 0, on_host),
                    (f"{parts.script} {parameter}=", 0, in_script),
                ]
        return [(shown, length, self.rates.get(name) or Count()) for shown, length, name in names]


def name_of(group: str, tail: int) -> str:
    """Names the rate of a group's links whose last ``tail`` segments were met before."""
    return f"{tail} {group}"


def names_of(groups: tuple[str, ...], tail: int) -> list[str]:
    """Names the rates of several groups likewise."""
    return [name_of(group, tail) for group in groups]


def lot_of(parts: Address, tail: int, parameter: str) -> str:
    """Names the lot of a link: that of its group, or that of all links of its host with the parameter."""
    return f"? {parts.host} {parameter}" if parameter else name_of(parts.groups[-1], tail)


def repeats_of(host: str, tail: int) -> str:
    """Names the rate of all links of a host whose last ``tail`` segments were met before."""
    return f"repeats {tail} {host}"


def names_of_parameter(parts: Address, name: str) -> tuple[str, str]:
    """Names the rates of a parameter: in all of the host, then in this script."""
    return f"parameter {name} {parts.host}", f"parameter {name} {parts.script}"
