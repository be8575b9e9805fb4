"""Windows, policies, triggers, aggregates and sinks outside of the source tree.

Each constant is the text of a module that `tests.installed_kinds` writes to a folder.
No file of the tree knows it.
"""

WINDOW = '''
"""Windows for the shifts of a plant, which overlap while one shift hands over to the next."""

from dataclasses import dataclass

import numpy as np

from penstock.engine.definition.argument_checks import require, require_positive
from penstock.engine.definition.durations import Duration, to_milliseconds
from penstock.engine.definition.keyword import keyword
from penstock.engine.definition.phrases import format_duration, join_phrases
from penstock.engine.windows.time_window import TimeWindow, WindowAssignment

DAY_MS = 86_400_000


@dataclass(frozen=True)
class Shifts(TimeWindow):
    """Shifts that start at these times of each day (UTC) and last equally long. A record may be in none."""

    starts: tuple[int, ...]
    length: int

    def __post_init__(self):
        is_increasing = sorted(set(self.starts)) == list(self.starts)
        require(bool(self.starts) and is_increasing, "window.shifts.starts", self.starts, "Give increasing times")
        require(self.starts[-1] < DAY_MS, "window.shifts.starts", self.starts[-1], "Give times of one day")
        require_positive(self.length, "window.shifts.length")
        require(self.length <= DAY_MS, "window.shifts.length", self.length, "Give a day at most")

    def describe(self):
        starts = join_phrases([format_duration(start) for start in self.starts])
        return f"shifts of {format_duration(self.length)} that start {starts} after midnight"

    @property
    def max_reach_ms(self):
        return self.length

    @property
    def all_starts(self):
        """The starts of shifts that may contain a time of a day, relative to the midnight before it."""
        return [start - DAY_MS for start in self.starts] + list(self.starts)

    def starts_sql(self, time_sql):
        midnight = f"({time_sql} - pmod({time_sql}, {DAY_MS}))"
        starts = ", ".join(f"{midnight} + {start}L" for start in self.all_starts)
        return f"filter(array({starts}), s -> s <= {time_sql} AND {time_sql} < s + {self.length})"

    def bounds_sql(self, time_sql):
        return time_sql, f"({time_sql} + {self.length})"

    def assign(self, times):
        starts = (times - times % DAY_MS)[:, None] + np.array(self.all_starts)
        element, number = np.nonzero((starts <= times[:, None]) & (times[:, None] < starts + self.length))
        return WindowAssignment(element, starts[element, number], starts[element, number] + self.length)


@keyword("shifts")
def shifts(starts: list, length: Duration) -> Shifts:
    """Assign records to shifts, as in `shifts(["6 hours", "14 hours", "22 hours"], "8 hours 15 minutes")`."""
    starts_ms = tuple(to_milliseconds(start, "window.shifts.starts") for start in starts)
    return Shifts(starts_ms, to_milliseconds(length, "window.shifts.length"))
'''

WINDOW_REFERENCE = '''
"""The reference of Shifts, one day at a time."""

from outside_window import Shifts

from penstock.conformance.reference.window_assignment import find_containing_windows

DAY_MS = 24 * 60 * 60 * 1000


@find_containing_windows.register
def find_shifts(window: Shifts, time):
    found = []
    for day in (time // DAY_MS - 1, time // DAY_MS):
        for start in window.starts:
            begin, end = day * DAY_MS + start, day * DAY_MS + start + window.length
            if begin <= time < end:
                found.append((begin, end))
    return found
'''

POLICY = '''
"""A policy that closes an order window when a field changes."""

from dataclasses import dataclass

import numpy as np

from penstock.engine.definition.argument_checks import require_name
from penstock.engine.definition.keyword import keyword
from penstock.engine.windows.order_policy import ClosePolicy


@dataclass(frozen=True)
class ChangePolicy(ClosePolicy):
    """A record whose field differs from that of the window's first record closes the window before it."""

    field: str

    def __post_init__(self):
        require_name(self.field, "window.changes.field")

    @property
    def compared_field(self):
        return self.field

    def describe_close(self):
        return f"before a record whose {self.field} differs from the window's first"

    def number_windows(self, sequence, key_headers, clock):
        values = sequence.compared_values[self.field]
        is_change = np.zeros(len(values), bool)
        is_change[1:] = (values[1:] != values[:-1]) & (sequence.key_of_element[1:] == sequence.key_of_element[:-1])
        numbers = sequence.running_sums(is_change.astype(np.int64))
        return numbers, sequence.last_of_key(numbers)


@keyword("changes")
def changes(field: str) -> ChangePolicy:
    """Close a window when a field changes."""
    return ChangePolicy(field)
'''

POLICY_REFERENCE = '''
"""The reference of ChangePolicy, one record at a time."""

from outside_policy import ChangePolicy

from penstock.conformance.reference.order_policies import closes_before


@closes_before.register
def differs_from_first(policy: ChangePolicy, contents, element):
    return bool(contents) and contents[0].fields.get(policy.field) != element.fields.get(policy.field)
'''

TRIGGER = '''
"""A trigger that fires when a window has received nothing for a while."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.engine.columnar import StateColumn
from penstock.engine.definition.argument_checks import require_positive
from penstock.engine.definition.durations import Duration, to_milliseconds
from penstock.engine.definition.keyword import keyword
from penstock.engine.definition.phrases import format_duration
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS
from penstock.engine.triggers.machine import TriggerMachine
from penstock.engine.triggers.trigger import Trigger


@dataclass(frozen=True)
class AfterInactivity(Trigger):
    """Ready when the batch clock is `gap` after the clock of the newest element since it started."""

    gap: int

    def __post_init__(self):
        require_positive(self.gap, "trigger.after_inactivity")

    def describe(self):
        return f"{format_duration(self.gap)} after the newest record, on the batch clock"

    def create_machine(self, column_names):
        return InactivityMachine(column_names.next_name("inactive_at"), self.gap)

    @property
    def fires_once(self):
        return True


@keyword("after_inactivity")
def after_inactivity(gap: Duration) -> AfterInactivity:
    """Fire when no record has arrived for this long, on the batch clock."""
    return AfterInactivity(to_milliseconds(gap, "trigger.after_inactivity"))


@dataclass(frozen=True)
class InactivityMachine(TriggerMachine):
    name: str
    gap: int

    def state_columns(self):
        yield StateColumn(self.name, pa.int64(), MAX_TIMESTAMP_MS)

    def on_elements(self, rows, new_elements, batch_time):
        # Once it is ready it stays ready, even if an element arrives before it fires.
        restarts = (new_elements.counts > 0) & (rows[self.name] > batch_time.clock)
        rows[self.name][restarts] = batch_time.clock + self.gap

    def should_fire(self, rows, batch_time):
        return np.asarray(rows[self.name] <= batch_time.clock)

    def next_timer(self, rows, batch_time):
        return np.where(rows[self.name] > batch_time.clock, rows[self.name], MAX_TIMESTAMP_MS)

    def on_merge(self, rows, window_merge):
        is_waiting = window_merge.has_new_elements & (window_merge.sources[self.name] < MAX_TIMESTAMP_MS)
        waiting = window_merge.for_sources(is_waiting)
        latest = np.full(len(rows), -1, np.int64)
        np.maximum.at(latest, waiting.target_rows, waiting.sources[self.name])
        rows[self.name][latest >= 0] = latest[latest >= 0]
'''

TRIGGER_REFERENCE = '''
"""The reference of AfterInactivity, one window at a time."""

from outside_trigger import AfterInactivity

from penstock.conformance.reference.triggers import ReferenceTrigger, TriggerReadiness, create_trigger


class ReferenceAfterInactivity(ReferenceTrigger):
    def __init__(self, gap):
        self.gap = gap
        self.inactive_at = None

    def on_elements(self, arrivals):
        is_ready = self.inactive_at is not None and self.inactive_at <= arrivals.clock
        if arrivals.elements and not is_ready:
            self.inactive_at = arrivals.clock + self.gap

    def check_readiness(self, context):
        is_ready = self.inactive_at is not None and self.inactive_at <= context.clock
        return TriggerReadiness.READY if is_ready else TriggerReadiness.WAITING

    def on_fire(self, context):
        return True

    def on_merge(self, merged, context):
        waiting = [part.trigger.inactive_at for part in merged if part.has_pending]
        self.inactive_at = max((time for time in waiting if time is not None), default=None)


@create_trigger.register
def create_after_inactivity(trigger: AfterInactivity):
    return ReferenceAfterInactivity(trigger.gap)
'''

SINKS = '''
"""Sinks that are no Delta tables: an SQLite table of latest values, and files of JSON lines with every pane."""

import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.definition.keyword import keyword
from penstock.engine.plan.sinks import PaneContent, ReplayRule, TableSink
from penstock.engine.storage.file_access import write_text
from penstock.engine.tables.staged_target import StagedTarget


@dataclass(frozen=True)
class SqliteTable(TableSink):
    """A table in an SQLite file with the latest value per key and window."""

    file: str = "result.sqlite"

    content = PaneContent.LATEST
    replay_rule = ReplayRule.REPLACE

    def describe(self):
        return f"upsert the latest value per key and window into {self.table} in {self.file}"

    def open(self, context):
        return SqliteTarget(
            context.path, context.application, self.table, self.file,
            [*context.window_key, "window_start", "window_end"],
        )

    def read_rows(self, path, application, upto):
        target = SqliteTarget(path, application, self.table, self.file)
        return target.read_rows() if target.read_last_batch() <= upto else None

    def replace_content(self, path, replayed, application, batch_id, clock):
        target = SqliteTarget(path, application, self.table, self.file)
        if target.read_last_batch() < batch_id:
            replayed.mkdir(parents=True, exist_ok=True)
            staged = SqliteTarget(replayed, application, self.table, self.file)
            with closing(staged.connect()) as connection, connection:
                connection.execute("INSERT OR REPLACE INTO batches VALUES (?, ?)", (application, batch_id))
            path.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(staged.file, target.file.with_suffix(".new"))
            target.file.with_suffix(".new").replace(target.file)


class SqliteTarget(StagedTarget):
    def __init__(self, folder, application, table, file, identity=()):
        super().__init__(folder, application)
        self.table, self.identity, self.file = table, identity, folder / file

    def connect(self):
        connection = sqlite3.connect(self.file)
        connection.execute("CREATE TABLE IF NOT EXISTS batches (application PRIMARY KEY, batch_id)")
        connection.execute("CREATE TABLE IF NOT EXISTS arrow_schema (bytes)")
        return connection

    def read_last_batch(self):
        if not self.file.exists():
            return -1
        with closing(self.connect()) as connection:
            row = connection.execute(
                "SELECT batch_id FROM batches WHERE application = ?", (self.application,)
            ).fetchone()
        return -1 if row is None else row[0]

    def apply(self, batch_id, rows):
        kinds = rows.column("kind").to_pylist()
        rows = rows.drop_columns(["kind"])
        schema, rows = rows.schema, to_plain(rows)
        with closing(self.connect()) as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            found = connection.execute("SELECT batch_id FROM batches WHERE application = ?", (self.application,))
            if any(applied >= batch_id for (applied,) in found):
                return False
            if not connection.execute("SELECT 1 FROM arrow_schema").fetchone():
                connection.execute(
                    f"CREATE TABLE \\"{self.table}\\" ({', '.join(map(quote, schema.names))})"
                )
                connection.execute(
                    "INSERT INTO arrow_schema VALUES (?)", (schema.serialize().to_pybytes(),)
                )
            matches = " AND ".join(f"{quote(name)} IS ?" for name in self.identity)
            values = rows.to_pylist()
            connection.executemany(
                f"DELETE FROM \\"{self.table}\\" WHERE {matches}",
                [[row[name] for name in self.identity] for row in values],
            )
            connection.executemany(
                f"INSERT INTO \\"{self.table}\\" VALUES ({', '.join('?' * len(schema))})",
                [list(row.values()) for row, kind in zip(values, kinds, strict=True) if kind == "insert"],
            )
            connection.execute(
                "INSERT OR REPLACE INTO batches VALUES (?, ?)", (self.application, batch_id)
            )
        return True

    def read_rows(self):
        if not self.file.exists():
            return None
        with closing(self.connect()) as connection:
            found = connection.execute("SELECT bytes FROM arrow_schema").fetchone()
            if found is None:
                return None
            (schema_bytes,) = found
            schema = pa.ipc.read_schema(pa.py_buffer(schema_bytes))
            rows = connection.execute(f"SELECT * FROM \\"{self.table}\\"").fetchall()
        columns = list(zip(*rows, strict=True)) or [()] * len(schema)
        return pa.table(
            [
                pa.array(column, pa.int64()).cast(field.type)
                if is_stored_as_integer(field.type)
                else pa.array(column, field.type)
                for column, field in zip(columns, schema, strict=True)
            ],
            schema=schema,
        )


def quote(name):
    return f"\\"{name}\\""


def is_stored_as_integer(data_type):
    """Tell whether SQLite has no such type. A timestamp is stored as microseconds."""
    return pa.types.is_timestamp(data_type) or pa.types.is_boolean(data_type)


def to_plain(rows):
    """Return rows with types that SQLite has."""
    return pa.table(
        {
            name: pc.cast(column, pa.int64()) if is_stored_as_integer(column.type) else column
            for name, column in zip(rows.column_names, rows.columns, strict=True)
        }
    )


@keyword("sqlite")
def sqlite(table: str, file: str = "result.sqlite") -> SqliteTable:
    """Update a table in an SQLite file with the latest value of each key and window."""
    return SqliteTable(table, file)


@dataclass(frozen=True)
class JsonLines(TableSink):
    """A folder with a file of JSON lines for each batch. The audit cannot compare it, and a replay refuses."""

    def describe(self):
        return f"append every pane to JSON lines in {self.path}"

    def open(self, context):
        return JsonLinesTarget(context.path, context.application)


class JsonLinesTarget(StagedTarget):
    def read_last_batch(self):
        return max((int(file.stem) for file in self.folder.glob("*.jsonl")), default=-1)

    def apply(self, batch_id, rows):
        write_text(self.folder / f"{batch_id}.jsonl", pl.DataFrame(pl.from_arrow(rows)).write_ndjson())
        return True


@keyword("json_lines")
def json_lines(table: str) -> JsonLines:
    """Append every pane to files of JSON lines."""
    return JsonLines(table)
'''

AGGREGATES = '''
"""Two aggregates: one that is computed from all values, and one with a state of its own that can retract."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates import Accumulator, AccumulatorPart, FieldAggregate, FieldValuesAggregate
from penstock.engine.columnar import to_numpy
from penstock.engine.definition.keyword import keyword
from penstock.engine.definition.predicates import quote_column


@dataclass(frozen=True)
class MostFrequent(FieldValuesAggregate):
    """The most frequent value; of several ones the earliest."""

    function_name = "most_frequent"

    def describe(self, *, panes=False):
        return f"most frequent {self.field}"

    def result_type(self, context):
        return context.field_types[self.field]

    def from_values(self, values):
        counts = Counter(values)
        return max(counts, key=counts.get, default=None)


@keyword("most_frequent")
def most_frequent(field: str) -> MostFrequent:
    """Take the most frequent value."""
    return MostFrequent(field)


@dataclass(frozen=True)
class Checksum(FieldAggregate):
    """Exclusive or of an integer field: equal for the same values in any order, and its own inverse."""

    function_name = "checksum"

    @property
    def visible_fields(self):
        return ()

    def describe(self, *, panes=False):
        return f"checksum of {self.field}"

    def result_type(self, context):
        if not pa.types.is_integer(context.field_types[self.field]):
            raise context.error(f"{self.field} is no integer", "Use an integer field")
        return pa.int64()

    def build_accumulator(self, context):
        name, count_part = f"{context.output}_checksum", context.make_count_part(self.field)
        sql = f"coalesce(bit_xor(cast({quote_column(self.field)} AS BIGINT)), 0L)"

        def lift(elements):
            return to_numpy(elements.column(self.field).cast(pa.int64()))

        part = AccumulatorPart(name, sql, pa.int64(), XorMerger(name), lift, 0)
        parts, result_type = (part, count_part), self.result_type(context)
        return Accumulator(context.output, result_type, parts, lambda rows: rows[name], count_part.name)


@dataclass(frozen=True)
class XorMerger:
    name: str

    def merge(self, rows, windows, incoming):
        np.bitwise_xor.at(rows[self.name], windows, incoming[self.name])


@keyword("checksum")
def checksum(field: str) -> Checksum:
    """Compute a checksum of an integer field."""
    return Checksum(field)
'''

AGGREGATES_REFERENCE = '''
"""The references of MostFrequent and Checksum, from scratch."""

from functools import reduce
from operator import xor

from outside_aggregates import Checksum, MostFrequent

from penstock.conformance.reference.aggregates import compute_aggregate, non_null_values, sort_elements


@compute_aggregate.register
def compute_most_frequent(aggregate: MostFrequent, elements):
    values = non_null_values(aggregate.field, sort_elements(elements, "event_time"))
    return max(values, key=values.count, default=None)


@compute_aggregate.register
def compute_checksum(aggregate: Checksum, elements):
    values = non_null_values(aggregate.field, elements)
    return reduce(xor, values) if values else None
'''
