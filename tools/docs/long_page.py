"""Table of docs/long-checks.md with all long checks, generated from their defaults."""

import re

from soperator_pulumi.spec.long_checks import LONG_DEFAULTS, NCCL_LIMITS, LongCheck, LongDefaults
from soperator_pulumi.spec.validation.descriptions import member_descriptions
from tools import paths

FILE = paths.ROOT / "docs" / "long-checks.md"

_TABLE = re.compile(r"(?s)(<!-- (long checks|nccl limits): written by `make docs` -->\n).*?(<!-- end -->)")

_HEAD = "| check | measures | nodes of a job | at least | on | source |\n|---|---|---|---|---|---|\n"


def text() -> str:
    """Return the page with its table updated from the defaults."""
    subjects = member_descriptions(LongCheck)
    table = _HEAD + "".join(
        _row(name, subjects[name.name], long_default) for name, long_default in LONG_DEFAULTS.items()
    )
    tables = {"long checks": table, "nccl limits": _nccl_limits()}
    return _TABLE.sub(lambda found: f"{found[1]}\n{tables[found[2]]}\n{found[3]}", FILE.read_text())


def _nccl_limits() -> str:
    """Return the limits of boards by model, and the statement that others have none."""
    rows = [f"| {model} | {limit.nvls:g} | {limit.plain:g} | {limit.source} |" for model, limit in NCCL_LIMITS.items()]
    head = "| board of eight | with NVLS, GB/s | without, GB/s | source |\n|---|---|---|---|"
    return "\n".join([head, *rows, "| any other | no limit known | no limit known | none is published |", ""])


def _row(name: LongCheck, subject: str, check: LongDefaults) -> str:
    size = f"{check.size} (`group`)" if check.size > 2 else str(check.size)
    return f"| `{name}` | {subject} | {size} | {_limit(check)} | {check.needs} | {check.source} |\n"


def _limit(check: LongDefaults) -> str:
    if check.by_gpu:
        return "by model"
    own = [] if check.limit is None else [f"{check.limit:g} {check.unit}"]
    return own[0] if own else "no limit known: yours" if check.unit else "all tests pass"
