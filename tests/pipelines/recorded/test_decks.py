"""The small examples by which the field is taught."""

from tests.pipelines.oracles import oracle_document

from penstock.pipelines.transcripts import ReferenceEngine, run_nodes


def test_no_element_of_the_watermarked_stream_is_late() -> None:
    arrivals = oracle_document("decks/cases.json")["watermark_stream"]["arrivals"]
    steps = [
        # W(t): no element at or before t is expected any more, which is our watermark t + 1.
        {"watermark": int(item[2:-1]) + 1}
        if isinstance(item, str)
        else {"elements": [{"value": item, "ts": item}]}
        for item in arrivals
    ]
    case = {
        "id": "watermark_stream",
        "window": {"type": "fixed", "size": 1},
        "trigger": {"type": "default"},
        "steps": [*steps, {"watermark": "inf"}, {"expect_late": []}],
        "combine": "count",
        "expect_all": [
            {"window": [time, time + 1], "count": count}
            for time in sorted({item for item in arrivals if isinstance(item, int)})
            if (count := arrivals.count(time))
        ],
    }
    (verdict,) = run_nodes([case], ReferenceEngine())
    assert verdict.ok, (verdict.expected, verdict.got)


def test_the_question_how_is_answered_three_ways() -> None:
    """Sums per hour, every ten minutes of processing time if there is something new."""
    question = oracle_document("decks/cases.json")["dataflow_questions"]
    assert question["how"] == ["discarding", "accumulating", "accumulating and retracting"]
    shown = {}
    for how in question["how"]:
        case = {
            "id": how,
            "unit": "min",
            "window": {"type": "fixed", "size": 60},
            "trigger": {"type": "repeatedly", "of": {"type": "every", "period": 10}},
            "accumulation": how.replace(" ", "_"),
            "combine": "sum",
            "steps": [
                {"elements": [{"key": "k", "value": 3, "ts": 5}]},
                {"processing_time": 10},
                {"elements": [{"key": "k", "value": 4, "ts": 6}]},
                {"processing_time": 20},
                {"processing_time": 30},
                {"expect": []},
            ],
        }
        (verdict,) = run_nodes([case], ReferenceEngine())
        shown[how] = [(pane["kind"], pane["sum"]) for pane in verdict.got[0]]
    assert shown == {
        "discarding": [("insert", 3), ("insert", 4)],
        "accumulating": [("insert", 3), ("insert", 7)],
        "accumulating and retracting": [("insert", 3), ("retract", 3), ("insert", 7)],
    }
