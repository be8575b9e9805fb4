"""Measures stateful Python functions, and windows, against hand-written `transformWithState`.

All variants read the same topic with equal batches, in turns, after a warm-up round. The records of each key are
counted, and every record returns a row with the count so far. The rival keeps the count in Spark's state, once with
a function over rows and once over pandas frames, and writes to Delta like the native rival.

Two rates are printed. The first covers all records from the start of the stream, as in a catch-up. It includes the
start of the query and the first batch, whose cost does not depend on the number of records. The second covers only
the records after the first batch. All records are in the topic before a stream starts. `python -m
tests.benchmarks.bench_pipelines_python [--records N] [--keys N] [--repeats N]`.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table
from tests.benchmarks.bench_pipelines_catchup import CATCHUP_TOPIC, format_spread, time_rival
from tests.benchmarks.rivals import (
    KEY_COUNT,
    BenchScene,
    EngineRival,
    NativeRival,
    open_scene,
    plan_mean_by_device,
    read_parsed,
    start_load,
)

from penstock.engine.definition.user_functions import function_ref
from penstock.engine.functions.stateful import KeyContext, KeyUpdate, OutputRow
from penstock.engine.functions.vectorized import KeyBatchContext, KeyBatchUpdate
from penstock.engine.plan.sources import Column
from penstock.engine.plan.stages import Plan
from penstock.engine.plan.stateful_function import StatefulFunction, state_type
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.spark.kafka.checkpoint_offsets import read_batch_ranges
from penstock.engine.triggers.default import Default
from penstock.engine.windows.fixed import Fixed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROW_DDL = "device STRING, number BIGINT"
OVER_ROWS_LABEL, OVER_FRAMES_LABEL = "transformWithState, rows", "transformWithState, frames"


@dataclass(frozen=True)
class SeenCount:
    """The number of records of a key so far."""

    number: int = 0


def number_records(call: KeyContext[SeenCount]) -> KeyUpdate[SeenCount]:
    """Return a row for each record, with its number."""
    before = (call.state or SeenCount()).number
    rows = [OutputRow({"number": before + n}, read.time) for n, read in enumerate(call.records, start=1)]
    return KeyUpdate(SeenCount(before + len(rows)), rows)


def number_records_vectorized(calls: KeyBatchContext) -> KeyBatchUpdate:
    """Do the same as `number_records`, for all keys of a batch."""
    key = calls.records.column("_key").to_numpy()
    before = calls.states.column("number").fill_null(0).to_numpy()
    starts = np.searchsorted(key, np.arange(len(before)))
    number = before[key] + np.arange(len(key)) - starts[key] + 1
    after = before + np.bincount(key, minlength=len(before))
    rows = pa.table({"_key": key, "_at": calls.records.column("_time"), "number": number})
    return KeyBatchUpdate(pa.table({"number": after}), rows)


def plan_stateful(*, vectorized: bool = False) -> Plan:
    """Return a plan of the stateful function."""
    plan = plan_mean_by_device(CATCHUP_TOPIC, Fixed(10_000))
    function = function_ref(number_records_vectorized if vectorized else number_records)
    returns = (Column("number", "BIGINT"),)
    window = StatefulFunction(function, state_type(SeenCount), returns, vectorized=vectorized)
    stage = replace(
        plan.only_stage, window=window, aggregates=(), trigger=Default(), sinks=(PaneLog("bench"),)
    )
    return replace(plan, stages=(stage,))


def make_processors() -> tuple[Any, Any]:
    """Return the processors of the rivals: over rows, and over frames."""
    import pandas as pd
    from pyspark.sql import Row as SparkRow
    from pyspark.sql.streaming import StatefulProcessor

    class OverRows(StatefulProcessor):
        """Numbers the records of a key, one by one."""

        def init(self, handle: Any) -> None:
            """Declare the state."""
            self.count = handle.getValueState("count", "number BIGINT")

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
            """Return a row for each record of a key."""
            number = self.count.get()[0] if self.count.exists() else 0
            for _ in rows:
                number += 1
                yield SparkRow(device=key[0], number=number)
            self.count.update((number,))

        def close(self) -> None:
            """Do nothing: no resource is open."""

    class OverFrames(OverRows):
        """Numbers the records of a key, frame by frame."""

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
            """Return a row for each record of a key."""
            number = self.count.get()[0] if self.count.exists() else 0
            for frame in rows:
                numbers = range(number + 1, number + len(frame) + 1)
                number += len(frame)
                yield pd.DataFrame({"device": key[0], "number": numbers})
            self.count.update((number,))

    return OverRows(), OverFrames()


@dataclass
class NativeStateful(NativeRival):
    """`transformWithState` in Python over a topic, its rows appended to a Delta table."""

    frames: bool = False

    def start(self) -> None:
        """Start the query."""
        folder = self.scene.new_folder("stateful")
        checkpoint, table = folder / "checkpoint", str(folder / "table")

        def write(rows: "DataFrame", batch: int) -> None:
            writer = rows.write.format("delta").mode("append")
            writer.option("txnAppId", "stateful").option("txnVersion", batch).save(table)
            spans = [(span.partition, span.start, span.end) for span in read_batch_ranges(checkpoint, batch)]
            self.committed.append((time.time(), spans))

        self.scene.session.conf.set(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        grouped = read_parsed(self.scene, self.topic, self.records_per_batch).groupBy("device")
        over_rows, over_frames = make_processors()
        if self.frames:
            rows = grouped.transformWithStateInPandas(over_frames, ROW_DDL, "Append", "None")
        else:
            rows = grouped.transformWithState(over_rows, ROW_DDL, "Append", "None")
        writer = rows.writeStream.outputMode("append").foreachBatch(write)
        self.query = writer.option("checkpointLocation", str(checkpoint)).start()


@dataclass(frozen=True)
class CatchupRates:
    """Records per second: of all records from the start of the stream, and of those after the first batch."""

    from_start: float
    after_first_batch: float


def measure_rates(rival: EngineRival | NativeRival, records: int) -> CatchupRates:
    """Run a variant over all records, and return its rates."""
    seconds = time_rival(rival, records)
    batches = [(at, sum(end - start for _, start, end in spans)) for at, spans in rival.committed]
    (first, first_count), *_, (last, _) = [(at, count) for at, count in batches if count]
    return CatchupRates(records / seconds, (records - first_count) / (last - first))


def main(records: int, keys: int, repeats: int) -> None:
    """Measure all variants in turns, and print throughput relative to each rival."""
    with open_scene() as scene:
        scene.broker.create_topic(CATCHUP_TOPIC, 2)
        start_load(scene.broker.bootstrap, CATCHUP_TOPIC, 0, records, keys).wait()
        variants: dict[str, Callable[[BenchScene], EngineRival | NativeRival]] = {
            OVER_ROWS_LABEL: lambda scene: NativeStateful(scene, CATCHUP_TOPIC),
            OVER_FRAMES_LABEL: lambda scene: NativeStateful(scene, CATCHUP_TOPIC, frames=True),
            "stateful": lambda scene: EngineRival(scene, plan_stateful()),
            "stateful, vectorized": lambda scene: EngineRival(scene, plan_stateful(vectorized=True)),
            "fixed windows": lambda scene: EngineRival(
                scene, plan_mean_by_device(CATCHUP_TOPIC, Fixed(10_000))
            ),
        }
        for make in variants.values():
            time_rival(make(scene), records)
        measured = {name: [] for name in variants}  # type: dict[str, list[CatchupRates]]
        for _ in range(repeats):
            for name, make in variants.items():
                measured[name].append(measure_rates(make(scene), records))
    title = f"{records:,} records, {keys:,} keys, {repeats} repeats: median (min to max)"
    from_start = {name: [rates.from_start for rates in all_rates] for name, all_rates in measured.items()}
    after_first_batch = {
        name: [rates.after_first_batch for rates in all_rates] for name, all_rates in measured.items()
    }
    Console().print(tabulate_rates(f"{title}, from the start of the stream", from_start))
    Console().print(tabulate_rates(f"{title}, after the first batch", after_first_batch))


def tabulate_rates(title: str, rates_by_variant: Mapping[str, Sequence[float]]) -> Table:
    """Return a table of records per second, and their ratio to each rival in the same round."""
    table = Table("variant", "records/s", "of rows", "of frames", title=title)
    for name, rates in rates_by_variant.items():
        shares = [
            [rate / rival for rate, rival in zip(rates, rates_by_variant[against], strict=True)]
            for against in (OVER_ROWS_LABEL, OVER_FRAMES_LABEL)
        ]
        table.add_row(
            name,
            format_spread(list(rates), ",.0f"),
            *(format_spread(share, ".2f") for share in shares),
        )
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=3_000_000, help="records in the topic")
    parser.add_argument("--keys", type=int, default=KEY_COUNT, help="distinct keys")
    parser.add_argument("--repeats", type=int, default=5, help="measured rounds")
    arguments = parser.parse_args()
    if arguments.records <= 500_000:
        parser.error(
            "--records must be above 500,000: with a single batch no records are left after the first"
        )
    main(arguments.records, arguments.keys, arguments.repeats)
