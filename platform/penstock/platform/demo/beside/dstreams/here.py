"""What this platform says of the same batches: each verb's line of the page, as panes."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.ingestion.contracts import load_contract
from penstock.pipelines import model
from penstock.pipelines.batch.intent import Range
from penstock.pipelines.model import Pipeline, read
from penstock.pipelines.remembering import Answer, Call, Row
from penstock.pipelines.spark.rerun import Rerun, rerun
from penstock.pipelines.spark.stored.held import Held, held_records
from penstock.platform.demo.beside.dstreams.batches import BATCHES, MORE, QUIET, SECOND
from penstock.platform.demo.beside.dstreams.page import verbs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Total:
    """How often a word was said."""

    n: int = 0


def running_count(call: Call[Total]) -> Answer[Total]:
    """Count on."""
    total = Total((call.state.n if call.state else 0) + len(call.records))
    return Answer(total, [Row({"n": total.n})])


def in_capitals(df: "DataFrame") -> "DataFrame":
    """Return words in capitals."""
    from pyspark.sql.functions import upper

    return df.withColumn("word", upper("word"))


def all_in_capitals(words: pa.Table) -> pa.Table:
    """Return words in capitals, all at once."""
    return words.set_column(words.column_names.index("word"), "word", pc.utf8_upper(words["word"]))


def words_of(line: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the words of a line."""
    return [{"word": word, "text": line["text"]} for word in line["text"].split()]


def length_of(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return how long a line is."""
    return {"length": len(line["text"])}


SETTING = """
made = {"word": "STRING", "text": "STRING"}
words = lines.flat_map(words_of, returns=made)
more_words = more.flat_map(words_of, returns=made)
first_word = lines.sql("SELECT *, split(text, ' ')[0] AS first FROM input")
batch = fixed("1 second", time="processing")
window = sliding("3 seconds", "1 second", time="processing")
"""
OWN = (running_count, Total, in_capitals, all_in_capitals, words_of, length_of)


def stored(spark: "SparkSession", topics: Mapping[str, list[list[str]]]) -> tuple[Held, list[Rerun]]:
    """Return the batches as records of topics: each read in the middle of its second, and a tick after it."""
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


def known() -> dict[str, Any]:
    """Return what the page's code finds of ours."""
    topics = {
        "lines": load_contract("lines"),
        "more": replace(load_contract("lines"), topic="more"),
    }

    def reading(*names: str) -> Pipeline:
        return read(*(topics[name] for name in names))

    names: dict[str, Any] = {name: getattr(model, name) for name in model.__all__}
    names |= {each.__name__: each for each in OWN}
    names |= {"read": reading, "lines": reading("lines"), "more": reading("more")}
    exec(SETTING, names)  # noqa: S102  written above
    return names


def by_this_platform(spark: "SparkSession", folder: Path, tell: Tell) -> Mapping[str, pa.Table]:
    """Return every pane of each verb. Verbs that read the same topics run in one pass."""
    together = defaultdict[Any, dict[str, Pipeline]](dict)
    for verb, pipeline in pipelines().items():
        together[tuple(source.name for source in pipeline.to_plan(_table_of(verb)).sources)][verb] = pipeline
    contents, found = {"lines": BATCHES, "more": MORE}, {}
    for topics, of_topics in together.items():
        (first, pipeline), *others = of_topics.items()
        plan = pipeline.also(*(each for _, each in others)).to_plan(_table_of(first))
        tell(f"{len(of_topics)} verbs over {' and '.join(topics)}")
        held, batches = stored(spark, {topic: contents[topic] for topic in topics})
        panes = rerun(plan, spark, held, batches, folder / "-".join(topics), lambda _: None)
        for verb in of_topics:
            shown = panes.of(_table_of(verb))
            found[verb] = shown.filter(pc.equal(shown.column("kind"), "insert"))
    return found


def pipelines() -> Mapping[str, Pipeline]:
    """Return the line of each verb, with a log of its panes."""
    names, found = known(), {}
    for verb, (_, code) in verbs().items():
        exec(code, names)  # noqa: S102  the page of this checkout, as it stands
        found[verb] = names["ours"].write(_table_of(verb), mode="log")
    return found


def _table_of(verb: str) -> str:
    return verb.replace(" ", "_")
