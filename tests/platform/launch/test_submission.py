"""How a stream host is submitted, and which ways to do it are refused before anything is begun."""

import threading
from pathlib import Path

import pytest

from penstock.infra.local.spark_cluster import find_spark_home
from penstock.infra.readiness import READY_FILE_VARIABLE
from penstock.platform.errors import SettingsError
from penstock.platform.launch import application
from penstock.platform.launch.run_token import hold_run_token, watch_run_token
from penstock.platform.launch.submission import SparkSubmission, build_submission
from penstock.platform.settings import load_settings

APPLICATION = str(Path(application.__file__).resolve())
CLUSTER = {
    "PENSTOCK_SPARK__LAUNCH": "submit",
    "PENSTOCK_SPARK__DEPLOY_MODE": "cluster",
    "PENSTOCK_SPARK__MASTER": "k8s://https://cluster:6443",
    "PENSTOCK_CONTROL_URL": "postgresql://penstock@db/penstock",
    "PENSTOCK_KAFKA__BOOTSTRAP": "broker:9092",
}


@pytest.fixture
def submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jars: None):
    """What spark-submit is told with some variables set."""

    def submitted_with(**variables: str) -> SparkSubmission:
        for name, value in {"PENSTOCK_HOME": str(tmp_path), **variables}.items():
            monkeypatch.setenv(name, value)
        return build_submission(load_settings().settings, tmp_path / "file", tmp_path / "word")

    return submitted_with


@pytest.fixture
def jars(monkeypatch: pytest.MonkeyPatch, jar_directory: Path, spark_jar_paths: list[Path]) -> None:
    monkeypatch.setenv("PENSTOCK_JARS", str(jar_directory))


def properties(made: SparkSubmission) -> dict[str, str]:
    """What Spark reads: of a name that stands twice the last."""
    return dict(line.split(" ", 1) for line in made.properties.splitlines())


def test_as_a_client_the_host_is_here_and_finds_its_settings_in_its_variables(submitted, tmp_path) -> None:
    made = submitted(PENSTOCK_SPARK__LAUNCH="submit", PENSTOCK_SPARK__MASTER="spark://m:7077")
    assert list(made.command) == [
        str(find_spark_home() / "bin" / "spark-submit"),
        *("--master", "spark://m:7077", "--deploy-mode", "client"),
        *("--properties-file", str(tmp_path / "file"), APPLICATION, str(tmp_path / "word")),
    ]
    assert made.environment["PENSTOCK_HOME"] == str(tmp_path)
    told = properties(made)
    assert (told["spark.cores.max"], told["spark.driver.host"]) == ("2", "127.0.0.1")
    assert "spark.executor.instances" not in told


@pytest.mark.parametrize(
    ("master", "variables"),
    [("k8s://https://cluster:6443", "spark.kubernetes.driverEnv"), ("yarn", "spark.yarn.appMasterEnv")],
)
def test_on_a_cluster_the_driver_is_told_by_spark_and_listens_where_the_cluster_says(
    submitted, monkeypatch: pytest.MonkeyPatch, master: str, variables: str
) -> None:
    monkeypatch.setenv(READY_FILE_VARIABLE, "/home/ready")
    made = submitted(**{**CLUSTER, "PENSTOCK_SPARK__MASTER": master})
    assert made.command[-2] == f"local://{APPLICATION}"
    assert "PENSTOCK_HOME" not in made.environment
    told = properties(made)
    assert told[f"{variables}.PENSTOCK_KAFKA__BOOTSTRAP"] == "broker:9092"
    assert told[f"{variables}.{READY_FILE_VARIABLE}"] == "/home/ready"
    assert (told["spark.executor.instances"], told["spark.executor.cores"]) == ("2", "1")
    assert not {"spark.driver.host", "spark.driver.bindAddress", "spark.local.dir"} & told.keys()


def test_settings_of_ones_own_win_and_the_secret_of_a_master_is_in_the_file_alone(
    submitted, tmp_path: Path
) -> None:
    (tmp_path / "own").write_text("spark.driver.memory 3g\n", "utf-8")
    (tmp_path / "secret").write_text("canary", "utf-8")
    made = submitted(
        PENSTOCK_SPARK__LAUNCH="submit",
        PENSTOCK_SPARK__MASTER="spark://m:7077",
        PENSTOCK_SPARK__PROPERTIES=str(tmp_path / "own"),
        PENSTOCK_SPARK__SECRET=str(tmp_path / "secret"),
    )
    told = properties(made)
    assert (told["spark.driver.memory"], told["spark.authenticate.secret"]) == ("3g", "canary")
    assert "canary" not in f"{made.command} {made.environment}"
    with pytest.raises(SettingsError, match=r"spark\.properties names /nowhere, which cannot be read"):
        submitted(PENSTOCK_SPARK__PROPERTIES="/nowhere")


def test_a_host_on_a_cluster_has_no_port_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    here = load_settings().settings
    assert here.host_metrics_port == here.ports["host.metrics_port"] == here.host.metrics_port
    for name, value in CLUSTER.items():
        monkeypatch.setenv(name, value)
    there = load_settings().settings
    assert (there.host_metrics_port, there.ports.get("host.metrics_port")) == (0, None)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {"SPARK__MASTER": "spark://m:7077"},
            "standalone Spark does not accept Python applications in cluster mode",
        ),
        ({"SPARK__MASTER": "local[*]"}, r"does not work with local\[\*\], which is this machine"),
        ({"SPARK__LAUNCH": "session"}, 'requires spark-submit. Set spark.launch = "submit" as well'),
        ({"CONTROL_URL": ""}, "needs a control store that other machines can reach"),
        ({"KAFKA__BOOTSTRAP": ""}, "needs a broker that other machines can reach"),
        ({"SPARK__SECRET": "env:SECRET"}, "has its own secrets. Unset it"),
        (
            {"SPARK__LAUNCH": "session", "SPARK__DEPLOY_MODE": "client", "SPARK__PROPERTIES": "f"},
            "properties requires",
        ),
    ],
)
def test_conflicting_launch_settings_are_refused_in_one_sentence_at_load(
    changed: dict[str, str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**CLUSTER, **{f"PENSTOCK_{name}": value for name, value in changed.items()}}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=sentence) as refused:
        load_settings()
    assert len(str(refused.value).splitlines()) == 1


def test_a_host_ends_when_its_launchers_word_is_taken_back(tmp_path: Path) -> None:
    ended = threading.Event()
    with hold_run_token(tmp_path) as word:
        watch_run_token(word, ended.set)
        with hold_run_token(tmp_path) as other:
            assert word.exists(), "the word of a launcher that lives is let be"
        assert not other.exists()
        assert not ended.is_set()
    assert ended.wait(10)


def test_the_word_of_a_launcher_that_was_killed_is_taken_back_by_the_next(tmp_path: Path) -> None:
    left = tmp_path / "host-left"
    left.touch()
    with hold_run_token(tmp_path) as word:
        assert list(tmp_path.iterdir()) == [word]
