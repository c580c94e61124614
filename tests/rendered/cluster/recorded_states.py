"""States as a release records them, and the resources of the program of today that continue them.

`python -m tests.rendered.cluster.recorded_states` records those of the version in the package. A release's files are
never written again: users have such states.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulumi

import soperator_pulumi
from soperator_pulumi import SlurmCluster
from soperator_pulumi.testing import PROJECT, STACK, Deployment, Recorded, Secret, deploy
from tests.rendered.cluster.clusters import a_node_set, a_spec, provided
from tools.engine.local.aliases import former_urns, make_urn
from tools.engine.local.resource_registration import read_alias
from tools.engine.protocol import STACK_TYPE

FOLDER = Path(__file__).with_name("recorded")

DESCRIPTION = a_spec(
    node_sets=[a_node_set(), a_node_set(name="gpu", replicas=3)],
    jail={"admin_shell": True, "submounts": [{"path": "/data", "host_path": "/srv/data"}]},
    accounting={},
    containers={"images": ["alpine:3.22"]},
)
KUBECONFIG = "{apiVersion: v1, kind: Config}"


class Platform(pulumi.ComponentResource):
    """Another team's component, with a cluster in it."""

    def __init__(self) -> None:
        super().__init__("acme:index:Platform", "platform")
        SlurmCluster("hpc", DESCRIPTION, pulumi.ResourceOptions(parent=self), kubeconfig=KUBECONFIG)
        self.register_outputs({})


PROGRAMS: Mapping[str, Callable[[], object]] = {
    "own_stack": lambda: SlurmCluster("hpc", DESCRIPTION),
    "imported_component": Platform,
}


@dataclass(frozen=True)
class State:
    """A resource in a state."""

    urn: str
    inputs: Mapping[str, Any]
    protect: bool
    retain: bool

    @property
    def type(self) -> str:
        """Type token."""
        return self.urn.split("::")[2].rpartition("$")[2]


def run(program: str, served_by: str = "program") -> Deployment:
    """Return all that a program of today registers."""

    def outputs(type_: str, name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        if type_.endswith(":Namespace"):
            return {"metadata": {**inputs["metadata"], "uid": "uid-0"}}
        acts = ":dynamic/" in type_ or type_.startswith("soperator-pulumi:")
        uid = {"namespace_uid": inputs.get("namespace_uid") or "uid-0"} if acts else {}
        return {**uid, **provided(type_, name, inputs)}

    return deploy(PROGRAMS[program], outputs=outputs, config={"soperator:served_by": served_by})


def states(deployment: Deployment) -> list[State]:
    """Return the resources as a state has them."""
    return [
        State(urn(resource), plain(resource.inputs), resource.request.protect, resource.request.retainOnDelete)
        for resource in deployment.recorded
    ]


def urn(resource: Recorded) -> str:
    """Return the URN of a registration."""
    return make_urn(STACK, PROJECT, _parent(resource), resource.type, resource.name)


def former(resource: Recorded) -> list[str]:
    """Return the URNs that a registration continues besides its own."""
    aliases = [read_alias(alias) for alias in resource.request.aliases]
    return former_urns(urn(resource), _parent(resource), aliases, {})


def read(version: str, program: str) -> list[State]:
    """Return the state that a release recorded."""
    return [State(**state) for state in json.loads(_file(version, program).read_text())]


def versions() -> Iterator[str]:
    """Yield the releases whose states are kept."""
    yield from sorted(folder.name for folder in FOLDER.iterdir() if folder.is_dir())


def plain(value: Any) -> Any:
    """Return a value as JSON has it. Secrets are left out: they are of no release."""
    if isinstance(value, Secret):
        return dict.fromkeys(value.value, "a secret") if isinstance(value.value, Mapping) else "a secret"
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def _parent(resource: Recorded) -> str:
    return "" if STACK_TYPE in resource.request.parent.split("::")[2:3] else resource.request.parent


def _file(version: str, program: str) -> Path:
    return FOLDER / version / f"{program}.json"


def _record() -> None:
    version = soperator_pulumi.__version__
    for program in PROGRAMS:
        file = _file(version, program)
        if file.exists():
            sys.exit(f"{file}: recorded already. Raise the version first; delete the file only before its release.")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps([vars(state) for state in states(run(program))], indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    _record()
