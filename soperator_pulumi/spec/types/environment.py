"""Environment variables that a spec gives to jobs."""

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.validation.base import Matches, refused_parts, refused_quietly

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_MAX_VALUE = 4096
_TOPOLOGY = "needs the text of a topology file of NCCL: XML with the element <system>. For a path, set NCCL_TOPO_FILE."

_OF_SLURM = ("SLURM_", "SLURMD_", "SPANK_", "PMI_", "PMIX_")

_ALWAYS_SET = {
    **dict.fromkeys(("PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "HOSTNAME"), "every job already has it"),
    **dict.fromkeys(
        ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "GPU_DEVICE_ORDINAL"),
        "Slurm sets it to the GPUs of a job",
    ),
}


def _problem(name: str, value: object) -> str | None:
    if any(name.startswith(prefix) for prefix in _OF_SLURM):
        return "Slurm itself sets variables with this name. Remove it."
    if name in _ALWAYS_SET:
        return f"{_ALWAYS_SET[name]}, so a default has no effect. Remove it."
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return "needs text or a number."
    if not str(value).isprintable() or len(str(value)) > _MAX_VALUE:
        return f"needs one line of at most {_MAX_VALUE} printable characters."
    return None


def _environment(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise refused_quietly("needs a mapping of names to values.")
    found = []
    for name, setting in value.items():
        if not isinstance(name, str) or not re.fullmatch(_NAME, name):
            found.append(Problem(str(name), "needs a name of letters, digits and '_', no digit first."))
        elif text := _problem(name, setting):
            found.append(Problem(name, text))
    if found:
        raise refused_parts(found)
    return {name: _text(setting) for name, setting in value.items()}


def _text(value: object) -> str:
    """Return a value as text. 3.0 becomes 3, as other languages send numbers as floats."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


Environment = Annotated[
    dict[str, str],
    BeforeValidator(_environment),
    WithJsonSchema(
        {
            "type": "object",
            "propertyNames": {"pattern": f"^{_NAME}$"},
            "additionalProperties": {"type": ["string", "number"]},
        }
    ),
]
"""Variables by name. Accepts numbers as well."""

NcclTopology = Annotated[
    str,
    Matches(r"\s*(<[?!][\s\S]*)?<system[\s>][\s\S]*</system>\s*", _TOPOLOGY, 262_144),
]
"""Text of a topology file of NCCL."""
