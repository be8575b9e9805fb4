"""Cases of recorded answers, run through an engine.

`passed(run_files(paths, engine, ids), say)` is the whole command: `say` gets a verdict per case, and the answer
tells whether all are as expected. `ReferenceEngine` is an engine, and `on_spark.SparkEngine` is the one that
streams run on; so is whatever keeps the protocol `Engine`.
"""

from penstock.pipelines.transcripts.case import Case, Check, case_of
from penstock.pipelines.transcripts.engine import Engine, Observed, OpenWindow, ReferenceEngine, Run, Script
from penstock.pipelines.transcripts.runner import Found, cases_in, found_in, passed, run_files, run_nodes
from penstock.pipelines.transcripts.verdict import Verdict

__all__ = [
    "Case",
    "Check",
    "Engine",
    "Found",
    "Observed",
    "OpenWindow",
    "ReferenceEngine",
    "Run",
    "Script",
    "Verdict",
    "case_of",
    "cases_in",
    "found_in",
    "passed",
    "run_files",
    "run_nodes",
]
