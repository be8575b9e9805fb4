"""Records that a replay leaves out."""

from pathlib import Path

import pytest

from penstock.platform.errors import RecordAddressError
from penstock.platform.services.left_out_records import store_left_out
from penstock.platform.services.stream_catalog import load_plan
from penstock.quality.quarantine.quarantined_records import RecordPosition


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "sensors/0:4711",
            r"'sensors/0:4711' is not the address of a record\. Write .* such as sensors/0@4711",
        ),
        ("0@4711", r"'0@4711' is not the address of a record"),
        ("clicks/0@4711", r"clicks/0@4711: sensor_minute does not read clicks\. It reads sensors"),
    ],
)
def test_another_text_is_refused_and_nothing_is_stored(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RecordAddressError, match=message):
        store_left_out(tmp_path / "replay", load_plan("sensor_minute"), [text])
    assert not (tmp_path / "replay").exists()


def test_a_resumed_replay_leaves_out_the_same_records(tmp_path: Path) -> None:
    plan, first, second = (
        load_plan("sensor_minute"),
        ("sensors", RecordPosition(0, 7)),
        ("sensors", RecordPosition(2, 1)),
    )
    assert store_left_out(tmp_path, plan, []) == []
    assert store_left_out(tmp_path, plan, ["sensors/0@7"]) == [first]
    assert store_left_out(tmp_path, plan, []) == [first]
    assert store_left_out(tmp_path, plan, ["sensors/2@1"]) == [first, second]
