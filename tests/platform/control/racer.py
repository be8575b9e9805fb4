"""Hold a lease so many times; inside, make a file that nobody else may have made: `url room times holder`."""

import json
import sys
from pathlib import Path

from penstock.platform.control import open_control_store


def enter_and_leave(url: str, room: Path, times: int, holder: str) -> list[int]:
    """The epochs under which the room was entered."""
    store, epochs = open_control_store(url), []
    while len(epochs) < times:
        if lease := store.acquire_lease("s", holder, 0, 1_000):
            room.touch(exist_ok=False)
            room.unlink()
            epochs.append(lease.epoch)
            store.release_lease(lease)
    store.close()
    return epochs


if __name__ == "__main__":
    address, room_name, count, name = sys.argv[1:]
    print(json.dumps(enter_and_leave(address, Path(room_name), int(count), name)))
