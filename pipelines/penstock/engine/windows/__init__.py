"""Windows: how a stage groups its elements. Each kind is one module, found by discovery.

To add a time window, whose bounds follow from the time of an element:

1. Write a frozen dataclass that derives from `TimeWindow`. Its fields are the definition; check them in
   `__post_init__`.
2. Implement `describe` (words for `explain`), `bounds_sql` (Spark SQL, for records) and `assign` (numpy, for
   panes). If an element may lie in several windows, implement `starts_sql` as well.
3. Write its keyword: a function marked with `@keyword`, whose return annotation is the class. It takes arguments
   as users write them, such as durations as text.
4. Write its reference implementation: a function that is registered with `find_containing_windows` in
   `penstock.conformance.reference.window_assignment`. It must not use the computation of the window.
5. Test it on the reference and on Spark.

Each other question of `Window` and `TimeWindow` has a default that is safe for any kind. Override one to be more
precise, such as `max_reach_ms` so that the audit can compare deduplicated results.

```python
@dataclass(frozen=True)
class Shifts(TimeWindow):
    \"\"\"Working shifts of equal length.\"\"\"

    length: int

    def describe(self) -> str:
        return f"shifts of {format_duration(self.length)}"

    def bounds_sql(self, time_sql: str) -> tuple[str, str]:
        start = f"({time_sql} - pmod({time_sql}, {self.length}))"
        return start, f"({start} + {self.length})"

    def assign(self, times: Int64Array) -> WindowAssignment:
        start = times - times % self.length
        return WindowAssignment.of_single_windows(start, start + self.length)


@keyword("shifts")
def shifts(length: Duration) -> Shifts:
    \"\"\"Assign records to working shifts.\"\"\"
    return Shifts(to_milliseconds(length, "window.shifts.length"))
```

A module in this package needs nothing else. From elsewhere, name the keyword as `module:name` in YAML, or install
an entry point of the group `penstock.windows`, or `penstock.policies` for a policy.

`OrderWindow` is the base of windows over the order of records, `OrderPolicy` that of their policies, and
`JoinWindow` that of join conditions in event time.
"""
