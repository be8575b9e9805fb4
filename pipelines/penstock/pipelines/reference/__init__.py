"""The reference evaluator: the contract as a program, in plain Python, one element at a time."""

from penstock.pipelines.reference.answers import Account, LateRow, Outcome, Pane, Quarantined, Replaced
from penstock.pipelines.reference.evaluator import Evaluator, bounded, evaluate
from penstock.pipelines.reference.records import BEGINNING, END, Batch, Instant, Record

__all__ = [
    "BEGINNING",
    "END",
    "Account",
    "Batch",
    "Evaluator",
    "Instant",
    "LateRow",
    "Outcome",
    "Pane",
    "Quarantined",
    "Record",
    "Replaced",
    "bounded",
    "evaluate",
]
