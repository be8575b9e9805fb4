"""Acquire a lease several times, and create a file that must not exist meanwhile: `url file times holder`."""

import json
import sys
from pathlib import Path

from penstock.platform.control import open_control_store


def hold_lease_repeatedly(url: str, marker: Path, times: int, holder: str) -> list[int]:
    """Hold the lease as often as given; return its epochs."""
    store, epochs = open_control_store(url), []
    while len(epochs) < times:
        if lease := store.acquire_lease("s", holder, 0, 1_000):
            marker.touch(exist_ok=False)
            marker.unlink()
            epochs.append(lease.epoch)
            store.release_lease(lease)
    store.close()
    return epochs


if __name__ == "__main__":
    address, marker_name, count, name = sys.argv[1:]
    print(json.dumps(hold_lease_repeatedly(address, Path(marker_name), int(count), name)))
