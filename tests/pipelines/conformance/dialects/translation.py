"""Translates recorded cases of other schemas to `anchor-transcript/1`. The case itself shows its schema."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.pipelines.conformance.dialects import flink, spl, window_assignments

from penstock.conformance import load_case_nodes
from penstock.engine.errors import TranscriptError

CaseNode = Mapping[str, Any]


def load_translated_cases(paths: Iterable[Path]) -> list[CaseNode]:
    """Return the cases of the files in the schema of the runner."""
    return [translate_case(case) for case in load_case_nodes(paths)]


def translate_case(case: CaseNode) -> CaseNode:
    """Translate a case. A case that cannot be translated stays as it is, and the runner refuses it."""
    try:
        if flink.is_flink_case(case):
            return flink.translate_flink_case(case)
        if spl.is_spl_case(case):
            return spl.translate_spl_case(case)
        if window_assignments.is_assignment_case(case):
            return window_assignments.translate_assignment_case(case)
        return flink.translate_terms(case)
    except (TranscriptError, LookupError, TypeError, ValueError, AttributeError):
        return case
