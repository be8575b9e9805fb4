"""Each verb of Spark's DStreams gives the same results as its equivalent on the page."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.comparisons.dstreams.input_batches import IDLE_BATCH_COUNT, INPUT_BATCHES
from tests.comparisons.dstreams.normalization import (
    batch_second,
    normalize_dstream_batches,
    normalize_panes,
    rows_to_elements,
)
from tests.comparisons.dstreams.on_dstreams import ElementCounts, run_verbs_in_dstreams
from tests.comparisons.dstreams.on_penstock import run_verbs_here
from tests.comparisons.dstreams.verbs_page import list_named_verbs, read_verbs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPARED_SEPARATELY = ("updateStateByKey", "mapWithState")


@pytest.fixture(scope="module")
def dstream_batches(
    spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, list[ElementCounts]]:
    """The results of all verbs in DStreams, over one queue."""
    return run_verbs_in_dstreams(spark, tmp_path_factory.mktemp("dstreams"))


@pytest.fixture(scope="module")
def panes_by_verb(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, pa.Table]:
    """The panes of the equivalent of each verb."""
    return run_verbs_here(spark, tmp_path_factory.mktemp("ours"), lambda _: None)


@pytest.mark.spark
@pytest.mark.parametrize("verb", [name for name in read_verbs() if name not in COMPARED_SEPARATELY])
def test_a_verb_gives_the_same_batches(
    dstream_batches: Mapping[str, list[ElementCounts]], panes_by_verb: Mapping[str, pa.Table], verb: str
) -> None:
    batches = normalize_panes(verb, panes_by_verb[verb])
    assert batches == normalize_dstream_batches(verb, dstream_batches[verb])
    assert sum(batch.total() for batch in batches) >= len(list(filter(any, INPUT_BATCHES)))


@pytest.mark.spark
def test_the_latest_values_equal_the_updated_state(
    dstream_batches: Mapping[str, list[ElementCounts]], panes_by_verb: Mapping[str, pa.Table]
) -> None:
    changes = rows_to_elements(panes_by_verb["updateStateByKey"], batch_second)
    state: dict[str, int] = {}
    for batch, expected in zip(changes, dstream_batches["updateStateByKey"], strict=True):
        state |= dict(batch.elements())  # type: ignore[arg-type]  # a word and its count
        assert Counter(state.items()) == expected
    assert len(state) == 5


@pytest.mark.spark
def test_a_stateful_function_is_called_for_keys_of_the_batch_only(
    dstream_batches: Mapping[str, list[ElementCounts]], panes_by_verb: Mapping[str, pa.Table]
) -> None:
    batches = rows_to_elements(panes_by_verb["mapWithState"], batch_second)
    assert batches == dstream_batches["mapWithState"]
    assert [{word for word, _ in batch} for batch in batches] == [
        {word for line in batch for word in line.split()}
        for batch in [*INPUT_BATCHES, *[[]] * IDLE_BATCH_COUNT]
    ]


def test_the_page_has_every_verb() -> None:
    from pyspark.streaming import DStream, StreamingContext

    existing = {name for kind in (DStream, StreamingContext) for name in vars(kind) if name[0] != "_"}
    assert list_named_verbs() - {"mapWithState"} == existing, "only mapWithState does not exist in Python"
