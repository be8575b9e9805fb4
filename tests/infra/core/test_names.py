"""Suggestions for unknown names."""

import pytest

from penstock.core.names import explain_unknown_name, find_nearest_name, list_names, with_article

STREAMS = ["sensor_minute", "sensor_hour", "hashtags", "funnel", "trending", "word_count"]
MANY_STREAMS = [*STREAMS, "bids", "cards", "visits"]


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("sensor_minut", "sensor_minute"),
        ("Sensor_Minute", "sensor_minute"),
        ("wordcount", "word_count"),
        ("nonsense", None),
        ("", None),
    ],
)
def test_the_nearest_name_is_found(name: str, nearest: str | None) -> None:
    assert find_nearest_name(name, STREAMS) == nearest


def test_a_similar_name_is_suggested() -> None:
    text = explain_unknown_name("stream", "sensor_minut", STREAMS, "penstock demo --list")
    assert text == "there is no stream 'sensor_minut'. Did you mean 'sensor_minute'?"


@pytest.mark.parametrize(
    ("known", "text"),
    [
        (MANY_STREAMS, "there is no stream 'xyz'; `penstock demo --list` lists all 9"),
        (STREAMS[:2], "there is no stream 'xyz'; known names: sensor_minute, sensor_hour"),
        ([], "there is no stream 'xyz', and no other stream either"),
    ],
)
def test_without_a_similar_name_the_message_says_where_names_are_listed(known: list[str], text: str) -> None:
    assert explain_unknown_name("stream", "xyz", known, "penstock demo --list") == text


def test_a_long_list_without_a_command_is_not_printed() -> None:
    assert explain_unknown_name("stream", "xyz", MANY_STREAMS) == (
        "there is no stream 'xyz', and none of the 9 known names is similar"
    )


@pytest.mark.parametrize("word", ["avg", "AVG", "a_v-g"])
def test_a_word_of_another_system_is_a_synonym(word: str) -> None:
    assert find_nearest_name(word, ["mean", "max"], {"avg": "mean"}) == "mean"
    assert find_nearest_name(word, ["max"], {"avg": "mean"}) is None


def test_a_short_list_is_printed_in_full_and_of_a_long_one_the_nearest_names() -> None:
    assert list_names("hour", STREAMS[:3]) == "sensor_minute, sensor_hour, hashtags"
    assert list_names("hashtag", MANY_STREAMS).startswith("hashtags, ")
    assert list_names("hashtag", MANY_STREAMS).endswith(" and 1 more")
    assert list_names("x", []) == "none"


def test_a_noun_gets_its_article() -> None:
    assert [with_article(noun) for noun in ("aggregate", "sink")] == ["an aggregate", "a sink"]
