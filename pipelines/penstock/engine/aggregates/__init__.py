'''Aggregates: how the elements of a window become one value. Each aggregate is one module, found by discovery.

To add an aggregate:

1. Write a frozen dataclass with a `function_name`. Plans store its fields; check them in `__post_init__`. Derive it
   from
   - `FieldValuesAggregate` if it is computed from all values of one field. Implement `from_values`. It stores every
     value; override `build_compact` and `describe_state` if less is enough while nothing is retracted.
   - `ValuesAggregate` if it needs several fields. Implement `used_fields` and `from_elements`.
   - `FieldAggregate` or `Aggregate` if it has a state of its own that can retract. Implement `build_accumulator`:
     each part of the state is built by Spark SQL, from single elements, and by a merge.
2. Implement `describe`, the phrase in `penstock explain`, and `result_type`. Replace the other answers of
   `Aggregate` that do not hold for it, such as `visible_fields` if it shows no value of a record.
3. Write the function of its keyword, annotated with the class that it returns. A parameter that is annotated with
   `Aggregate` is a call itself in YAML.
4. Register its reference with `compute_aggregate.register`, in `penstock.conformance.reference.aggregates` or in a
   module of your own. It must not use the computation of the class.
5. Add it to `tests/pipelines/engine/aggregates/typed_elements.py`: it is tested over every type, on the
   reference and on Spark.

A module in this package is found by itself. An aggregate of your own needs no installation: import its function in
Python, and call it as `module:function` in YAML. To give it a name, install an entry point of the group
`penstock.aggregates`; then `penstock.stream` has the function, too.

```python
@dataclass(frozen=True)
class GeometricMean(FieldValuesAggregate):
    """Geometric mean of the field; null when no record had a value."""

    function_name = "geometric_mean"

    def describe(self, *, panes: bool = False) -> str:
        return f"geometric mean of {self.field}"

    def result_type(self, context: AggregateContext) -> pa.DataType:
        return pa.float64()

    def from_values(self, values: Sequence[Any]) -> Any:
        return statistics.geometric_mean(values) if values else None


@keyword("geometric_mean")
def geometric_mean(field: str) -> GeometricMean:
    """Take the geometric mean of the field."""
    return GeometricMean(field)
```

`aggregate: {growth: "my_package.my_module:geometric_mean(rate)"}` uses it in YAML.
'''

from penstock.engine.aggregates.accumulator import Accumulator, AccumulatorPart, lift_elements, merge_partials
from penstock.engine.aggregates.aggregate import Aggregate, FieldAggregate
from penstock.engine.aggregates.aggregate_context import AggregateContext
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.values_aggregate import FieldValuesAggregate, ValuesAggregate

__all__ = [
    "Accumulator",
    "AccumulatorPart",
    "Aggregate",
    "AggregateContext",
    "AggregateOutput",
    "FieldAggregate",
    "FieldValuesAggregate",
    "ValuesAggregate",
    "lift_elements",
    "merge_partials",
]
