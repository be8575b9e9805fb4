"""The result of a comparison: a row per program or operation, and a page with all that both systems emitted."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ComparisonReport:
    """The rows of a comparison and the lines of its page. The last cell of a row is `describe_equality`."""

    columns: Sequence[str]
    rows: Sequence[tuple[object, ...]]
    page_lines: Sequence[str]

    @property
    def is_equal(self) -> bool:
        """Whether both systems agree in every row."""
        return all(row[-1] == describe_equality(True) for row in self.rows)


def describe_equality(is_same: bool) -> str:
    """Return the text of a table cell that says whether two results are equal."""
    return "equal" if is_same else "different"
