"""Inputs that are converted, and answers for what no input can give."""

import re
from pathlib import Path
from typing import Any

import yaml

from soperator_pulumi.convert import Converted, convert

DATA = Path(__file__).parent / "data"

INPUTS = {
    "soperator-values": ("soperator/slurm-cluster-values.yaml", "soperator/nodesets-values.yaml"),
    "soperator-flux": ("soperator/flux-values.yaml",),
    "soperator-flux-slurm-cluster": ("soperator/flux-slurm-cluster.yaml",),
    "soperator-resources": ("soperator/resources.yaml",),
    "slinky-values": ("slinky/values.yaml",),
    "slinky-a3mega": ("slinky/a3mega-values.yaml",),
    "slinky-a3ultra": ("slinky/a3ultra-values.yaml",),
    "slinky-dcgm": ("slinky/dcgm-values.yaml",),
    "slinky-tpu": ("slinky/tpu-values.yaml",),
    "slinky-resources": ("slinky/resources.yaml", "slinky/token.yaml"),
}
"""Files of each input."""

_ANSWERS: dict[str, Any] = {
    r"name": "hpc",
    r"images\..*": "registry.example.com/ours:1",
    r"login\.allowed_sources": ["10.0.0.0/8"],
    r"node_sets": [{"name": "cpu", "cpus": 4, "memory_gib": 8}],
    r"node_sets\[\d+\]\.cpus": 4,
    r"node_sets\[\d+\]\.memory_gib": 8,
    r"node_sets\[\d+\]\.replicas": 2,
}


def files(name: str) -> list[Path]:
    return [DATA / given for given in INPUTS[name]]


def written(folder: Path, text: str, name: str = "input.yaml") -> Path:
    """Write an input of a test's own."""
    file = folder / name
    file.write_text(text)
    return file


def converted(folder: Path, text: str) -> Converted:
    return convert([written(folder, text)])


def completed(conversion: Converted) -> dict[str, Any]:
    """Return the cluster of the stack file, as a user would complete it: every addition has an answer."""
    cluster: dict[str, Any] = yaml.safe_load(conversion.stack_file())["config"]["soperator:cluster"]
    for addition in conversion.additions:
        (answer,) = [value for pattern, value in _ANSWERS.items() if re.fullmatch(pattern, addition.path)]
        *above, last = [
            int(index) if index else key for key, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", addition.path)
        ]
        place: Any = cluster
        for key in above:
            place = place[key]
        place[last] = answer
    return cluster
