"""A node that runs rounds of checks in a folder, and its slurmctld."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from node_health import check_settings
from node_health.health_round import Round, Slurm
from node_health.node_record import NoAnswerError
from node_health.state_machine import NodeState

MINUTE = 60


@dataclass
class OneNode:
    """slurmctld as the rounds of one node see it."""

    state: str = "IDLE+DYNAMIC_NORM"
    reason: str = ""
    extra: str = ""
    answers: bool = True
    calls: list[str] = field(default_factory=list)

    def ask(self, node: str, _seconds: float) -> NodeState:
        """Return the node's state."""
        self._called(f"ask {node}")
        return NodeState(self.state, self.reason, self.extra)

    def drain(self, node: str, reason: str, _seconds: float) -> None:
        """Drain the node."""
        self._called(f"drain {node}")
        self.state, self.reason = "IDLE+DRAIN+DYNAMIC_NORM", reason

    def undrain(self, node: str, _seconds: float) -> None:
        """Undrain the node."""
        self._called(f"undrain {node}")
        self.state, self.reason = "IDLE+DYNAMIC_NORM", "none"

    def show(self, node: str, text: str, _seconds: float) -> None:
        """Write findings into the node's record."""
        self._called(f"show {node}")
        self.extra = text

    def _called(self, call: str) -> None:
        self.calls.append(call)
        if not self.answers:
            raise NoAnswerError("scontrol: no answer in 1 s")


class Node:
    """A node whose programs and kernel files are in a folder."""

    def __init__(self, root: Path, **checks: Mapping[str, object]) -> None:
        """Make the node with these checks, given as changes to `check`."""
        self.root, self.slurm, self.now = root, OneNode(), 1_000_000.0
        self.memory: dict[str, Any] = {}
        self.checks = {name: self.check(**changes) for name, changes in checks.items()}
        self.given: dict[str, Any] = {"gpus": 8, "gpu_type": "h100", "volumes": [], "program": []}
        self.write("proc/sys/kernel/random/boot_id", "one\n")
        self.write("proc/self/mountinfo", "")

    @staticmethod
    def check(**changes: object) -> dict[str, Any]:
        """Return the settings of a check that drains, with changes."""
        limit = changes.get("limit")
        return {
            "limit": None,
            "allowed": "none" if limit is None else f"{limit}{changes.pop('unit', '')}",
            "action": "drain",
            "undrain": "auto",
            "failures": 2,
            "passes": 3,
            "every_seconds": MINUTE,
            "states": ["idle", "busy"],
            **changes,
        }

    def write(self, path: str, text: str) -> Path:
        """Write a file of the node."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def smi(self, output: str = "", script: str = "") -> None:
        """Replace nvidia-smi with a program that runs a script, and prints `output` for every query."""
        self.write("answer", output)
        program = self.write("usr/bin/nvidia-smi", f"#!/bin/sh\n{script}\ncat {self.root}/answer\n")
        program.chmod(0o755)

    def round(self, *, seconds: float = 10) -> list[dict[str, Any]]:
        """Run a round, a minute after the one before, and return its events."""
        self.now += MINUTE
        settings = check_settings.parse(
            json.dumps(
                {
                    "format": 1,
                    "seconds": seconds,
                    "interval_seconds": MINUTE,
                    "memory_mib": 1024,
                    "jail": str(self.root),
                    "program_seconds": seconds / 4,
                    "checks": self.checks,
                    **self.given,
                }
            )
        )
        self.memory = json.loads(json.dumps(self.memory))
        slurm = Slurm(self.slurm.ask, self.slurm.drain, self.slurm.undrain, self.slurm.show)
        self.last = Round("gpu-0", settings, self.memory, slurm, now=self.now, root=str(self.root))
        return self.last.run()

    @property
    def result(self) -> dict[str, Any]:
        """Return the result file of the last round."""
        summary: dict[str, Any] = json.loads(json.dumps(self.last.summary(0.1)))
        return summary


def adapter(node: Node, number: int, **files: str) -> None:
    """Make an adapter with one active port. `files` replaces some of the port's files."""
    port = f"sys/class/infiniband/mlx5_{number}/ports/1"
    values = {
        "state": "4: ACTIVE",
        "rate": "400 Gb/sec (4X NDR)",
        "counters/symbol_error": "0",
        "counters/link_downed": "3",
        "counters/port_rcv_errors": "0",
    }
    for name, text in {**values, **files}.items():
        node.write(f"{port}/{name}", f"{text}\n")
