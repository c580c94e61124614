"""Program of every stack: a SlurmCluster for each cluster that the stack's configuration describes."""

import gc
from collections.abc import Mapping
from typing import Any

import pulumi

from soperator_pulumi import ClusterSpec, SlurmCluster, parse_cluster
from soperator_pulumi.errors import Problem, SpecError
from stacks import stack_config
from stacks.stack_config import CONTEXT, KUBECONFIG, LOCAL, SEVERAL
from stacks.stack_outputs import StackOutputs, as_text, is_reference


def run() -> None:
    """Create the clusters of `soperator:cluster` or `soperator:clusters`, and export how to reach them.

    `soperator:local`, in the stack of a cluster on this machine, adds the images built here and the key of
    `make ssh` (`stacks/this_machine.py`). `soperator:kubeconfig` and `soperator:context` choose the Kubernetes;
    the default is the ambient one, as for every Kubernetes tool.

    Raises:
        StackConfigError: The configuration has problems. All of them are in one message.
    """
    gc.freeze()  # modules stay: a last collection of them all, before the end, would take a third of a second
    values = stack_config.in_runtime()
    specs, kubeconfig = _checked(values)
    clusters = {
        name: SlurmCluster(name, spec, kubeconfig=kubeconfig, context=values.get(CONTEXT))
        for name, spec in specs.items()
    }
    exports = {name: {**_exports(cluster), **_local_exports(values)} for name, cluster in clusters.items()}
    for key, value in ({"clusters": exports} if SEVERAL in values else next(iter(exports.values()))).items():
        pulumi.export(key, value)


def _checked(values: Mapping[str, Any]) -> tuple[dict[str, ClusterSpec], pulumi.Output[str] | None]:
    """Return the specs of all clusters by their components' names, and their kubeconfig.

    Other stacks are read for a valid configuration alone, so that their absence hides no problem of it.
    """
    unread = StackOutputs(read=False)
    kubeconfig = _kubeconfig(values, unread)
    specs, problems = _specs(values, unread)
    if problems:
        raise stack_config.error(problems)
    if unread.found:
        outputs = StackOutputs(read=True)
        kubeconfig = _kubeconfig(values, outputs)
        specs, _ = _specs(values, outputs)
    return specs, kubeconfig


def _kubeconfig(values: Mapping[str, Any], outputs: StackOutputs) -> pulumi.Output[str] | None:
    """Return the kubeconfig in the stack's configuration, or in another stack's outputs."""
    given = values.get(KUBECONFIG)
    if is_reference(given):
        found = outputs.output(given, KUBECONFIG)
        return None if found is None else found.apply(as_text)
    return pulumi.Config("soperator").get_secret("kubeconfig")


def _specs(values: Mapping[str, Any], outputs: StackOutputs) -> tuple[dict[str, ClusterSpec], list[Problem]]:
    """Return the valid specs by their components' names, and the problems of the whole configuration."""
    described, problems = stack_config.read(values)
    specs = {}
    for each in described:
        description = outputs.resolve(_with_local_parts(each.merged, values.get(LOCAL)), each.place)
        named = {"name": each.component, **description} if isinstance(description, Mapping) else description
        try:
            specs[each.component] = parse_cluster(named, each.path)
        except SpecError as error:
            problems += [Problem(each.place(problem.path), problem.text) for problem in error.problems]
    problems += stack_config.clashes({f"{SEVERAL}.{name}": spec for name, spec in specs.items()})
    malformed = {problem.path for problem in outputs.problems}
    return specs, [*outputs.problems, *(each for each in problems if each.path not in malformed)]


def _with_local_parts(description: object, settings: object) -> object:
    if not isinstance(description, Mapping) or not isinstance(settings, Mapping) or "user" not in settings:
        return description
    from stacks import this_machine  # noqa: PLC0415 - no other stack waits for the tools

    return this_machine.complete(description, settings)


def _local_exports(values: Mapping[str, Any]) -> dict[str, str]:
    return {"login_user": values[LOCAL]["user"]} if LOCAL in values else {}


def _exports(cluster: SlurmCluster) -> dict[str, pulumi.Output[Any]]:
    return {
        "namespace": cluster.namespace_name,
        "jail_tree": cluster.jail_tree,
        "login_host_key": cluster.login.host_public_key,
        "login_host_key_fingerprint": cluster.login.host_key_fingerprint,
        "login_endpoint": cluster.login.endpoint,
    }
