"""The reference evaluator: the semantics as a program, in plain Python, one element at a time."""

from penstock.conformance.reference.evaluator import Evaluator, evaluate, evaluate_bounded
from penstock.conformance.reference.input_records import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    InputBatch,
    InputRecord,
    Instant,
)
from penstock.conformance.reference.output_rows import (
    EvaluatedBatch,
    LateRow,
    Pane,
    PartitionCounts,
    QuarantinedRow,
    ReplacedWindow,
)

__all__ = [
    "MAX_TIMESTAMP",
    "MIN_TIMESTAMP",
    "EvaluatedBatch",
    "Evaluator",
    "InputBatch",
    "InputRecord",
    "Instant",
    "LateRow",
    "Pane",
    "PartitionCounts",
    "QuarantinedRow",
    "ReplacedWindow",
    "evaluate",
    "evaluate_bounded",
]
