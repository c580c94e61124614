"""Tables of docs/health-checks.md: quick checks with their defaults, and GPU errors."""

from soperator_pulumi.spec.health_checks import DEFAULTS, Bound, CheckDefaults, HealthCheck, NodeUse
from soperator_pulumi.spec.validation.descriptions import member_descriptions
from tools import paths
from tools.docs import xid_table
from tools.docs.page_tables import table, with_tables

FILE = paths.ROOT / "docs" / "health-checks.md"

_HEADS = ("check", "reads, **limit**", "on", "rounds", "every", "then", "back", "source")


def text() -> str:
    """Return the page with its tables updated from the sources."""
    subjects = member_descriptions(HealthCheck)
    checks = (_row(name, subjects[name.name], default) for name, default in DEFAULTS.items())
    return with_tables(FILE, {"checks": table(_HEADS, checks), "errors": xid_table.error_table()})


def _row(name: HealthCheck, subject: str, check: CheckDefaults) -> list[str]:
    only = "" if check.uses == tuple(NodeUse) else f", {' and '.join(check.uses)}"
    return [
        f"`{name}`",
        f"{subject} {_limit(check)}".strip(),
        f"{check.needs}{only}",
        str(check.failures),
        f"{check.every_minutes} min",
        "`log`, always" if check.shared else f"`{check.action}`",
        "" if check.action == "log" else f"`{check.undrain}` after {check.passes}",
        check.source,
    ]


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
