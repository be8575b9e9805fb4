"""Measures catch-up on a full topic: each kind of window against native windows, and against parsing alone.

All variants read the same topic with equal batches, in turns, after a warm-up round. Time runs from the start of
the query to the commit of the last record. `python -m tests.benchmarks.bench_pipelines_catchup [--records N]
[--keys N] [--repeats N] [kind …]`.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Mapping

from rich.console import Console
from rich.table import Table
from tests.benchmarks.rivals import (
    KEY_COUNT,
    BenchScene,
    EngineRival,
    NativeRival,
    open_scene,
    plan_mean_by_device,
    read_parsed,
    start_load,
    wait_until_read,
)

from penstock.engine.definition.predicates import Comparison
from penstock.engine.windows.count_policy import CountPolicy
from penstock.engine.windows.delta_policy import DeltaPolicy
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.punctuation_policy import PunctuationPolicy
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.tumbling import Tumbling
from penstock.engine.windows.window import Window

CATCHUP_TOPIC = "stored"
WINDOW_KINDS: Mapping[str, Window] = {
    "fixed, accumulating": Fixed(10_000),
    "fixed, retracting": Fixed(10_000),
    "sessions": Sessions(5_000),
    "count": Tumbling(CountPolicy(100)),
    "punctuation": Tumbling(PunctuationPolicy(Comparison("temperature", ">=", 79.0))),
    "delta": Tumbling(DeltaPolicy("temperature", 60.0)),
}


def time_engine(scene: BenchScene, kind: str, records: int) -> float:
    """Return the seconds until the engine has committed this many records."""
    accumulation = "retracting" if kind.endswith("retracting") else "accumulating"
    rival = EngineRival(scene, plan_mean_by_device(CATCHUP_TOPIC, WINDOW_KINDS[kind], accumulation))  # type: ignore[arg-type]
    return time_rival(rival, records)


def time_rival(rival: EngineRival | NativeRival, records: int) -> float:
    """Return the seconds from start to the commit of this many records."""
    started = time.perf_counter()
    rival.start()
    wait_until_read(rival, records)
    seconds = time.perf_counter() - started
    rival.stop()
    return seconds


def time_parsing(scene: BenchScene, records: int) -> float:
    """Return the seconds for reading and parsing alone."""
    started = time.perf_counter()
    query = (
        read_parsed(scene, CATCHUP_TOPIC, 500_000)
        .writeStream.format("noop")
        .trigger(availableNow=True)
        .option("checkpointLocation", str(scene.new_folder("parsing") / "checkpoint"))
        .start()
    )
    query.awaitTermination()
    return time.perf_counter() - started


def main(kinds: list[str], records: int, keys: int, repeats: int) -> None:
    """Measure all variants in turns, and print throughput relative to native windows and to parsing."""
    with open_scene() as scene:
        scene.broker.create_topic(CATCHUP_TOPIC, 2)
        start_load(scene.broker.bootstrap, CATCHUP_TOPIC, 0, records, keys).wait()
        variants: dict[str, Callable[[], float]] = {
            "native": lambda: time_rival(NativeRival(scene, CATCHUP_TOPIC), records),
            "parsing": lambda: time_parsing(scene, records),
            **{kind: (lambda kind=kind: time_engine(scene, kind, records)) for kind in kinds},
        }
        for run in variants.values():
            run()
        durations = {name: [] for name in variants}  # type: dict[str, list[float]]
        for _ in range(repeats):
            for name, run in variants.items():
                durations[name].append(run())
    title = f"{records:,} records, {keys:,} keys, {repeats} repeats: median (min to max)"
    table = Table("variant", "records/s", "of native", "of parsing alone", title=title)
    for name, seconds in durations.items():
        rates = [records / each for each in seconds]
        shares = [
            [rival / own for own, rival in zip(seconds, durations[against], strict=True)]
            for against in ("native", "parsing")
        ]
        table.add_row(name, format_spread(rates, ",.0f"), *(format_spread(share, ".2f") for share in shares))
    Console().print(table)


def format_spread(values: list[float], form: str) -> str:
    """Return the median with the minimum and the maximum."""
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "kinds", nargs="*", metavar="kind", help=f"windows to measure: {'; '.join(WINDOW_KINDS)}"
    )
    parser.add_argument("--records", type=int, default=1_000_000, help="records in the topic")
    parser.add_argument("--keys", type=int, default=KEY_COUNT, help="distinct keys")
    parser.add_argument("--repeats", type=int, default=5, help="measured rounds")
    arguments = parser.parse_args()
    main(arguments.kinds or list(WINDOW_KINDS), arguments.records, arguments.keys, arguments.repeats)
