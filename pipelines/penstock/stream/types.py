"""The types of the public API, for annotations in your own code and for type checkers.

Example:
    def write_all(table: str, mode: SinkMode, window: Window) -> Pipeline: ...
"""

from penstock.engine.aggregates.aggregate import Aggregate
from penstock.engine.aggregates.element_order import ValueOrder
from penstock.engine.definition.durations import Duration
from penstock.engine.plan.joins import JoinKind
from penstock.engine.plan.sources import FileFormat, FutureSkewPolicy
from penstock.engine.plan.stages import AccumulationMode, FinalPanePolicy, OnTimePanePolicy, Plan
from penstock.engine.plan.stateful_function import ProcessingOrder
from penstock.engine.triggers.trigger import Trigger
from penstock.engine.windows.calendar import CalendarUnit
from penstock.engine.windows.order_policy import ClosePolicy, EvictionPolicy, TriggerPolicy
from penstock.engine.windows.time_window import TimeDomain
from penstock.engine.windows.window import Window
from penstock.ingestion.contracts import Contract
from penstock.stream.pipeline import Pipeline, SinkMode

__all__ = [
    "AccumulationMode",
    "Aggregate",
    "CalendarUnit",
    "ClosePolicy",
    "Contract",
    "Duration",
    "EvictionPolicy",
    "FileFormat",
    "FinalPanePolicy",
    "FutureSkewPolicy",
    "JoinKind",
    "OnTimePanePolicy",
    "Pipeline",
    "Plan",
    "ProcessingOrder",
    "SinkMode",
    "TimeDomain",
    "Trigger",
    "TriggerPolicy",
    "ValueOrder",
    "Window",
]
