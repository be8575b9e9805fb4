"""Each verb of Spark's DStreams and its line here, as the page teaches them, say the same of the same batches."""

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.pipelines.dstreams.batches import BATCHES, MORE, QUIET, SECOND, clock_of_ours, set_clock
from tests.pipelines.dstreams.page import named, verbs
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

PATIENCE_S = 300
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


def all_in_capitals(words: pa.Table) -> pa.Table:
    """Words in capitals, all at once."""
    return words.set_column(words.column_names.index("word"), "word", pc.utf8_upper(words["word"]))


def words_of(line: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The words of a line."""
    return [{"word": word, "text": line["text"]} for word in line["text"].split()]


def length_of(line: Mapping[str, Any]) -> dict[str, Any]:
    """How long a line is."""
    return {"length": len(line["text"])}


def first_of(pair: tuple[int, int]) -> int:
    return pair[0]


VERBS = verbs()


class Heard:
    """What DStreams said, by the time of the batch."""

    def __init__(self) -> None:
        self.batches: dict[Any, list[tuple[str, Any]]] = {}
        self.changed = threading.Condition()

    def note(self, time: Any, rdd: Any) -> None:
        said = rdd.collect()
        with self.changed:
            self.batches[time] = said
            self.changed.notify_all()

    def until(self, batches: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.batches) >= batches, PATIENCE_S), len(self.batches)


HEARD = Heard()


def hear(time: Any, rdd: Any) -> None:
    """Note a batch. Spark's checkpoint pickles what calls this, and must find nothing in it that waits."""
    HEARD.note(time, rdd)


@pytest.fixture(scope="module")
def theirs(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[Elements]]:
    """What DStreams say of each batch: all verbs at once, over the same queue, as elements of one stream."""
    from pyspark.streaming import StreamingContext

    with clock_of_ours(spark):
        ssc = StreamingContext(spark.sparkContext, 1)
        ssc.checkpoint(str(tmp_path_factory.mktemp("dstreams")))
        try:
            ssc.union(*told_apart(there(ssc, spark))).foreachRDD(hear)
            ssc.start()
            set_clock(ssc, len(BATCHES) + QUIET)
            HEARD.until(len(BATCHES) + QUIET)
        finally:
            ssc.stop(stopSparkContext=False, stopGraceFully=False)
    in_order = [HEARD.batches[time] for time in sorted(HEARD.batches)]
    return {
        verb: [Counter(flat(said) for name, said in batch if name == verb) for batch in in_order]
        for verb in VERBS
    }


def told_apart(names: Mapping[str, Any]) -> "Iterator[DStream[tuple[str, Any]]]":
    """The stream of each verb, whose elements say of which verb they are: one job says them all."""
    for verb, (code, _) in VERBS.items():
        told = dict(names)
        exec(code, told)
        yield told["theirs"].map(lambda element, verb=verb: (verb, element))


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
        "all_in_capitals": all_in_capitals,
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
    for verb, (_, code) in VERBS.items():
        exec(code, names)
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
            found[verb] = shown.filter(pc.equal(shown.column("kind"), "insert"))
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
            found[at][tuple(in_any_order(row[name], panes.schema.field(name).type) for name in names)] += 1
    return found


def in_any_order(value: Any, kind: pa.DataType) -> Any:
    """A value as it is; a list without its order, and empty where nothing was in it."""
    return tuple(sorted(value or ())) if pa.types.is_list(kind) else value


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


def test_the_page_has_every_verb_that_there_is() -> None:
    from pyspark.streaming import DStream, StreamingContext

    there_are = {name for kind in (DStream, StreamingContext) for name in vars(kind) if name[0] != "_"}
    assert named() - {"mapWithState"} == there_are, "mapWithState alone never came to Python"
