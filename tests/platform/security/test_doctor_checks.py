"""What the doctor says about the files that others can read, and about secrets."""

from pathlib import Path

import pytest

from penstock.platform.doctor import DoctorFinding
from penstock.platform.doctor.installation_checks import check_file_access
from penstock.platform.doctor.secret_checks import check_secrets
from penstock.platform.settings import load_settings


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_home_that_others_can_read_is_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_access() -> DoctorFinding:
        return check_file_access(load_settings().settings)

    assert find_access().ok, "nothing is there yet"
    home.mkdir()
    home.chmod(0o755)
    finding = find_access()
    assert not finding.ok
    assert finding.detail == (
        f"{home} can be read by every user of this machine, with records, state and program files. "
        f"`chmod 700 {home}` closes it, and so does `penstock up`. Or set PENSTOCK_FILE_ACCESS, which is owner"
    )
    home.chmod(0o750)
    assert f"{home} can be read by the group" in find_access().detail
    monkeypatch.setenv("PENSTOCK_FILE_ACCESS", "group")
    assert find_access() == DoctorFinding("file access", True, "group may read")


def test_each_secret_is_read_and_none_is_shown(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_secrets() -> DoctorFinding:
        return check_secrets(load_settings().settings)

    assert find_secrets().detail == "no setting names one"
    (tmp_path / "key").write_text("canary-5e4c")
    (tmp_path / "key").chmod(0o644)
    monkeypatch.setenv("PENSTOCK_LINEAGE__KEY", f"file:{tmp_path / 'key'}")
    monkeypatch.setenv("PENSTOCK_ALERTS__WEBHOOK", "canary-without-a-file")
    finding = find_secrets()
    assert not finding.ok
    assert "The secret of alerts.webhook is not in a file *** (No such file" in finding.detail
    assert (
        f"which lineage.key names, can be read by every user. `chmod 600 {tmp_path / 'key'}`"
        in finding.detail
    )
    assert "canary" not in finding.detail
    (tmp_path / "key").chmod(0o600)
    monkeypatch.delenv("PENSTOCK_ALERTS__WEBHOOK")
    assert find_secrets() == DoctorFinding("secrets", True, "1 can be read")
