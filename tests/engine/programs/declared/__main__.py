"""Creates the resources that `declared:resources` lists: a test says what a program of its own would say."""

from functools import cache
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
from things import Thing  # type: ignore[import-not-found] # next to the program, on sys.path when it runs

config = pulumi.Config()
made: dict[str, pulumi.Resource] = {}


@cache
def other_stack(name: str) -> pulumi.StackReference:
    return pulumi.StackReference(name)


def value(of: Any) -> Any:
    """Replace `{"from": "name.path.to.output"}` by that output, `{"stack": ..., "output": ...}` by another stack's."""
    if isinstance(of, list):
        return [value(item) for item in of]
    if not isinstance(of, dict):
        return of
    if of.keys() == {"from"}:
        name, key, *path = of["from"].split(".")
        output = getattr(made[name], key) if key in {"id", "urn"} else made[name].__dict__[key]
        for step in path:
            output = output[step]
        return output
    if of.keys() == {"stack", "output"}:
        return other_stack(of["stack"]).require_output(of["output"])
    if of.keys() == {"secret"}:
        return pulumi.Output.secret(of["secret"])
    if of.keys() == {"file"}:
        return pulumi.FileAsset(of["file"])
    if of.keys() == {"text_of_file"}:
        return pulumi.StringAsset(of["text_of_file"])
    return {key: value(item) for key, item in of.items()}


def options(given: dict[str, Any]) -> pulumi.ResourceOptions:
    """Read resource options, by their Python names."""
    given = dict(given)
    for key in ("parent", "provider", "deleted_with"):
        if key in given:
            given[key] = made[given[key]]
    for key in ("depends_on", "replace_with"):
        if key in given:
            given[key] = [made[name] for name in given[key]]
    if "aliases" in given:
        given["aliases"] = [pulumi.Alias(**alias) for alias in given["aliases"]]
    if "custom_timeouts" in given:
        given["custom_timeouts"] = pulumi.CustomTimeouts(**given["custom_timeouts"])
    return pulumi.ResourceOptions(**given)


class Group(pulumi.ComponentResource):
    """A component."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions) -> None:
        super().__init__("tests:index:Group", name, {}, opts)
        self.register_outputs({})


for item in config.require_object("resources"):
    name, kind, opts = item["name"], item["type"], options(item.get("options", {}))
    properties = value(item.get("properties", {}))
    match kind:
        case "Group":
            made[name] = Group(name, opts)
        case "Thing":
            made[name] = Thing(name, properties, opts)
        case "StackReference":
            made[name] = pulumi.StackReference(name, properties["stack"])
        case "KubePrometheusStack":
            from soperator_pulumi.platform.kube_prometheus_stack import KubePrometheusStack

            made[name] = KubePrometheusStack(name, properties, opts)
        case "SecretFiles":
            from soperator_pulumi.lifecycle import ClusterConnection, KubernetesAccess, SecretFiles

            where = ClusterConnection(KubernetesAccess(), properties["namespace"], "owner", "", {"app": "none"})
            given = {"labels": {}, "annotations": {}, "readers": [], "files": properties["files"]}
            made[name] = SecretFiles(name, secret=name, cluster=where, opts=opts, **given)
        case "read":
            made[name] = pulumi.CustomResource(
                item["kind"],
                name,
                {"data": None},
                pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(id=item["id"])),
            )
        case "Provider":
            made[name] = kubernetes.Provider(name, opts=opts, **properties)
        case _:
            outputs = dict.fromkeys(item.get("outputs", []))
            made[name] = pulumi.CustomResource(kind, name, {**outputs, **properties}, opts)

for name, source in (config.get_object("exports") or {}).items():
    pulumi.export(name, value(source))
