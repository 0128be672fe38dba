"""How sure a measured share is."""

import math

#: In a normal distribution, 95 % lie within this many standard deviations.
Z = 1.96


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Returns the Wilson score interval of a share, of 95 %; (0, 1) for no trials.

    >>> tuple(round(bound, 3) for bound in wilson(0, 100))
    (0.0, 0.037)
    """
    if trials == 0:
        return 0.0, 1.0
    share = successes / trials
    middle = share + Z * Z / (2 * trials)
    spread = Z * math.sqrt(share * (1 - share) / trials + Z * Z / (4 * trials * trials))
    scale = 1 + Z * Z / trials
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)
