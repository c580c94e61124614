"""Pages that go with the manifests of a stack: how to apply them, other effects of `pulumi up`, and the Secrets."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from soperator_pulumi import __version__
from soperator_pulumi.lifecycle.resource import acts_as
from soperator_pulumi.simulation.deployment import Recorded
from soperator_pulumi.simulation.secret_commands import SecretNote, secret_section
from soperator_pulumi.spec.accounting import GENERATED_PASSWORD

_ACTS = {
    "InstalledParts": "checks versions and settings of the platform's parts that were installed separately",
    "Prerequisites": "checks that the objects that the stack refers to exist",
    "NodeDrain": "drains the nodes that a smaller `replicas` takes away, and waits for their jobs",
    "DrainGate": "drains all nodes before a node set or the cluster is deleted",
    "RemovedNodeSets": "drains node sets that left the stack, before slurm.conf loses them",
    "NodesReady": "waits for new nodes, recreates those with changed pods, and removes records of those that left",
    "PodsReady": "waits for slurmctld, sshd, slurmdbd and its database, and reports why they are not ready",
    "TreePopulated": "waits until the jail has a tree, before jobs and sessions may start, and records it",
    "ImagesPublished": "waits until the images of `containers.images` are in the shared store",
    "Associations": "adds the cluster, its accounts and its users to the accounting database",
    "DatabaseAccount": "changes the password of slurmdbd's account, before and after slurmdbd changes to it",
    "SlurmVersion": "dumps the accounting database before an upgrade of Slurm, and refuses a downgrade",
    "KeysInUse": "makes all pods use a new munge key or host key at once, while jobs run",
    "ActiveTree": "switches the jail to a new tree, and removes old ones",
}
"""Resources that act on the live cluster."""

_RELEASE = "kubernetes:helm.sh/v3:Release"

_LIMITS = """\
- **No drain.** A smaller `replicas`, a removed node set and a deletion end pods with their jobs. A pod that is deleted
  leaves its jobs the time of `drain.grace` alone. Drain the nodes before, with `scontrol`.
- **No transaction.** A changed slurm.conf reaches slurmctld, and nothing runs `scontrol reconfigure`. Files that Slurm
  refuses stay.
- **No rolling update.** Workers have the strategy OnDelete: changed pods are recreated when someone deletes them.
- **No switch of the jail.** The first tree is active once it is filled. A tree of another source is filled, but not
  used.
- **No memory of the jail and of Slurm's state.** A claim that has lost its contents is filled, and slurmctld starts on
  an empty one, as if the cluster were new.
- **No protection.** `kubectl delete` deletes the claims with the jail, the homes and Slurm's state.
- **No order beyond that of the files.** Pods start before the tree is filled; logins and jobs fail until then. New
  nodes take up work two minutes after they have joined.
- **No return.** Pulumi does not take over objects that others applied: use one of the two for a cluster.
"""

_OPEN_API = """\
- **The addresses of the Kubernetes API are not closed to jobs**, but for the ports of `network.closed_ports`: `up`
  reads them from the live cluster. Set `network.api_servers` in the stack, and render again.
"""


@dataclass(frozen=True)
class ManifestsPage:
    """Pages of one folder."""

    stack: str
    files: Mapping[str, Mapping[str, Any]]
    """Objects by file name."""
    secrets: Sequence[SecretNote]
    other_resources: Sequence[Recorded]
    """Resources that are not objects."""

    def text(self) -> str:
        """Return the page that explains how to apply the files, and their limits."""
        return "\n".join(
            [
                f"# Manifests of the stack {self.stack}\n",
                _wrapped(
                    f"{len(self.files)} objects, rendered by soperator-pulumi {__version__} with `make render "
                    f"STACK={self.stack}`: what `pulumi up` applies, in its order, for review and for clusters where "
                    "only manifests are allowed. The same stack renders the same bytes.\n"
                ),
                "## Apply\n",
                "```sh",
                *self._commands(),
                "```\n",
                *self._references(),
                "## Limits\n",
                _LIMITS + ("" if all(inputs.get("api_servers") for inputs in self._prerequisites()) else _OPEN_API),
                "## What else `pulumi up` does\n",
                "| resource | what it does |",
                "|---|---|",
                *(f"| {name} | {act} |" for name, act in self._acts()),
                "",
            ]
        )

    def secrets_text(self) -> str:
        """Return the page that lists the Secrets and the commands to make them."""
        if not self.secrets:
            return f"# Secrets of the stack {self.stack}\n\nNone is left out.\n"
        parts = [
            f"# Secrets of the stack {self.stack}\n",
            _wrapped(
                "Their values are in no file. Make them once, before you apply the other objects. The commands write "
                "to a temporary folder, and remove it. Other values later lock out running daemons (munge.key) and "
                "alarm users (host key).\n"
            ),
        ]
        return "\n".join([*parts, *(secret_section(note, self._password(note.namespace)) for note in self.secrets)])

    def _password(self, namespace: str) -> tuple[str, str]:
        """Return the Secret with the password of a cluster's database, and its key: one of the user, or generated."""
        for inputs in self._prerequisites():
            for reference in inputs.get("references", []) if inputs["namespace"] == namespace else []:
                if reference["path"].startswith("accounting.database.") and reference["path"].endswith(".password"):
                    return reference["name"], reference["key"]
        return GENERATED_PASSWORD, "password"

    def _prerequisites(self) -> Iterator[Mapping[str, Any]]:
        """Yield the inputs of every cluster's check of the objects that must exist before."""
        return (resource.inputs for resource in self.other_resources if acts_as(resource.type, "Prerequisites"))

    def _commands(self) -> list[str]:
        namespaces = [name for name, body in self.files.items() if body["kind"] == "Namespace"]
        jobs = [body["metadata"] for body in self.files.values() if body["kind"] == "Job"]
        return [
            *(f"kubectl apply --server-side -f {name}" for name in namespaces),
            *(["# the Secrets: secrets.md"] if self.secrets else []),
            "kubectl apply --server-side -f .",
            *(
                f"kubectl wait --namespace {job['namespace']} --for=condition=complete --timeout=1h job/{job['name']}"
                for job in jobs
            ),
        ]

    def _references(self) -> list[str]:
        """Return the objects that the stack refers to, which must exist before."""
        found = [
            line
            for inputs in self._prerequisites()
            for line in dict.fromkeys(
                f"- {reference['kind']} `{reference['name']}` ({reference['path']})"
                for reference in inputs.get("references", [])  # one for every key of a Secret
                if reference.get("name")
            )
        ]
        return ["These must exist:\n", *found, ""] if found else []

    def _acts(self) -> list[tuple[str, str]]:
        acts = {}
        for resource in self.other_resources:
            kind = resource.type.rpartition(":")[2]
            if acts_as(resource.type, kind) and kind in _ACTS:
                acts[kind] = _ACTS[kind]
            elif resource.type == _RELEASE:
                acts[f"{resource.type} {resource.name}"] = _release(resource.inputs)
            elif "soperator-pulumi:" not in resource.type and "random:" not in resource.type:
                acts[f"{resource.type} {resource.name}"] = "not rendered: it is not a Kubernetes object"
        return sorted(acts.items())


def _release(inputs: Mapping[str, Any]) -> str:
    """Return the command that installs a chart with the stack's values."""
    repository = (inputs.get("repositoryOpts") or {}).get("repo")
    flags = {"repo": repository, "version": inputs.get("version"), "namespace": inputs.get("namespace")}
    given = " ".join(f"--{name} {value}" for name, value in flags.items() if value)
    name = inputs.get("name", "<name>")
    return f"not rendered: `helm upgrade --install {name} {inputs['chart']} {given}`, with its values in the stack"


def _wrapped(text: str) -> str:
    end = "\n" if text.endswith("\n") else ""
    return textwrap.fill(text, 120, break_on_hyphens=False, break_long_words=False) + end
