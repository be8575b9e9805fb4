"""What Spark writes beside memory does not outlive the process that it was for, even where that is killed."""

import signal
import subprocess
import sys
from pathlib import Path

from penstock.engine.spark.scratch_folder import claim_scratch_folder


def begun(directory: Path) -> tuple["subprocess.Popen[str]", Path]:
    """A process that has a folder, and has written something there."""
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


def test_what_a_killed_process_left_goes_with_the_next_and_that_of_a_living_one_stays(tmp_path: Path) -> None:
    (killed, left), (living, used) = begun(tmp_path), begun(tmp_path)
    with killed, living:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert (left / "blockmgr").exists(), "nobody could remove it"
        own = claim_scratch_folder(tmp_path)
        assert sorted(path for path in tmp_path.iterdir() if path.is_dir()) == sorted([own, used])
        assert (used / "blockmgr").exists()
        assert claim_scratch_folder(tmp_path) == own
        living.kill()
    last, third = begun(tmp_path)
    with last:
        assert sorted(path for path in tmp_path.iterdir() if path.is_dir()) == sorted([own, third])
        assert len(list(tmp_path.glob("*.lock"))) == 2
        last.kill()
