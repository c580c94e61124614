"""Table of docs/storage.md with the shared storage systems, generated from the sources."""

from collections.abc import Iterator

from soperator_pulumi.spec.platform.storage_systems import SYSTEMS, StorageFacts, StorageSystem
from tools import paths
from tools.docs.page_tables import table, with_tables

FILE = paths.ROOT / "docs" / "storage.md"

_HEADS = (
    *("`system`", "driver", "a jail on it", "class: parameters", "volume: attributes", "options of the mount"),
    "notice",
)


def text() -> str:
    """Return the page with its table updated from the systems."""
    return with_tables(FILE, {"systems": table(_HEADS, (_row(*system) for system in SYSTEMS.items()))})


def _row(system: StorageSystem, facts: StorageFacts) -> list[str]:
    options = [*facts.mount_options, *(f"never {name}" for name in facts.refused_options if name != "*")]
    return [
        f"`{system}`: {facts.title}",
        f"`{facts.driver}`" if facts.driver else "`driver`",
        facts.verdict,
        "refused" if facts.class_refused else ", ".join(_parameters(facts)) or "none",
        "refused" if facts.volume_refused else ", ".join(_attributes(facts)) or "none",
        "none: the machines mount it" if "*" in facts.refused_options else ", ".join(options) or "none",
        " ".join(facts.warnings),
    ]


def _parameters(facts: StorageFacts) -> Iterator[str]:
    """Yield the parameters that a user sets, then those that the package sets."""
    yield from (f"**`{name}`**" for name in facts.required)
    if facts.one_of:
        yield f"**{' or '.join(f'`{name}`' for name in facts.one_of)}**"
    yield from (f"`{name}: {value}`" for name, value in facts.parameters.items())


def _attributes(facts: StorageFacts) -> Iterator[str]:
    yield from (f"**`{name}`**" for name in (*facts.attributes, *([facts.access_field] if facts.access_field else [])))
