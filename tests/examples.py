"""How many random examples a property is tried on: few in each run, as every run chooses others.

`EXAMPLES=20 make test-plain` tries twenty times as many, for whoever has changed what they are about.
"""

import os

TIMES = int(os.environ.get("EXAMPLES", "1"))


def examples(count: int) -> int:
    """So many, times what is asked for."""
    return count * TIMES
