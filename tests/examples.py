"""How many random examples a property is tried on: few in each run, as every run chooses others.

`EXAMPLES=20 make test-plain` tries twenty times as many, for whoever has changed what they are about.
"""

import os

EXAMPLES_FACTOR = int(os.environ.get("EXAMPLES", "1"))


def scale_examples(count: int) -> int:
    """So many, times what is asked for."""
    return count * EXAMPLES_FACTOR
