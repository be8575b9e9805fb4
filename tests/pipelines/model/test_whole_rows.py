"""A join that names no columns takes all of both inputs, whatever they are called."""

import pytest

from penstock.ingestion.contracts.model import Contract, Field
from penstock.pipelines.model import Pipeline, count, fixed, join, read
from penstock.pipelines.plan.joins import KINDS


def per_minute(topic: str, key: str) -> Pipeline:
    """A stage over a topic."""
    counted = read(topic).key(key).aggregate(**{topic.replace("-", "_"): count()})
    return counted.window(fixed("1 minute")).write(f"{topic}_minute")


@pytest.mark.parametrize("how", KINDS)
def test_stages_are_joined_without_naming_columns(how: str) -> None:
    sides = (per_minute("impressions", "id"), per_minute("ad-clicks", "id"))
    plan = join(*sides, by="id", how=how).write("seen", mode="log").plan
    joined = plan.stages[-1].join
    assert joined is not None
    of_left = ["impressions", "impressions_minute_window_end", "impressions_minute_window_start"]
    of_right = ["ad_clicks", "ad-clicks_minute_window_end", "ad-clicks_minute_window_start"]
    expected = of_left if how in ("semi", "anti") else [*of_left, *of_right]
    assert [column.name for column in joined.columns] == expected


def test_a_field_that_is_called_as_a_column_of_panes_stands_behind_its_inputs_name() -> None:
    fields = (
        Field("id", "string", "An id."),
        Field("at", "timestamp", "A time."),
        Field("kind", "string", "A kind."),
    )
    events = Contract("events", "Events.", fields, event_time="at")
    plan = join(read(events), read("ad-clicks"), by="id", how="semi").window(fixed("1 minute"))
    joined = plan.write("seen", mode="log").plan.stage.join
    assert joined is not None
    assert [column.name for column in joined.columns] == ["at", "events_kind"]
