"""Tables of docs/policies.md, generated from the policies."""

import re
from collections.abc import Iterator

from soperator_pulumi.policy import POLICIES, AnyPolicy, Environment
from soperator_pulumi.spec.validation.descriptions import field_descriptions
from tools import paths

FILE = paths.ROOT / "docs" / "policies.md"

_TABLE = re.compile(r"(?s)(<!-- (?P<name>\w+): written by `make docs` -->\n).*?(<!-- end -->)")


def text() -> str:
    """Return the page with its tables updated from the policies."""
    tables = {
        "policies": _policies(),
        "settings": "| policy | setting | meaning |\n|---|---|---|\n" + "".join(_setting_rows()),
    }
    return _TABLE.sub(lambda found: f"{found[1]}\n{tables[found['name']]}\n{found[3]}", FILE.read_text())


def _policies() -> str:
    head = f"| policy | {' | '.join(Environment)} | violated by |\n|---|{'---|' * len(Environment)}---|\n"
    return head + "".join(map(_row, POLICIES))


def _row(policy: AnyPolicy) -> str:
    found = " | ".join(policy.levels.in_(environment) for environment in Environment)
    return f"| `{policy.name}` | {found} | {policy.violated_by} |\n"


def _setting_rows() -> Iterator[str]:
    for policy in POLICIES:
        meanings = field_descriptions(policy.settings)
        for name in policy.settings.model_fields:
            if name != "level":
                yield f"| `{policy.name}` | `{name}` | {' '.join(meanings[name].split())} |\n"
