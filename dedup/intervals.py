"""How sure a measured share is."""

import math

__all__ = ["wilson"]


def wilson(successes: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    """The Wilson score interval of a share, 95 % by default; (0, 1) for no trials.

    >>> tuple(round(bound, 3) for bound in wilson(0, 100))
    (0.0, 0.037)
    """
    if trials == 0:
        return 0.0, 1.0
    share = successes / trials
    middle = share + z * z / (2 * trials)
    spread = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)
