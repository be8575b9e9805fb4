"""The scratch folder of a Spark process is removed after the process ends, even when it was killed."""

import signal
import subprocess
import sys
from pathlib import Path

from penstock.engine.spark.scratch_folder import claim_scratch_folder


def start_process(directory: Path) -> tuple["subprocess.Popen[str]", Path]:
    """Start a process that claims a folder and writes to it."""
    script = (
        "import sys\nfrom pathlib import Path\n"
        "from penstock.engine.spark.scratch_folder import claim_scratch_folder\n"
        f"folder = claim_scratch_folder(Path({str(directory)!r}))\n"
        "(folder / 'blockmgr').mkdir()\nprint(folder, flush=True)\nsys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_folders_of_killed_processes_are_removed_and_those_of_live_ones_stay(tmp_path: Path) -> None:
    (killed, abandoned), (live, live_folder) = start_process(tmp_path), start_process(tmp_path)
    with killed, live:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert (abandoned / "blockmgr").exists(), "no process could remove it"
        own = claim_scratch_folder(tmp_path)
        assert sorted(path for path in tmp_path.iterdir() if path.is_dir()) == sorted([own, live_folder])
        assert (live_folder / "blockmgr").exists()
        assert claim_scratch_folder(tmp_path) == own
        live.kill()
    last, third = start_process(tmp_path)
    with last:
        assert sorted(path for path in tmp_path.iterdir() if path.is_dir()) == sorted([own, third])
        assert len(list(tmp_path.glob("*.lock"))) == 2
        last.kill()
