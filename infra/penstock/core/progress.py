"""Reports of what a longer operation does."""

from collections.abc import Callable
from typing import TypeAlias

ProgressReporter: TypeAlias = Callable[[str], None]
"""Shows one line about the current step of an operation."""
