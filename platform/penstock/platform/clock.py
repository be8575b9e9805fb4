"""The platform's clock: the one place that asks what time it is, to be handed on."""

import time


def now_ms() -> int:
    """Milliseconds of UTC since 1970."""
    return time.time_ns() // 1_000_000
