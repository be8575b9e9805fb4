"""Translates cases of other schemas to `anchor-transcript/1`.

The schema is detected from the case itself, in a document, a list or a single line.
"""

from collections.abc import Mapping
from typing import Any

from penstock.conformance.dialects import flink, spl, window_assignments
from penstock.conformance.field_validation import case_name, describe_python_error
from penstock.engine.errors import TranscriptError

CaseNode = Mapping[str, Any]


def translate_case(case: CaseNode) -> CaseNode:
    """Translate a case. A case that cannot be translated keeps its id and the reason."""
    try:
        return translate_by_dialect(case)
    except TranscriptError as problem:
        return {"id": case_name(case), "cannot": str(problem)}
    except (LookupError, TypeError, ValueError, AttributeError) as problem:
        return {"id": case_name(case), "broken": describe_python_error(problem)}


def translate_by_dialect(case: CaseNode) -> CaseNode:
    """Translate a case with the translator of its schema."""
    if flink.is_flink_case(case):
        return flink.translate_flink_case(case)
    if spl.is_spl_case(case):
        return spl.translate_spl_case(case)
    if window_assignments.is_assignment_case(case):
        return window_assignments.translate_assignment_case(case)
    return flink.translate_terms(case)
