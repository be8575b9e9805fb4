"""The triggers of the reference evaluator. They share no code with the machines of the engine.

To add the reference of a trigger, derive a class from `ReferenceTrigger`, and register its creation with
`@create_trigger.register`. Outside of this package, the module that does so must be imported.
"""

from penstock.conformance.reference.triggers import composite_triggers, primitive_triggers, watermark_triggers
from penstock.conformance.reference.triggers.trigger import (
    ArrivalCounts,
    MergedTrigger,
    ReferenceTrigger,
    ReferenceTriggerContext,
    TriggerReadiness,
    create_trigger,
)

__all__ = [
    "ArrivalCounts",
    "MergedTrigger",
    "ReferenceTrigger",
    "ReferenceTriggerContext",
    "TriggerReadiness",
    "composite_triggers",
    "create_trigger",
    "primitive_triggers",
    "watermark_triggers",
]
