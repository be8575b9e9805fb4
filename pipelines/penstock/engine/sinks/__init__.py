"""Sinks of panes. Each kind of sink is one module, found by discovery.

To add a sink:

1. Write a frozen dataclass that derives from `penstock.engine.plan.sinks.TableSink`, or from `DeltaSink` if it is a
   Delta table. Its fields are its options. Set `content` to the panes that its rows are.
2. Implement `describe()`, the phrase of `penstock explain`, and `open(context)`, which returns its `SinkTarget`.
   `write` makes nothing visible, `commit` applies a batch once by its id, `discard` removes what `write` left.
   A target that is not a Delta table derives from `penstock.engine.tables.staged_target.StagedTarget`, which stores
   the rows until the commit.
3. Write the function of its mode, marked with `@keyword("...")`. Its first parameter is `table`; other arguments of
   `write` are passed to it by name.
4. Say what others may do with it. By default the audit calls it not comparable, maintenance leaves it alone, and a
   replay refuses. Override `read_rows`, or `replay_rule` and `replace_content`, to allow more.
5. Test that a batch which is committed again, after a kill in any place, is there once.

A function in this package is found by itself. A module of your own needs no installation: name its function or
class as `module:name` in `write(..., mode=...)` and in YAML. To give it a name, install an entry point of the group
`penstock.sinks`.

```python
@dataclass(frozen=True)
class JsonLines(TableSink):
    \"\"\"A folder with a file of JSON lines for each batch.\"\"\"

    def describe(self) -> str:
        return f"append every pane to JSON lines in {self.path}"

    def open(self, context: SinkContext) -> SinkTarget:
        return JsonLinesTarget(context.path, context.application)


class JsonLinesTarget(StagedTarget):
    def read_last_batch(self) -> int:
        return max((int(file.stem) for file in self.folder.glob("*.jsonl")), default=-1)

    def apply(self, batch_id: int, rows: pa.Table) -> bool:
        lines = polars.DataFrame(polars.from_arrow(rows)).write_ndjson()
        write_text(self.folder / f"{batch_id}.jsonl", lines)
        return True


@keyword("json_lines")
def json_lines(table: str) -> JsonLines:
    return JsonLines(table)
```

`write("readings", mode="mypackage.mymodule:json_lines")` uses it.
"""
