"""The plan: a pipeline as plain data that can be inspected, compared, serialized and fingerprinted.

Nothing here runs a pipeline or depends on Spark, YAML or the command line.
"""

from penstock.engine.aggregates.aggregate import Aggregate
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.collect import Collect
from penstock.engine.aggregates.count import Count
from penstock.engine.aggregates.custom import Custom
from penstock.engine.aggregates.distinct import Distinct
from penstock.engine.aggregates.first import First
from penstock.engine.aggregates.join_members import JoinMembers
from penstock.engine.aggregates.last import Last
from penstock.engine.aggregates.max import Max
from penstock.engine.aggregates.mean import Mean
from penstock.engine.aggregates.min import Min
from penstock.engine.aggregates.of_input import OfInput
from penstock.engine.aggregates.quantiles import Quantiles
from penstock.engine.aggregates.sum import Sum
from penstock.engine.aggregates.top_n import TopN
from penstock.engine.definition.predicates import (
    Comparison,
    Conjunction,
    Disjunction,
    IsNotTrue,
    IsNull,
    Negation,
    Predicate,
    predicate_fields,
    predicate_sql,
)
from penstock.engine.definition.user_functions import (
    Combiner,
    CombinerRef,
    FunctionRef,
    combiner_ref,
    function_ref,
)
from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.codec import fingerprint, plan_from_dict, plan_to_dict
from penstock.engine.plan.joins import Join, JoinColumn
from penstock.engine.plan.sinks import Sink
from penstock.engine.plan.sources import (
    Column,
    Deduplication,
    FileOrigin,
    PlanSource,
    RowCheck,
    SourceOrigin,
    Tombstones,
    TopicOrigin,
    WatermarkStrategy,
)
from penstock.engine.plan.stages import AccumulationMode, FinalPanePolicy, OnTimePanePolicy, Plan, Stage
from penstock.engine.plan.stateful_function import StatefulFunction, StateType, state_type
from penstock.engine.plan.steps import (
    ApplyStep,
    ArrowStep,
    FilterStep,
    InputSteps,
    LookupStep,
    RowFunctionStep,
    SelectStep,
    SqlStep,
    Step,
)
from penstock.engine.plan.validation.plans import validate_plan
from penstock.engine.triggers.after_all import AfterAll
from penstock.engine.triggers.after_any import AfterAny
from penstock.engine.triggers.after_count import AfterCount
from penstock.engine.triggers.after_each import AfterEach
from penstock.engine.triggers.after_processing_time import AfterProcessingTime
from penstock.engine.triggers.after_punctuation import AfterPunctuation
from penstock.engine.triggers.after_watermark import AfterWatermark
from penstock.engine.triggers.default import Default
from penstock.engine.triggers.every import Every
from penstock.engine.triggers.or_finally import OrFinally
from penstock.engine.triggers.repeatedly import Repeatedly
from penstock.engine.triggers.trigger import Trigger
from penstock.engine.windows.as_of import AsOf
from penstock.engine.windows.between import Between
from penstock.engine.windows.calendar import Calendar
from penstock.engine.windows.count_policy import CountPolicy
from penstock.engine.windows.delta_policy import DeltaPolicy
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.global_window import Global
from penstock.engine.windows.join_window import JoinWindow
from penstock.engine.windows.order_policy import ClosePolicy, EvictionPolicy, TriggerPolicy
from penstock.engine.windows.order_window import OrderWindow
from penstock.engine.windows.punctuation_policy import PunctuationPolicy
from penstock.engine.windows.same_windows import SameWindows
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.sliding import Sliding
from penstock.engine.windows.sliding_order import SlidingOrder
from penstock.engine.windows.time_policy import TimePolicy
from penstock.engine.windows.time_window import TimeWindow
from penstock.engine.windows.tumbling import Tumbling
from penstock.engine.windows.window import Window

__all__ = [
    "AccumulationMode",
    "AfterAll",
    "AfterAny",
    "AfterCount",
    "AfterEach",
    "AfterProcessingTime",
    "AfterPunctuation",
    "AfterWatermark",
    "Aggregate",
    "AggregateOutput",
    "ApplyStep",
    "ArrowStep",
    "AsOf",
    "Between",
    "Calendar",
    "ChangelogWindows",
    "ClosePolicy",
    "Collect",
    "Column",
    "Combiner",
    "CombinerRef",
    "Comparison",
    "Conjunction",
    "Count",
    "CountPolicy",
    "Custom",
    "Deduplication",
    "Default",
    "DeltaPolicy",
    "Disjunction",
    "Distinct",
    "Every",
    "EvictionPolicy",
    "FileOrigin",
    "FilterStep",
    "FinalPanePolicy",
    "First",
    "Fixed",
    "FunctionRef",
    "Global",
    "InputSteps",
    "IsNotTrue",
    "IsNull",
    "Join",
    "JoinColumn",
    "JoinMembers",
    "JoinWindow",
    "Last",
    "LookupStep",
    "Max",
    "Mean",
    "Min",
    "Negation",
    "OfInput",
    "OnTimePanePolicy",
    "OrFinally",
    "OrderWindow",
    "Plan",
    "PlanSource",
    "Predicate",
    "PunctuationPolicy",
    "Quantiles",
    "Repeatedly",
    "RowCheck",
    "RowFunctionStep",
    "SameWindows",
    "SelectStep",
    "Sessions",
    "Sink",
    "Sliding",
    "SlidingOrder",
    "SourceOrigin",
    "SqlStep",
    "Stage",
    "StateType",
    "StatefulFunction",
    "Step",
    "Sum",
    "TimePolicy",
    "TimeWindow",
    "Tombstones",
    "TopN",
    "TopicOrigin",
    "Trigger",
    "TriggerPolicy",
    "Tumbling",
    "WatermarkStrategy",
    "Window",
    "combiner_ref",
    "fingerprint",
    "function_ref",
    "plan_from_dict",
    "plan_to_dict",
    "predicate_fields",
    "predicate_sql",
    "state_type",
    "validate_plan",
]
