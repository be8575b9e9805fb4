"""What first, last and collect share: the values of a field in an order."""

from dataclasses import dataclass

from penstock.engine.aggregates.element_order import VALUE_ORDERS, ValueOrder
from penstock.engine.aggregates.values_aggregate import FieldValuesAggregate
from penstock.engine.definition.argument_checks import require_one_of


@dataclass(frozen=True)
class OrderedAggregate(FieldValuesAggregate):
    """An aggregate over values in order of event time and then arrival, or of arrival alone."""

    order: ValueOrder = "event_time"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_of(self.order, VALUE_ORDERS, f"aggregate.{self.function_name}.order")

    @property
    def needs_arrival_order(self) -> bool:
        """Whether it orders by arrival."""
        return self.order == "arrival"

    @property
    def ordered_fields(self) -> tuple[str, ...]:
        """None: the time and the address decide, so that the values may be lists."""
        return ()
