"""Conformance cases with recorded answers, run by an engine.

`report_verdicts(run_files(paths, engine, ids), report)` is the whole command: `report` receives a verdict per
case, and the result tells whether all cases pass. `ReferenceEngine` is an engine, and `on_spark.SparkEngine` runs
cases as live streams do. Any other class with the protocol `ConformanceEngine` works, too.
"""

from penstock.conformance.case import Case, CaseCheck, parse_case
from penstock.conformance.engines import (
    ConformanceEngine,
    ObservedBatch,
    OpenWindow,
    ReferenceEngine,
    Script,
    ScriptResult,
)
from penstock.conformance.runner import (
    LocatedCase,
    find_cases,
    load_case_nodes,
    report_verdicts,
    run_cases,
    run_files,
)
from penstock.conformance.verdict import CaseVerdict

__all__ = [
    "Case",
    "CaseCheck",
    "CaseVerdict",
    "ConformanceEngine",
    "LocatedCase",
    "ObservedBatch",
    "OpenWindow",
    "ReferenceEngine",
    "Script",
    "ScriptResult",
    "find_cases",
    "load_case_nodes",
    "parse_case",
    "report_verdicts",
    "run_cases",
    "run_files",
]
