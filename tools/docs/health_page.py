"""Tables of docs/health-checks.md: quick checks with their defaults, and GPU errors."""

import re

from soperator_pulumi.spec.health_checks import DEFAULTS, Bound, CheckDefaults, HealthCheck, NodeUse
from soperator_pulumi.spec.validation.descriptions import member_descriptions
from tools import paths
from tools.docs import xid_table

FILE = paths.ROOT / "docs" / "health-checks.md"

_TABLE = re.compile(r"(?s)(<!-- (checks|errors): written by `make docs` -->\n).*?(<!-- end -->)")

_HEAD = "| check | reads, **limit** | on | rounds | every | then | back | source |\n|---|---|---|---|---|---|---|---|\n"


def text() -> str:
    """Return the page with its tables updated from the sources."""
    subjects = member_descriptions(HealthCheck)
    checks = _HEAD + "".join(_row(name, subjects[name.name], default) for name, default in DEFAULTS.items())
    tables = {"checks": checks, "errors": xid_table.table()}
    return _TABLE.sub(lambda found: f"{found[1]}\n{tables[found[2]]}\n{found[3]}", FILE.read_text())


def _row(name: HealthCheck, subject: str, check: CheckDefaults) -> str:
    only = "" if check.uses == tuple(NodeUse) else f", {' and '.join(check.uses)}"
    cells = [
        f"`{name}`",
        f"{subject} {_limit(check)}".strip(),
        f"{check.needs}{only}",
        str(check.failures),
        f"{check.every_minutes} min",
        "`log`, always" if check.shared else f"`{check.action}`",
        "" if check.action == "log" else f"`{check.undrain}` after {check.passes}",
        check.source,
    ]
    return f"| {' | '.join(cells)} |\n"


def _limit(check: CheckDefaults) -> str:
    """Return the limit as text, with models of the same limit together."""
    if check.bound is Bound.NONE:
        return ""
    unit = check.unit if check.unit in {"", "%"} else f" {check.unit}"
    by_limit: dict[float, list[str]] = {}
    for model, limit in check.by_gpu.items():
        by_limit.setdefault(limit, []).append(model)
    of_models = [f"{limit:g} ({', '.join(models)})" for limit, models in by_limit.items()]
    own = [] if check.limit is None else [f"{check.limit:.10g}{unit}"]
    named = "; ".join([*own, *of_models]) or ("that number" if check.bound is Bound.EXACT else "your limit")
    return f"**{check.bound} {named}**"
