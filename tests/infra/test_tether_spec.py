"""The specification that a tether reads."""

from pathlib import Path

from penstock.infra.processes import Program
from penstock.infra.tether_spec import TetherSpec


def test_a_tether_spec_is_read_as_it_was_written(tmp_path: Path) -> None:
    program = Program(
        "pump",
        ("run", "it's", "100%", "a\nb"),
        directory=tmp_path,
        environment={"A": "'\"%(x)s"},
        waits_for=(("127.0.0.1", 1), ("127.0.0.1", 2)),
        answers_at=("127.0.0.1", 3),
    )
    spec = program.to_tether_spec(tmp_path / "state.json")
    (tmp_path / "spec.json").write_text(spec.as_json())
    assert TetherSpec.read(tmp_path / "spec.json") == spec
