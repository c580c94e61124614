"""Table of docs/storage.md with the shared storage systems, generated from the sources."""

import re
from collections.abc import Iterator

from soperator_pulumi.spec.platform.storage_systems import SYSTEMS, StorageFacts, StorageSystem
from tools import paths

FILE = paths.ROOT / "docs" / "storage.md"

_TABLE = re.compile(r"(?s)(<!-- systems: written by `make docs` -->\n).*?(<!-- end -->)")

_HEAD = (
    "| `system` | driver | a jail on it | class: parameters | volume: attributes | options of the mount | notice |\n"
)


def text() -> str:
    """Return the page with its table updated from the systems."""
    table = _HEAD + "|---|---|---|---|---|---|---|\n" + "".join(_row(*system) for system in SYSTEMS.items())
    return _TABLE.sub(lambda found: f"{found[1]}\n{table}\n{found[2]}", FILE.read_text())


def _row(system: StorageSystem, facts: StorageFacts) -> str:
    options = [*facts.mount_options, *(f"never {name}" for name in facts.refused_options if name != "*")]
    cells = [
        f"`{system}`: {facts.title}",
        f"`{facts.driver}`" if facts.driver else "`driver`",
        facts.verdict,
        "refused" if facts.class_refused else ", ".join(_parameters(facts)) or "none",
        "refused" if facts.volume_refused else ", ".join(_attributes(facts)) or "none",
        "none: the machines mount it" if "*" in facts.refused_options else ", ".join(options) or "none",
        " ".join(facts.warnings),
    ]
    return f"| {' | '.join(cells)} |\n"


def _parameters(facts: StorageFacts) -> Iterator[str]:
    """Yield the parameters that the user gives, then those of the package."""
    yield from (f"**`{name}`**" for name in facts.required)
    if facts.one_of:
        yield f"**{' or '.join(f'`{name}`' for name in facts.one_of)}**"
    yield from (f"`{name}: {value}`" for name, value in facts.parameters.items())


def _attributes(facts: StorageFacts) -> Iterator[str]:
    yield from (f"**`{name}`**" for name in (*facts.attributes, *([facts.access_field] if facts.access_field else [])))
