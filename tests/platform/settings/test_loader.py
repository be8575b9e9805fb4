"""Sources of settings, and errors of invalid ones."""

from pathlib import Path

import pytest

from penstock.core.errors import SecretError
from penstock.platform.errors import SettingsError
from penstock.platform.settings import SettingOrigin, Settings, load_settings
from penstock.platform.settings.environment_variables import settings_to_variables
from penstock.platform.settings.naming import iter_setting_names, variable_name


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to read settings from, and no variable left over from the caller."""
    for name in iter_setting_names():
        monkeypatch.delenv(variable_name(name), raising=False)
    monkeypatch.setenv("PENSTOCK_ROOT", str(tmp_path))
    return tmp_path


def write_settings_file(folder: Path, text: str) -> None:
    (folder / "penstock.toml").write_text(text, encoding="utf-8")


def test_defaults_keep_everything_in_the_checkout(checkout: Path) -> None:
    settings = load_settings().settings
    assert settings.home == checkout / ".penstock"
    assert settings.warehouse == str(checkout / ".penstock/warehouse")
    assert settings.control_url == f"sqlite:///{checkout}/.penstock/control.db"
    assert settings.kafka.bootstrap_servers == "127.0.0.1:9092"


def test_a_variable_wins_over_the_file_and_the_file_over_the_default(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings_file(checkout, "[kafka]\nport = 19092\ncontroller_port = 19093\n")
    monkeypatch.setenv("PENSTOCK_KAFKA__PORT", "29092")
    loaded = load_settings()
    assert (loaded.settings.kafka.port, loaded.settings.kafka.controller_port) == (29092, 19093)
    origins = {setting.name: (setting.origin, setting.source) for setting in loaded.list_provenance()}
    assert origins["kafka.port"] == (SettingOrigin.VARIABLE, "PENSTOCK_KAFKA__PORT")
    assert origins["kafka.controller_port"] == (SettingOrigin.FILE, "penstock.toml")
    assert origins["kafka.heap_mb"] == (SettingOrigin.DEFAULT, "")


def test_every_setting_has_a_description_and_a_variable_that_sets_it() -> None:
    assert [setting.name for setting in load_settings().list_provenance() if not setting.description] == []
    assert [setting.name for setting in load_settings().list_provenance()] == list(iter_setting_names())


def test_an_empty_variable_sets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_KAFKA__PORT", "")
    assert load_settings().origin_of("kafka.port") is SettingOrigin.DEFAULT


def test_relative_folders_start_from_the_checkout(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", "elsewhere")
    monkeypatch.setenv("PENSTOCK_WAREHOUSE", "s3://bucket/tables")
    settings = load_settings().settings
    assert settings.home == checkout / "elsewhere"
    assert settings.warehouse == "s3://bucket/tables"


SECURED = """
[kafka]
bootstrap = "b:1"
[kafka.security]
protocol = "SASL_SSL"
mechanism = "SCRAM-SHA-512"
ca = "/ca.pem"
[kafka.security.secrets]
host = "PLACE"
"""


@pytest.mark.parametrize("text", ["a, b", "a,b,"])
def test_streams_are_a_list_with_commas(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_STREAMS", text)
    assert load_settings().settings.streams == ("a", "b")


@pytest.mark.parametrize(
    ("variables", "file", "sentence"),
    [
        ({"PENSTOCK_KAFKA__PORT": "x"}, "", "PENSTOCK_KAFKA__PORT is 'x': .*valid integer"),
        (
            {"PENSTOCK_KAFKA__PORT": "70000"},
            "",
            "KAFKA__PORT is '70000': .*less than or equal to 65535",
        ),
        (
            {"PENSTOCK_KAFKA__PRT": "1"},
            "",
            r"KAFKA__PRT is not a setting\. Did you mean PENSTOCK_KAFKA__PORT\?",
        ),
        ({"PENSTOCK_KAFKA": "{"}, "", 'parsing value for field "kafka".*Write a group of values as JSON'),
        ({}, "[kafka]\nport = 'x'", "kafka.port in penstock.toml is 'x': .*valid integer"),
        ({}, "[kafak]\nport = 1", r"kafak in penstock.toml is not a setting\. Did you mean kafka\?"),
        (
            {},
            "[kafka]\nprot = 1",
            r"kafka.prot in penstock.toml is not a setting\. Did you mean kafka.port\?",
        ),
        ({}, "port = ", "penstock.toml is not valid TOML .*Fix that line"),
        ({}, "root = '/'", "Set PENSTOCK_ROOT instead"),
        ({"PENSTOCK_KAFKA__PORT": "3000"}, "", "dagster.port and kafka.port are both 3000"),
        ({}, SECURED.replace('mechanism = "SCRAM-SHA-512"', ""), "protocol SASL_SSL needs a mechanism"),
        ({}, SECURED.replace("SASL_SSL", "SSL"), "protocol SSL takes no mechanism"),
        (
            {},
            SECURED.replace('bootstrap = "b:1"', ""),
            "kafka.security needs an external broker. Set kafka.bootstrap",
        ),
        (
            {},
            "[kafka]\nregistry_login = 'env:LOGIN'",
            "needs a registry over HTTP. Set kafka.registry as well",
        ),
        ({}, SECURED.replace("SCRAM-SHA-512", "GSSAPI"), "mechanism in penstock.toml is 'GSSAPI'"),
        (
            {},
            "[host]\nbatch_interval = 100",
            "batch_interval in penstock.toml is 100: 100 has no unit. Write",
        ),
        (
            {},
            "[host]\nlease_timeout = '5 parsecs'",
            "lease_timeout in .* is '5 parsecs': .*unknown unit 'parsecs'",
        ),
        ({"PENSTOCK_HOST__LEASE_TIMEOUT": "10m"}, "", "HOST__LEASE_TIMEOUT is '10m': .*less than or equal"),
    ],
)
def test_an_invalid_value_is_reported_with_its_source(
    variables: dict[str, str], file: str, sentence: str, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings_file(checkout, file)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=sentence):
        load_settings()


def test_an_unknown_variable_is_reported_with_the_nearest_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_WAREHOSE", "x")
    (sentence,) = load_settings().unknown_warnings
    assert sentence.startswith("PENSTOCK_WAREHOSE sets nothing. Did you mean PENSTOCK_WAREHOUSE?")


def test_clients_of_a_secured_broker_read_the_password_from_its_secret_reference(
    checkout: Path, tmp_path: Path
) -> None:
    (tmp_path / "password").write_text("canary\n", "utf-8")
    write_settings_file(checkout, SECURED.replace("PLACE", str(tmp_path / "password")))
    loaded = load_settings()
    kafka = loaded.settings.kafka
    assert kafka.client_config("host") == {
        "bootstrap.servers": "b:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "host",
        "sasl.password": "canary",
        "ssl.ca.location": "/ca.pem",
    }
    with pytest.raises(SecretError, match="Known users: host"):
        kafka.client_config("topics")
    variables = settings_to_variables(loaded.settings, ["kafka", "spark"])
    shown = f"{loaded!r} {list(loaded.list_provenance())} {variables}"
    assert "canary" not in shown
    assert str(tmp_path / "password") in shown


def test_loaded_settings_are_frozen() -> None:
    settings: Settings = load_settings().settings
    with pytest.raises(ValueError, match="frozen"):
        settings.kafka.port = 1  # type: ignore[misc]  # the point of the test


def test_limits_of_a_single_stream_are_passed_to_programs(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings_file(checkout, "[alerts.of.sensor_minute]\nmax_watermark_delay = '2h'\n")
    loaded = load_settings()
    assert loaded.settings.alerts.of["sensor_minute"].max_watermark_delay == 7_200_000
    assert loaded.origin_of("alerts.of") is SettingOrigin.FILE
    variables = settings_to_variables(loaded.settings, ["alerts"])
    assert variables["PENSTOCK_ALERTS__OF"] == '{"sensor_minute": {"max_watermark_delay": "2h"}}'
    (checkout / "penstock.toml").unlink()
    monkeypatch.setenv("PENSTOCK_ALERTS__OF", variables["PENSTOCK_ALERTS__OF"])
    assert load_settings().settings.alerts == loaded.settings.alerts
