"""Arguments of SlurmCluster, and the errors about others."""

import pulumi
import pulumi_kubernetes as kubernetes
import pytest

from soperator_pulumi import ClusterSpec, SlurmCluster, parse_cluster
from soperator_pulumi.cluster import InvalidClusterError
from soperator_pulumi.testing import Deployment, Secret, deploy
from tests.rendered.cluster.clusters import a_spec, provided

KUBECONFIG = "apiVersion: v1\nkind: Config\n"


def names(deployment: Deployment) -> set[str]:
    return {resource.name for resource in deployment.recorded}


def test_the_description_comes_as_a_mapping_as_keywords_or_as_both() -> None:
    spec = a_spec()
    node_sets, rest = spec["node_sets"], {key: value for key, value in spec.items() if key != "node_sets"}
    whole = deploy(lambda: SlurmCluster("hpc", spec), outputs=provided)
    keywords = deploy(lambda: SlurmCluster("hpc", **spec), outputs=provided)
    both = deploy(lambda: SlurmCluster("hpc", rest, node_sets=node_sets), outputs=provided)
    assert names(whole) == names(keywords) == names(both)


def test_a_checked_spec_is_taken_as_it_is() -> None:
    spec = parse_cluster({"name": "hpc", **a_spec()})
    assert isinstance(spec, ClusterSpec)
    deploy(lambda: SlurmCluster("hpc", spec), outputs=provided).one("hpc-cpu", "StatefulSet")


def test_a_checked_spec_and_keywords_do_not_go_together() -> None:
    spec = parse_cluster({"name": "hpc", **a_spec()})
    with pytest.raises(InvalidClusterError, match="users: given in addition to a ClusterSpec"):
        deploy(lambda: SlurmCluster("hpc", spec, users=[]), outputs=provided)


def test_the_cluster_has_the_components_name_unless_it_is_given_one() -> None:
    unnamed = deploy(lambda: SlurmCluster("hpc", a_spec()), outputs=provided)
    named = deploy(lambda: SlurmCluster("hpc", a_spec(name="prod")), outputs=provided)
    assert unnamed.one("hpc-namespace").inputs["metadata"]["name"] == "hpc"
    assert named.one("hpc-namespace").inputs["metadata"]["name"] == "prod"


@pytest.mark.parametrize("description", [a_spec(users=[{"name": "alice", "uid": 1}, {"nmae": "bob"}]), [], "hpc", None])
def test_a_bad_description_is_one_message_without_a_traceback_and_registers_nothing(description: object) -> None:
    registered: list[Deployment] = []

    def program() -> None:
        SlurmCluster("hpc", description)  # type: ignore[arg-type]  # what a person may have written

    with pytest.raises(InvalidClusterError, match="SlurmCluster 'hpc' has") as raised:
        registered.append(deploy(program, outputs=provided))
    assert isinstance(raised.value, pulumi.RunError), "Pulumi prints only the message of a RunError"
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__
    assert not registered


def test_the_message_names_which_of_two_clusters_has_the_problem() -> None:
    def program() -> None:
        SlurmCluster("research", a_spec())
        SlurmCluster("teaching", a_spec(users=[{"name": "alice", "uid": 1}]))

    with pytest.raises(InvalidClusterError, match=r"SlurmCluster 'teaching' has 1 problem:\n  users\[0\]\.uid: "):
        deploy(program, outputs=provided)


def test_a_kubeconfig_gives_the_cluster_a_provider_of_its_own() -> None:
    deployment = deploy(lambda: SlurmCluster("hpc", a_spec(), kubeconfig=KUBECONFIG, context="west"), outputs=provided)
    provider = deployment.one("hpc-kubernetes")
    assert provider.inputs["context"] == "west"
    for resource in deployment.recorded:
        if resource.type.startswith("kubernetes:"):
            assert "::hpc-kubernetes::" in resource.request.provider, resource.name


def test_another_address_of_the_same_kubernetes_recreates_nothing() -> None:
    """By pulumi-kubernetes' rule a provider with another cluster entry replaces all, unless an identifier stays."""

    def identifier(server: str) -> object:
        kubeconfig = f"apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: {server}}}}}]\n"
        deployment = deploy(lambda: SlurmCluster("hpc", a_spec(), kubeconfig=kubeconfig), outputs=provided)
        return deployment.one("hpc-kubernetes").inputs["clusterIdentifier"]

    assert identifier("https://192.0.2.7") == identifier("https://192.0.2.8") != ""


def test_the_kubeconfig_is_secret_in_every_resource_of_this_package() -> None:
    deployment = deploy(lambda: SlurmCluster("hpc", a_spec(), kubeconfig=KUBECONFIG), outputs=provided)
    dynamic = [resource for resource in deployment.recorded if resource.type.startswith("pulumi-python:dynamic/")]
    assert dynamic
    for resource in dynamic:
        assert resource.inputs["kubeconfig"] == Secret(KUBECONFIG), resource.name
        assert "kubeconfig" in resource.request.additionalSecretOutputs, resource.name


def test_an_explicit_provider_alone_is_refused_with_the_reason() -> None:
    def program() -> None:
        provider = kubernetes.Provider("elsewhere", kubeconfig=KUBECONFIG)
        SlurmCluster("hpc", a_spec(), pulumi.ResourceOptions(provider=provider))

    with pytest.raises(InvalidClusterError, match="cannot read the provider's credentials") as raised:
        deploy(program, outputs=provided)
    assert isinstance(raised.value, pulumi.RunError)


def test_a_provider_inherited_from_a_parent_is_refused_as_well() -> None:
    def program() -> None:
        provider = kubernetes.Provider("elsewhere", kubeconfig=KUBECONFIG)
        parent = pulumi.ComponentResource(
            "test:index:Platform", "platform", {}, pulumi.ResourceOptions(providers=[provider])
        )
        SlurmCluster("hpc", a_spec(), pulumi.ResourceOptions(parent=parent))

    with pytest.raises(InvalidClusterError, match="kubeconfig: missing"):
        deploy(program, outputs=provided)


def test_an_explicit_provider_with_its_kubeconfig_is_used() -> None:
    def program() -> None:
        provider = kubernetes.Provider("elsewhere", kubeconfig=KUBECONFIG)
        SlurmCluster("hpc", a_spec(), pulumi.ResourceOptions(provider=provider), kubeconfig=KUBECONFIG)

    deployment = deploy(program, outputs=provided)
    assert "hpc-kubernetes" not in names(deployment)
    assert "::elsewhere::" in deployment.request("hpc-cpu", "StatefulSet").provider


def test_images_may_be_known_only_after_another_resource_exists() -> None:
    def program() -> None:
        images = {role: pulumi.Output.from_input(f"registry.example/{role}:9") for role in IMAGE_ROLES}
        SlurmCluster("hpc", a_spec(images={**images, "jail": "registry.example/jail:9"}))

    pod = deploy(program, outputs=provided).one("hpc-cpu", "StatefulSet").inputs["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == "registry.example/worker:9"


IMAGE_ROLES = ("controller", "worker", "login", "accounting", "database", "munge", "jail_tools")
