"""Access to the Kubernetes of a resource: of its inputs, of the stack, or Pulumi's own; newest credentials count."""

import pytest
from pulumi.dynamic import Config, ConfigureRequest

from soperator_pulumi.kube.access import Access
from soperator_pulumi.lifecycle.connection import ClusterConnection, KubernetesAccess, access, with_newest_access
from soperator_pulumi.lifecycle.pods_ready import PodsReadyProvider
from tests.fakes.objects import NAMESPACE, SELECTOR
from tests.unit.lifecycle.recorded_world import NEW, OLD, OTHER, a_config


@pytest.mark.parametrize(
    ("props", "config", "expected"),
    [
        ({}, a_config(), Access()),
        ({"kubeconfig": "inputs"}, a_config(soperator__kubeconfig="stack"), Access("inputs")),
        ({}, a_config(kubernetes__context="west"), Access(None, "west")),
        ({"context": "east"}, a_config(kubernetes__context="west"), Access(None, "east")),
    ],
)
def test_the_cluster_is_the_one_of_the_inputs_then_of_the_stack_then_of_pulumis_own_provider(
    props: dict[str, str], config: Config, expected: Access
) -> None:
    assert access(props, config) == expected


@pytest.mark.parametrize(
    ("recorded", "config", "expected"),
    [
        ({"kubeconfig": OLD}, a_config(), Access(OLD)),
        ({"kubeconfig": OLD}, a_config(soperator__kubeconfig=NEW), Access(NEW)),
        ({"kubeconfig": OLD, "context": "east"}, a_config(soperator__kubeconfig=NEW), Access(NEW)),
        ({"kubeconfig": OLD, "context": "west"}, a_config(soperator__kubeconfig=NEW), Access(OLD, "west")),
        ({"kubeconfig": OLD}, a_config(soperator__kubeconfig=OTHER), Access(OLD)),
        ({"kubeconfig": OLD}, a_config(soperator__kubeconfig="[broken"), Access(OLD)),
        ({"kubeconfig": OLD}, a_config(soperator__kubeconfig='{"from_stack": "o/p/s", "output": "k"}'), Access(OLD)),
        ({"kubeconfig": "/no/such/file"}, a_config(soperator__kubeconfig=NEW), Access("/no/such/file")),
        ({"kubeconfig": OLD}, a_config(soperator__context="west"), Access(OLD)),
        ({"kubeconfig": OLD}, a_config(kubernetes__kubeconfig=NEW), Access(OLD)),
        ({"context": "east"}, a_config(soperator__kubeconfig=NEW), Access(None, "east")),
        ({}, a_config(soperator__kubeconfig=NEW), Access(NEW)),
        ({}, a_config(soperator__context="west"), Access(None, "west")),
    ],
)
def test_recorded_credentials_are_renewed_by_those_of_the_stack_for_the_same_server_alone(
    recorded: dict[str, str], config: Config, expected: Access
) -> None:
    assert access(with_newest_access(recorded, config), config) == expected


def test_a_kubeconfig_does_not_show_in_what_is_printed_of_a_connection() -> None:
    assert "token" not in repr(Access("token: abc", "west"))


def test_the_stacks_configuration_reaches_the_provider_in_its_own_process() -> None:
    provider = PodsReadyProvider()
    provider.configure(ConfigureRequest(a_config(soperator__context="west")))
    assert provider._config is not None


def test_the_handle_of_a_cluster_prints_no_credentials() -> None:
    cluster = ClusterConnection(KubernetesAccess("token: hunter2"), NAMESPACE, "project.dev.hpc", "", SELECTOR)
    assert "hunter2" not in repr(cluster)
