"""Atomic writes and file locks."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.core.errors import WaitTimeoutError
from penstock.core.files import atomic_path, file_lock, write_atomically


def test_a_file_is_replaced_atomically_without_leftovers(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    write_atomically(target, "first")
    write_atomically(target, b"second")
    assert target.read_text() == "second"
    assert list(tmp_path.iterdir()) == [target]


def test_a_failed_write_changes_nothing(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    write_atomically(target, "kept")
    with pytest.raises(FileNotFoundError), atomic_path(target) as partial:
        partial.with_name("missing").rename(partial)
    assert target.read_text() == "kept"
    assert list(tmp_path.iterdir()) == [target]


def test_concurrent_writers_of_one_file_do_not_mix(tmp_path: Path) -> None:
    target = tmp_path / "index.html"
    texts = [str(number) * 10_000 for number in range(200)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: write_atomically(target, text), texts))
    assert target.read_text() in texts
    assert list(tmp_path.iterdir()) == [target]


def test_a_lock_timeout_names_the_lock(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    expected = rf"Timed out after 0\.05 s waiting for the lock {lock}"
    with file_lock(lock, 1), pytest.raises(WaitTimeoutError, match=expected), file_lock(lock, 0.05):
        pass
