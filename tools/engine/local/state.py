"""State of a stack: its known resources, written to disk after every step."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from pulumi.provider.experimental.property_value import PropertyValue

from soperator_pulumi.whole_files import write_whole
from tools.console import UserError
from tools.engine.encryption import Vault
from tools.engine.protocol import Target
from tools.engine.values import SECRET, SIGNATURE, Plain, Properties, plain, value_of

_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Timeouts:
    """Longest seconds of each operation; 0 for the provider's default."""

    create: float = 0.0
    update: float = 0.0
    delete: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A resource: the program's inputs, its provider's outputs, and relations to others.

    Attributes:
        delete: Replaced; its deletion remains.
        pending_replacement: Deleted; its successor is not made yet.
        init_errors: Reasons why the resource is not ready; the next `up` tries again.
    """

    urn: str
    type: str
    custom: bool
    id: str = ""
    parent: str = ""
    provider: str = ""
    inputs: Properties = field(default_factory=dict)
    outputs: Properties = field(default_factory=dict)
    dependencies: tuple[str, ...] = ()
    property_dependencies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    protect: bool = False
    retain_on_delete: bool = False
    ignore_changes: tuple[str, ...] = ()
    replace_on_changes: tuple[str, ...] = ()
    additional_secret_outputs: tuple[str, ...] = ()
    timeouts: Timeouts = field(default_factory=Timeouts)
    delete: bool = False
    pending_replacement: bool = False
    init_errors: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name in the program."""
        return self.urn.rpartition("::")[2]

    def needs(self) -> set[str]:
        """Return the URNs that must outlive the resource: dependencies, parent, provider."""
        urns = {self.parent, provider_urn(self.provider), *self.dependencies}
        for more in self.property_dependencies.values():
            urns.update(more)
        return urns - {""}


def _with_urn(resource: Resource, old: str, new: str) -> Resource:
    """Return a resource with references to an old URN replaced by the new one."""
    if old not in resource.needs():
        return resource

    def renamed(urns: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(new if urn == old else urn for urn in urns)

    provider = resource.provider
    return replace(
        resource,
        parent=new if resource.parent == old else resource.parent,
        provider=new + provider.removeprefix(old) if provider_urn(provider) == old else provider,
        dependencies=renamed(resource.dependencies),
        property_dependencies={key: renamed(urns) for key, urns in resource.property_dependencies.items()},
    )


def provider_urn(reference: str) -> str:
    """Return the URN in a reference to a provider, `<urn>::<id>`."""
    return reference.rpartition("::")[0]


@dataclass(frozen=True, kw_only=True)
class Pending:
    """Pending operation, which the run after a killed one finds."""

    operation: str
    resource: Resource


class State:
    """Resources of a stack, dependencies first, and the pending operations.

    Resources that a run has handled come first, in the order of their steps; the others follow.
    """

    def __init__(self, path: Path, vault: Vault) -> None:
        self.path = path
        self.resources: list[Resource] = []
        self.pending: list[Pending] = []
        self.config: Mapping[str, str] | None = None
        """Configuration of the last `up`, by full key, for providers in a run without the program."""
        self._vault = vault
        self._done = 0
        self._written: dict[int, tuple[Resource, str]] = {}

    @classmethod
    def load(cls, path: Path, passphrase: str) -> "State":
        """Read a stack's state; empty if there is none."""
        if not path.exists():
            return cls(path, Vault.new(passphrase))
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["version"] != _VERSION:
            raise UserError(f"{path} was written by another version of this engine ({data['version']})")
        vault = Vault.open(passphrase, data["secrets"])
        state = cls(path, vault)
        state.resources = [_read(item, vault) for item in data["resources"]]
        state.pending = [
            Pending(operation=item["operation"], resource=_read(item["resource"], vault)) for item in data["pending"]
        ]
        if (sealed := data.get("config")) is not None:
            state.config = cast("dict[str, str]", vault.decrypt(sealed))
        return state

    def record(self, config: Mapping[str, str]) -> None:
        """Record the configuration of a starting `up`."""
        if self.config != config:
            self.config = {**config}
            self.save()

    @property
    def identity(self) -> str:
        """Permanent identity of this state, distinct from any other."""
        return self._vault.salt.hex()

    def find(self, urn: str) -> Resource | None:
        """Return the live resource of a URN."""
        return next((r for r in self.resources if r.urn == urn and not r.delete), None)

    def begin(self, operation: str, resource: Resource) -> Pending:
        """Record the start of an operation."""
        pending = Pending(operation=operation, resource=resource)
        self.pending.append(pending)
        self.save()
        return pending

    def end(self, pending: Pending) -> None:
        """Record the end of an operation, successful or not, to be saved with its result."""
        self.pending = [p for p in self.pending if p is not pending]

    def put(self, new: Resource, old: Resource | None = None) -> None:
        """Replace the old version of a handled resource.

        References to another URN of the old one are replaced by the new URN.
        """
        if old is not None:
            self._drop(old)
            if old.urn != new.urn:
                self.resources = [_with_urn(resource, old.urn, new.urn) for resource in self.resources]
        self.resources.insert(self._done, new)
        self._done += 1

    def append(self, found: Resource, replaced: Resource | None = None) -> None:
        """Add a resource that an earlier run has created: after everything that it needs, and before what needs it.

        Args:
            found: Resource to add.
            replaced: Resource whose place it takes; without it, no other needs the one found.
        """
        self.resources.insert(len(self.resources) if replaced is None else self._index(replaced) + 1, found)

    def swap(self, old: Resource, new: Resource) -> None:
        """Replace a resource at its position."""
        self.resources[self._index(old)] = new

    def remove(self, old: Resource) -> None:
        """Remove a resource."""
        self._drop(old)

    def _drop(self, old: Resource) -> None:
        index = self._index(old)
        del self.resources[index]
        if index < self._done:
            self._done -= 1

    def _index(self, old: Resource) -> int:
        """Return the index of a resource, whose references may have been renamed since it was looked up."""
        exactly = [i for i, r in enumerate(self.resources) if r is old]
        same = [i for i, r in enumerate(self.resources) if (r.urn, r.id, r.delete) == (old.urn, old.id, old.delete)]
        return (exactly or same)[0]

    def save(self) -> None:
        """Write the state atomically."""
        header = json.dumps(self._vault.header())
        config = None if self.config is None else self._vault.encrypt(self.config)
        pending = (
            f'{{"operation": {json.dumps(p.operation)}, "resource": {self._text(p.resource)}}}' for p in self.pending
        )
        text = (
            f'{{"version": {_VERSION},\n"secrets": {header}, "config": {json.dumps(config)},\n"resources": [\n'
            + ",\n".join(self._text(r) for r in self.resources)
            + '\n],\n"pending": [\n'
            + ",\n".join(pending)
            + "\n]}\n"
        )
        self._written = {
            id(r): entry
            for r in [*self.resources, *(p.resource for p in self.pending)]
            if (entry := self._written.get(id(r)))
        }
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(self.path, text)

    def _text(self, resource: Resource) -> str:
        """Return a resource as JSON, made once: resources are immutable."""
        known = self._written.get(id(resource))
        if known is None:
            known = (resource, json.dumps(_write(resource, self._vault), sort_keys=True))
            self._written[id(resource)] = known
        return known[1]


def state_file(target: Target, project: str, stack: str) -> Path:
    """Return the path of a stack's state, in the state folder of `target`."""
    return target.state / "local" / project / f"{stack}.json"


def _write(resource: Resource, vault: Vault) -> dict[str, object]:
    def sealed(value: Plain) -> Plain:
        return {SIGNATURE: SECRET, "ciphertext": vault.encrypt(value)}

    written: dict[str, object] = {}
    for name, value in vars(resource).items():
        if name in {"inputs", "outputs"}:
            written[name] = {key: plain(item, sealed) for key, item in value.items()}
        elif name == "timeouts":
            written[name] = vars(value)
        elif value or name == "custom":
            written[name] = value
    return written


def _read(data: dict[str, Any], vault: Vault) -> Resource:
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
    values["inputs"] = {key: _unseal(item, vault) for key, item in data["inputs"].items()}
    values["outputs"] = {key: _unseal(item, vault) for key, item in data["outputs"].items()}
    values["timeouts"] = Timeouts(**data["timeouts"])
    by_property = data.get("property_dependencies", {})
    values["property_dependencies"] = {key: tuple(urns) for key, urns in by_property.items()}
    return Resource(**values)


def _unseal(value: object, vault: Vault) -> PropertyValue:
    if isinstance(value, dict):
        if value.get(SIGNATURE) == SECRET:
            return value_of(vault.decrypt(cast("str", value["ciphertext"]))).with_secret(True)
        return PropertyValue({key: _unseal(item, vault) for key, item in value.items()})
    if isinstance(value, list):
        return PropertyValue([_unseal(item, vault) for item in value])
    return value_of(value)
