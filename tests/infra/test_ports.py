"""Ports that are offered to processes which start their servers later."""

import subprocess
import sys

from penstock.infra.ports import find_free_ports

OTHER = "from penstock.infra.ports import find_free_ports; print(*find_free_ports(200), flush=True); input()"


def test_no_port_is_offered_twice_while_those_live_whom_it_was_offered() -> None:
    command = [sys.executable, "-c", OTHER]
    others = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    offered = find_free_ports(200)
    for other in others:
        assert other.stdout is not None
        offered += map(int, other.stdout.readline().split())
    for other in others:
        other.communicate("\n")
    assert len(set(offered)) == len(offered) == 800


def test_ports_in_a_row_follow_each_other() -> None:
    ports = find_free_ports(60, consecutive=True)
    assert ports == list(range(ports[0], ports[0] + 60))
