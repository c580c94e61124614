"""Asks for what `refused:ask` names."""

import pulumi
import pulumi_kubernetes as kubernetes
import pulumi_random as random

ask = pulumi.Config().require("ask")
options = pulumi.ResourceOptions()


def unchanged(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult:
    return pulumi.ResourceTransformResult(props=args.props, opts=args.opts)


async def hook(_args: pulumi.ResourceHookArgs) -> None:
    """Do nothing."""


class Remote(pulumi.ComponentResource):
    """A component that another package makes."""

    def __init__(self) -> None:
        super().__init__("other:index:Thing", "remote", {}, None, remote=True)


first = random.RandomUuid("first")
match ask:
    case "transforms":
        options = pulumi.ResourceOptions(transforms=[unchanged])
    case "stack transforms":
        pulumi.runtime.register_stack_transform(unchanged)
    case "hooks":
        options = pulumi.ResourceOptions(hooks=pulumi.ResourceHookBinding(before_create=[hook]))
    case "import_":
        options = pulumi.ResourceOptions(import_="id")
    case "deleted_with":
        options = pulumi.ResourceOptions(deleted_with=first)
    case "replace_with":
        options = pulumi.ResourceOptions(replace_with=[first])
    case "replacement_trigger":
        options = pulumi.ResourceOptions(replacement_trigger="1")
    case "hide_diffs":
        options = pulumi.ResourceOptions(hide_diffs=["length"])
    case "custom_timeouts.read":
        options = pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(read="1s"))
    case "a component of another package":
        Remote()
    case "function":
        pulumi.runtime.invoke("kubernetes:yaml:decode", {})
    case "get":
        random.RandomUuid.get("got", "x")
    case "asset":
        kubernetes.core.v1.ConfigMap("asset", data={"k": pulumi.StringAsset("text")})  # type: ignore[dict-item] # wrong by intention
    case "type":
        random.RandomPet("pet")
    case "package":
        pulumi.CustomResource("aws:s3/bucket:Bucket", "bucket", {})
    case "ConfigMapPatch":
        kubernetes.core.v1.ConfigMapPatch("patch", metadata={"name": "x"})
    case "Ingress":
        kubernetes.networking.v1.Ingress("ingress", metadata={"namespace": "default"}, spec={})
    case "waitFor" | "replaceUnready":
        annotations = {f"pulumi.com/{ask}": "true"}
        kubernetes.core.v1.ConfigMap("map", metadata={"namespace": "default", "annotations": annotations})
    case "generateName":
        kubernetes.core.v1.ConfigMap("map", metadata={"namespace": "default", "generate_name": "x-"})
    case "renderYamlToDirectory":
        kubernetes.Provider("provider", render_yaml_to_directory="x")
    case "enableServerSideApply":
        kubernetes.Provider("provider", enable_server_side_apply=False)
    case "provider":
        random.Provider("provider")

random.RandomString("last", length=1, opts=options)
