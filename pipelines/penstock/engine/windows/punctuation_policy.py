"""The policy of order windows by records that match a condition."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from penstock.engine.columnar import Rows
from penstock.engine.definition.condition_parser import parse_condition
from penstock.engine.definition.keyword import keyword
from penstock.engine.definition.predicates import Predicate, predicate_sql
from penstock.engine.state.header_columns import Int64Array
from penstock.engine.windows.element_sequence import ElementSequence
from penstock.engine.windows.order_policy import ClosePolicy


@dataclass(frozen=True)
class PunctuationPolicy(ClosePolicy):
    """A record that matches closes the tumbling window, as its last record."""

    location: ClassVar[str] = "window.punctuation"

    predicate: Predicate

    @property
    def condition(self) -> Predicate:
        """Spark evaluates the predicate on each record."""
        return self.predicate

    def describe_close(self) -> str:
        """Describe when a window closes."""
        return f"after a record with {predicate_sql(self.predicate)}"

    def number_windows(
        self, sequence: ElementSequence, key_headers: Rows, clock: int
    ) -> tuple[Int64Array, Int64Array]:
        """Count the matches before each record."""
        matched = sequence.rows["matched"].astype(np.int64)
        match_sums = sequence.running_sums(matched)
        return match_sums - matched, sequence.last_of_key(match_sums)


@keyword("punctuation")
def punctuation(predicate: str) -> PunctuationPolicy:
    """A policy of order windows by records that meet a condition.

    Args:
        predicate: the condition. The record that meets it is the last one of its window.

    Example:
        window(tumbling(punctuation("kind = 'end'")))
    """
    return PunctuationPolicy(parse_condition(predicate, "window.punctuation"))
