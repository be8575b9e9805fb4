"""Submission of a stream host with spark-submit, and refused launch settings."""

import threading
from pathlib import Path

import pytest
from tests.patience import PATIENCE_S

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
def submit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jars: None):
    """Build the submission with the given variables."""

    def build(**variables: str) -> SparkSubmission:
        for name, value in {"PENSTOCK_HOME": str(tmp_path), **variables}.items():
            monkeypatch.setenv(name, value)
        return build_submission(load_settings().settings, tmp_path / "file", tmp_path / "word")

    return build


@pytest.fixture
def jars(monkeypatch: pytest.MonkeyPatch, jar_directory: Path, spark_jar_paths: list[Path]) -> None:
    monkeypatch.setenv("PENSTOCK_JARS", str(jar_directory))


def parse_properties(submission: SparkSubmission) -> dict[str, str]:
    """Parse the properties as Spark does: the last value of a name wins."""
    return dict(line.split(" ", 1) for line in submission.properties.splitlines())


def test_in_client_mode_settings_are_environment_variables(submit, tmp_path) -> None:
    submission = submit(PENSTOCK_SPARK__LAUNCH="submit", PENSTOCK_SPARK__MASTER="spark://m:7077")
    assert list(submission.command) == [
        str(find_spark_home() / "bin" / "spark-submit"),
        *("--master", "spark://m:7077", "--deploy-mode", "client"),
        *("--properties-file", str(tmp_path / "file"), APPLICATION, str(tmp_path / "word")),
    ]
    assert submission.environment["PENSTOCK_HOME"] == str(tmp_path)
    spark_properties = parse_properties(submission)
    assert (spark_properties["spark.cores.max"], spark_properties["spark.driver.host"]) == ("2", "127.0.0.1")
    assert "spark.executor.instances" not in spark_properties


@pytest.mark.parametrize(
    ("master", "variables"),
    [("k8s://https://cluster:6443", "spark.kubernetes.driverEnv"), ("yarn", "spark.yarn.appMasterEnv")],
)
def test_in_cluster_mode_settings_are_spark_properties(
    submit, monkeypatch: pytest.MonkeyPatch, master: str, variables: str
) -> None:
    monkeypatch.setenv(READY_FILE_VARIABLE, "/home/ready")
    submission = submit(**{**CLUSTER, "PENSTOCK_SPARK__MASTER": master})
    assert submission.command[-2] == f"local://{APPLICATION}"
    assert "PENSTOCK_HOME" not in submission.environment
    spark_properties = parse_properties(submission)
    assert spark_properties[f"{variables}.PENSTOCK_KAFKA__BOOTSTRAP"] == "broker:9092"
    assert spark_properties[f"{variables}.{READY_FILE_VARIABLE}"] == "/home/ready"
    assert (spark_properties["spark.executor.instances"], spark_properties["spark.executor.cores"]) == (
        "2",
        "1",
    )
    assert not {"spark.driver.host", "spark.driver.bindAddress", "spark.local.dir"} & spark_properties.keys()


def test_user_properties_win_and_the_secret_is_only_in_the_file(submit, tmp_path: Path) -> None:
    (tmp_path / "own").write_text("spark.driver.memory 3g\n", "utf-8")
    (tmp_path / "secret").write_text("canary", "utf-8")
    submission = submit(
        PENSTOCK_SPARK__LAUNCH="submit",
        PENSTOCK_SPARK__MASTER="spark://m:7077",
        PENSTOCK_SPARK__PROPERTIES=str(tmp_path / "own"),
        PENSTOCK_SPARK__SECRET=str(tmp_path / "secret"),
    )
    spark_properties = parse_properties(submission)
    assert (spark_properties["spark.driver.memory"], spark_properties["spark.authenticate.secret"]) == (
        "3g",
        "canary",
    )
    assert "canary" not in f"{submission.command} {submission.environment}"
    with pytest.raises(SettingsError, match=r"spark\.properties names /nowhere, which cannot be read"):
        submit(PENSTOCK_SPARK__PROPERTIES="/nowhere")


def test_a_host_on_a_cluster_has_no_port_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    local_settings = load_settings().settings
    assert (
        local_settings.host_metrics_port
        == local_settings.ports["host.metrics_port"]
        == local_settings.host.metrics_port
    )
    for name, value in CLUSTER.items():
        monkeypatch.setenv(name, value)
    cluster_settings = load_settings().settings
    assert (cluster_settings.host_metrics_port, cluster_settings.ports.get("host.metrics_port")) == (0, None)


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


def test_a_host_ends_when_its_run_token_is_removed(tmp_path: Path) -> None:
    ended = threading.Event()
    with hold_run_token(tmp_path) as token:
        watch_run_token(token, ended.set)
        with hold_run_token(tmp_path) as other_token:
            assert token.exists(), "the token of a living launcher remains"
        assert not other_token.exists()
        assert not ended.is_set()
    assert ended.wait(PATIENCE_S)


def test_a_stale_run_token_is_removed_by_the_next_launcher(tmp_path: Path) -> None:
    stale = tmp_path / "host-left"
    stale.touch()
    with hold_run_token(tmp_path) as token:
        assert list(tmp_path.iterdir()) == [token]
