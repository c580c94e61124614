"""Table of docs/long-checks.md with all long checks, made of their defaults in the sources."""

import re

from soperator_pulumi.spec.long_checks import LONG_DEFAULTS, LongCheck, LongDefaults
from soperator_pulumi.spec.validation.descriptions import member_descriptions
from tools import paths

FILE = paths.ROOT / "docs" / "long-checks.md"

_TABLE = re.compile(r"(?s)(<!-- long checks: written by `make docs` -->\n).*?(<!-- end -->)")

_HEAD = "| check | measures | nodes of a job | at least | on | source |\n|---|---|---|---|---|---|\n"


def text() -> str:
    """Return the page with its table as the defaults are now."""
    subjects = member_descriptions(LongCheck)
    table = _HEAD + "".join(_row(name, subjects[name.name], each) for name, each in LONG_DEFAULTS.items())
    return _TABLE.sub(lambda found: f"{found[1]}\n{table}\n{found[2]}", FILE.read_text())


def _row(name: LongCheck, subject: str, check: LongDefaults) -> str:
    size = f"{check.size} (`group`)" if check.size > 2 else str(check.size)
    return f"| `{name}` | {subject} | {size} | {_limit(check)} | {check.needs} | {check.source} |\n"


def _limit(check: LongDefaults) -> str:
    """Return the limits in words; models with the same one stand together."""
    by_limit: dict[float, list[str]] = {}
    for model, limit in check.by_gpu.items():
        by_limit.setdefault(limit, []).append(model)
    found = [f"{limit:g} {check.unit} ({', '.join(models)})" for limit, models in by_limit.items()]
    own = [] if check.limit is None else [f"{check.limit:g} {check.unit}"]
    return "; ".join([*own, *found]) or ("your limit" if check.unit else "all tests pass")
