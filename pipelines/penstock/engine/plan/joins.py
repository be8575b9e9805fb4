"""Joins of two inputs by key and window, as data."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from penstock.engine.definition.argument_checks import require, require_name, require_one_of

JoinKind: TypeAlias = Literal["inner", "left", "right", "full", "semi", "anti"]
JOIN_KINDS: tuple[str, ...] = ("inner", "left", "right", "full", "semi", "anti")


@dataclass(frozen=True)
class JoinColumn:
    """A column of a joined row: its name, and the input and field that it comes from."""

    name: str
    input: str
    field: str

    def __post_init__(self) -> None:
        require_name(self.name, "join.take")
        require_name(self.field, "join.take")


@dataclass(frozen=True)
class Join:
    """A join of two inputs: a row for each matching pair, and for unmatched elements if the kind keeps them.

    `semi` returns each left element with a match once, `anti` each left element without a match.
    """

    kind: JoinKind
    left: str
    right: str
    columns: tuple[JoinColumn, ...]

    def __post_init__(self) -> None:
        require_one_of(self.kind, JOIN_KINDS, "join.how")
        require(self.left != self.right, "join", f"{self.left} with itself", "Join two inputs")
        require(len(self.columns) > 0, "join.take", "no columns", "Name a column of an input")
        names = [column.name for column in self.columns]
        for column in self.columns:
            is_joined_input = column.input in (self.left, self.right)
            require(is_joined_input, "join.take", column.input, f"Name {self.left} or {self.right}")
            fix = "Give each column a unique name, as in take={'clicked_at': 'clicks.at'}"
            require(names.count(column.name) == 1, "join.take", f"two columns {column.name}", fix)
            is_shown = self.kind not in ("semi", "anti") or column.input == self.left
            fix = f"Take columns of {self.left}: a {self.kind} join returns only its elements"
            require(is_shown, "join.take", f"{column.input}.{column.field}", fix)

    def fields_from(self, input_: str) -> tuple[str, ...]:
        """Return the fields that the join needs from an input, each once."""
        return tuple(dict.fromkeys(column.field for column in self.columns if column.input == input_))
