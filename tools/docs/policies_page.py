"""Tables of docs/policies.md, generated from the policies."""

from collections.abc import Iterator

from soperator_pulumi.policy import POLICIES, AnyPolicy, Environment
from soperator_pulumi.spec.validation.descriptions import field_descriptions
from tools import paths
from tools.docs.annotations import one_line
from tools.docs.page_tables import table, with_tables

FILE = paths.ROOT / "docs" / "policies.md"


def text() -> str:
    """Return the page with its tables updated from the policies."""
    tables = {
        "policies": table(("policy", *Environment, "violated by"), map(_row, POLICIES)),
        "settings": table(("policy", "setting", "meaning"), _setting_rows()),
    }
    return with_tables(FILE, tables)


def _row(policy: AnyPolicy) -> tuple[str, ...]:
    return f"`{policy.name}`", *map(policy.levels.in_, Environment), policy.violated_by


def _setting_rows() -> Iterator[tuple[str, str, str]]:
    for policy in POLICIES:
        meanings = field_descriptions(policy.settings)
        for name in policy.settings.model_fields:
            if name != "level":
                yield f"`{policy.name}`", f"`{name}`", one_line(meanings[name])
