'''Triggers: when a window emits panes. Each trigger is one module, found by discovery.

To add a trigger:

1. Write a frozen dataclass that derives from `Trigger`. Its fields are what plans store: durations in milliseconds,
   conditions as predicates, parts as triggers. Check them in `__post_init__`.
2. Implement `describe`, the phrase in `penstock explain`, and `create_machine`. `CountMachine` and
   `ProcessingTimeMachine` may suit; otherwise derive from `TriggerMachine`. Replace the other answers of `Trigger`
   that do not hold for it, such as `fires_once`, and `parts` if it has triggers inside.
3. Write the function of its keyword, annotated with the types of its arguments and with the class that it returns.
   It takes arguments as users write them. A parameter that is annotated with `Trigger` is a keyword itself in YAML.
4. Register its reference with `create_trigger.register`, in `penstock.conformance.reference.triggers` or in a
   module of your own. It must not use the machine.
5. Add a case to `semantics_cases.yaml`; its type is the keyword. The case runs on the reference and on Spark.

A module in this package is found by itself. A trigger of your own needs no installation: import its function in
Python, and name it as `module:function` in YAML. To give it a name, install an entry point of the group
`penstock.triggers`; then `penstock.stream` has the function, too.

```python
@dataclass(frozen=True)
class AfterEither(Trigger):
    """Ready when n elements have arrived, or `delay` after the first one."""

    n: int
    delay: int

    def describe(self) -> str:
        return f"when {self.n} records have arrived, or {format_duration(self.delay)} after the first one"

    def create_machine(self, column_names: TriggerColumnNames) -> TriggerMachine:
        parts = AfterCount(self.n), AfterProcessingTime(self.delay)
        return ParallelMachine([part.create_machine(column_names) for part in parts], requires_all=False)

    @property
    def fires_once(self) -> bool:
        return True


@keyword("after_either")
def after_either(n: int, delay: Duration) -> AfterEither:
    """Fire when n records have arrived, or this long after the first one."""
    return AfterEither(n, to_milliseconds(delay, "trigger.after_either.delay"))
```

`{repeatedly: {my_package.my_module:after_either: {n: 10, delay: 5 s}}}` uses it in YAML.
'''
