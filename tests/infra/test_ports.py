"""Free ports, reserved for the process that asked."""

import subprocess
import sys

from penstock.infra.ports import find_free_ports

OTHER_PROCESS = (
    "from penstock.infra.ports import find_free_ports; print(*find_free_ports(200), flush=True); input()"
)


def test_a_port_is_given_to_one_living_process_only() -> None:
    command = [sys.executable, "-c", OTHER_PROCESS]
    others = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    ports = find_free_ports(200)
    for other in others:
        assert other.stdout is not None
        ports += map(int, other.stdout.readline().split())
    for other in others:
        other.communicate("\n")
    assert len(set(ports)) == len(ports) == 800


def test_consecutive_ports_have_no_gaps() -> None:
    ports = find_free_ports(60, consecutive=True)
    assert ports == list(range(ports[0], ports[0] + 60))
