"""Each verb of Spark's DStreams and its line here, as the page teaches them, say the same of the same batches."""

import json
import re
import threading
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.pipelines.stored import Held, held_records

from penstock.ingestion.contracts import load_contract
from penstock.pipelines import model
from penstock.pipelines.batch.intent import Range
from penstock.pipelines.model import Pipeline, read
from penstock.pipelines.remembering import Answer, Call, Row
from penstock.pipelines.spark.rerun import Rerun, rerun

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.streaming import DStream, StreamingContext

PAGE = Path(__file__).parents[3] / "pipelines" / "docs" / "dstreams.md"
BATCHES = [
    ["to be or", "not to be"],
    [],
    ["be quick"],
    ["or not", "or quick be"],
    ["to to to"],
    [],
    ["quick be"],
]
MORE = [["that is not to"], ["the question"], [], ["or not", "be"], ["that"], [], []]
QUIET = 3
"""Batches without a record at the end, in which windows run out."""
SECOND = 1_000
PATIENCE_S = 120
Elements = Counter[tuple[Any, ...]]


@dataclass(frozen=True)
class Total:
    """How often a word was said."""

    n: int = 0


def running_count(call: Call[Total]) -> Answer[Total]:
    """Count on."""
    total = Total((call.state.n if call.state else 0) + len(call.records))
    return Answer(total, [Row({"n": total.n})])


def in_capitals(df: "DataFrame") -> "DataFrame":
    """Words in capitals."""
    from pyspark.sql.functions import upper

    return df.withColumn("word", upper("word"))


def words_of(line: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The words of a line."""
    return [{"word": word, "text": line["text"]} for word in line["text"].split()]


def length_of(line: Mapping[str, Any]) -> dict[str, Any]:
    """How long a line is."""
    return {"length": len(line["text"])}


def first_of(pair: tuple[int, int]) -> int:
    return pair[0]


def verbs() -> Mapping[str, str]:
    """The code of each verb, by its name, as the page has it."""
    sections = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]
    found = {
        part.partition("\n")[0]: re.search(r"```python\n(theirs = .*?)```", part, re.DOTALL)
        for part in sections
    }
    return {name: code.group(1) for name, code in found.items() if code is not None}


VERBS = verbs()


@dataclass
class Heard:
    """What each verb said in each batch of Spark's, by the time of the batch."""

    batches: dict[str, dict[Any, list[Any]]] = field(default_factory=dict)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def listen(self, name: str, stream: "DStream[Any]") -> None:
        self.batches[name] = {}

        def hear(time: Any, rdd: Any) -> None:
            tell(name, time, rdd.collect())

        stream.foreachRDD(hear)

    def note(self, name: str, time: Any, said: list[Any]) -> None:
        with self.changed:
            self.batches[name][time] = said
            self.changed.notify_all()

    def until(self, batches: int) -> None:
        def done() -> bool:
            return all(len(mine) >= batches for mine in self.batches.values())

        with self.changed:
            assert self.changed.wait_for(done, PATIENCE_S), {n: len(b) for n, b in self.batches.items()}


HEARD = Heard()


def tell(name: str, time: Any, said: list[Any]) -> None:
    """Note what a verb said. Spark's checkpoint pickles what calls this, and must find nothing in it that waits."""
    HEARD.note(name, time, said)


@pytest.fixture(scope="module")
def theirs(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[Elements]]:
    """What DStreams say of each batch: all verbs at once, over the same queue."""
    from pyspark.streaming import StreamingContext

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # it is deprecated, which is why people come from it
        ssc = StreamingContext(spark.sparkContext, 1)
    ssc.checkpoint(str(tmp_path_factory.mktemp("dstreams")))
    heard = HEARD
    try:
        names = there(ssc, spark)
        for name, code in VERBS.items():
            told = dict(names)
            exec(code.partition("\nours")[0], told)
            heard.listen(name, told["theirs"])
        ssc.start()
        heard.until(len(BATCHES) + QUIET)
    finally:
        ssc.stop(stopSparkContext=False, stopGraceFully=False)
    return {name: in_order(mine) for name, mine in heard.batches.items()}


def in_order(mine: Mapping[Any, list[Any]]) -> list[Elements]:
    """The batches of a verb, from the first on."""
    return [Counter(map(flat, mine[time])) for time in sorted(mine)][: len(BATCHES) + QUIET]


def there(ssc: "StreamingContext", spark: "SparkSession") -> Mapping[str, Any]:
    """What the page's code finds of Spark's."""
    queues = [[spark.sparkContext.parallelize(batch, 1) for batch in each] for each in (BATCHES, MORE)]
    lines, more = (ssc.queueStream(queue) for queue in queues)
    words = lines.flatMap(lambda line: line.split())
    pairs = words.map(lambda word: (word, 1))
    said, also = (
        each.flatMap(lambda line: [(word, line) for word in line.split()]) for each in (lines, more)
    )
    return {
        "said": said,
        "also": also,
        "lines": lines,
        "more": more,
        "words": words,
        "pairs": pairs,
        "first_of": first_of,
    }


def flat(element: Any) -> tuple[Any, ...]:
    """An element as a row has it: a key, and what is said of it."""
    return element if isinstance(element, tuple) else (element,)


def stored(spark: "SparkSession", topics: Mapping[str, list[list[str]]]) -> tuple[Held, list[Rerun]]:
    """The same batches as records of topics: each read in the middle of its second, and a tick after it."""
    values: dict[str, list[bytes]] = {topic: [] for topic in topics}
    batches = []
    for number in range(len(BATCHES) + QUIET):
        clock = number * SECOND + SECOND // 2
        ranges = []
        for topic, content in topics.items():
            said = content[number] if number < len(content) else []
            begin = len(values[topic])
            values[topic] += [json.dumps({"at": clock, "text": text}).encode() for text in said]
            ranges += [Range(topic, 0, begin, begin + len(said))] if said else []
        batches += [Rerun(clock, tuple(ranges))] if ranges else []
        batches.append(Rerun((number + 1) * SECOND))
    batches += [Rerun((len(BATCHES) + QUIET + more) * SECOND) for more in range(1, QUIET + 1)]
    return held_records(spark, values), batches


def here() -> dict[str, Any]:
    """What the page's code finds of ours."""
    names: dict[str, Any] = {name: getattr(model, name) for name in model.__all__}
    more = replace(load_contract("lines"), topic="more")
    known = {"lines": load_contract("lines"), "more": more}

    def reading(*topics: str) -> Pipeline:
        return read(*(known[topic] for topic in topics))

    lines = reading("lines")
    own = {
        "read": reading,
        "lines": lines,
        "running_count": running_count,
        "Total": Total,
        "in_capitals": in_capitals,
    }
    own |= {"words_of": words_of, "length_of": length_of, "more": reading("more")}
    setting = """
made = {"word": "STRING", "text": "STRING"}
words = lines.flat_map(words_of, returns=made)
more_words = more.flat_map(words_of, returns=made)
first_word = lines.sql("SELECT *, split(text, ' ')[0] AS first FROM input")
batch = fixed("1 second", time="processing")
window = sliding("3 seconds", "1 second", time="processing")
"""
    names |= own
    exec(setting, names)
    return names


@pytest.fixture(scope="module")
def ours(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, pa.Table]:
    """Every pane of each verb of ours. Verbs that read the same topics run in one pass."""
    names, together = here(), defaultdict[Any, dict[str, Pipeline]](dict)
    for verb, code in VERBS.items():
        exec("ours" + code.partition("\nours")[2], names)
        pipeline: Pipeline = names["ours"].write(verb, mode="log")
        together[tuple(source.name for source in pipeline.to_plan(verb).sources)][verb] = pipeline
    contents, found = {"lines": BATCHES, "more": MORE}, {}
    for topics, of_topics in together.items():
        (first, pipeline), *others = of_topics.items()
        plan = pipeline.also(*(each for _, each in others)).to_plan(first)
        held, batches = stored(spark, {topic: contents[topic] for topic in topics})
        panes = rerun(plan, spark, held, batches, tmp_path_factory.mktemp("ours"), lambda _: None)
        for verb in of_topics:
            shown = panes.of(verb)
            found[verb] = shown.filter(pa.compute.equal(shown.column("kind"), "insert"))
    return found


def said(panes: pa.Table, second: Callable[[Mapping[str, Any]], int]) -> list[Elements]:
    """What rows say, by second: their key and values, or the elements of a list."""
    found = [Counter[tuple[Any, ...]]() for _ in range(len(BATCHES) + QUIET)]
    names = panes.column_names[: panes.column_names.index("window_start")]
    for row in panes.to_pylist():
        at = second(row)
        if at >= len(found):
            continue
        if names == ["elements"]:
            found[at].update((element,) for element in row["elements"])
        else:
            values = (row[name] for name in names)
            found[at][tuple(tuple(sorted(v)) if isinstance(v, list) else v for v in values)] += 1
    return found


def of_window(row: Mapping[str, Any]) -> int:
    return round(row["window_end"].timestamp()) - 1


def of_batch(row: Mapping[str, Any]) -> int:
    return int(row["batch_clock"].timestamp())


def without_zeros(batches: list[Elements]) -> list[Elements]:
    """There an empty batch counts 0, and here nothing is said of it."""
    return [Counter({said: count for said, count in batch.items() if said != (0,)}) for batch in batches]


OTHERWISE = ("updateStateByKey", "mapWithState")


@pytest.mark.spark
@pytest.mark.parametrize("verb", [name for name in VERBS if name not in OTHERWISE])
def test_a_verb_says_the_same_of_every_batch(
    theirs: Mapping[str, list[Elements]], ours: Mapping[str, pa.Table], verb: str
) -> None:
    found = said(ours[verb], of_window)
    assert found == without_zeros(theirs[verb])
    assert sum(batch.total() for batch in found) >= len(list(filter(any, BATCHES)))


@pytest.mark.spark
def test_the_newest_values_are_the_state_that_is_updated_by_key(
    theirs: Mapping[str, list[Elements]], ours: Mapping[str, pa.Table]
) -> None:
    changes = said(ours["updateStateByKey"], of_batch)
    state: dict[str, int] = {}
    for batch, whole in zip(changes, theirs["updateStateByKey"], strict=True):
        state |= dict(batch.elements())  # type: ignore[arg-type]  # a word and its count
        assert Counter(state.items()) == whole
    assert len(state) == 5


@pytest.mark.spark
def test_a_function_with_a_memory_is_called_for_the_keys_of_a_batch_alone(
    theirs: Mapping[str, list[Elements]], ours: Mapping[str, pa.Table]
) -> None:
    found = said(ours["mapWithState"], of_batch)
    assert found == theirs["mapWithState"]
    assert [{word for word, _ in batch} for batch in found] == [
        {word for line in batch for word in line.split()} for batch in [*BATCHES, *[[]] * QUIET]
    ]


def test_the_page_has_every_verb_that_computes() -> None:
    from pyspark.streaming import DStream

    text = PAGE.read_text("utf-8")
    computing = {name for name in vars(DStream) if not name.startswith("_")} - PLUMBING
    assert {name for name in computing if f"{name}" not in text} == set()


PLUMBING = {
    *(
        "context",
        "mapPartitions",
        "mapPartitionsWithIndex",
        "mapValues",
        "combineByKey",
        "transformWith",
        "slice",
    ),
    "groupByKeyAndWindow",
}
