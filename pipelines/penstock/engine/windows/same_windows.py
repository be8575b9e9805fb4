"""The windows of the upstream stage, for a stage that needs no windows of its own."""

from dataclasses import dataclass
from typing import ClassVar

from penstock.engine.definition.keyword import keyword
from penstock.engine.windows.window import Window


@dataclass(frozen=True)
class SameWindows(Window):
    """The windows of the upstream panes, for a stage that needs no windows of its own."""

    reuses_upstream_windows: ClassVar[bool] = True

    def describe(self) -> str:
        """Describe the windows."""
        return "the windows of the stage that it reads"


@keyword("same")
def same_windows() -> SameWindows:
    """Reuse the windows of the upstream stage, which is the default of a stage after `then`. In YAML it is `same`.

    Example:
        per_device.then().aggregate(hottest=max_("temperature")).window(same_windows())
    """
    return SameWindows()
