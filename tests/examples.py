"""The number of random examples of a property: few in each run, because every run chooses others.

`EXAMPLES=20 make test-plain` tries twenty times as many.
"""

import os

EXAMPLES_FACTOR = int(os.environ.get("EXAMPLES", "1"))


def scale_examples(count: int) -> int:
    """Multiply a number of examples by the factor of the run."""
    return count * EXAMPLES_FACTOR
