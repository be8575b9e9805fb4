"""Cases of recorded answers, run through an engine.

`passed(run_files(paths, engine, ids), say)` is the whole command: `say` gets a verdict per case, and the answer
tells whether all are as expected. `ReferenceEngine` is an engine, and `on_spark.SparkEngine` is the one that
streams run on; so is whatever keeps the protocol `Engine`.
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
