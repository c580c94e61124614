"""The pack, asked by the analyzer's protocol: it reports what the same policies find in a recorded deployment."""

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf import json_format
from pulumi.runtime.proto import analyzer_pb2

from soperator_pulumi.policy import POLICIES
from soperator_pulumi.policy.recorded import judge
from soperator_pulumi.testing import deploy
from tests.rendered.cluster.clusters import provided
from tests.rendered.policy.packs import OURS, Pack, failing, request, running
from tests.rendered.policy.violating import CREDENTIALS, OF_THE_RUN, VIOLATING

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}
PROVIDER = "pulumi:providers:kubernetes"


@pytest.fixture(scope="module")
def configured() -> Iterator[Pack]:
    """The pack for a stack whose file violates policies itself, in a run with a variable."""
    merged: dict[str, Any] = {"environment": "prod"}
    for name in OF_THE_RUN:
        for key, value in VIOLATING[name].policy.items():
            merged[key] = {**merged.get(key, {}), **value}
    with running(OURS, "any", merged, VIOLATING["named-runs"].variables) as pack:
        yield pack


def test_a_stack_s_file_and_a_variable_violate_policies_too(configured: Pack) -> None:
    quota = configured.judge(*VIOLATING["gpu-quota"].deployed())
    cluster = configured.judge(*VIOLATING["named-runs"].deployed())
    always = {"named-runs", "policy-configuration", "unused-exceptions"}
    assert failing(quota) == {"gpu-quota", *always}, "a variable counts without a cluster, too"
    assert failing(cluster) == always


def test_messages_are_those_of_a_recorded_deployment(prod: Pack) -> None:
    deployment, _ = VIOLATING["network-policies"].deployed()
    recorded = judge(deployment, environment="prod", variables={}).violations
    found = prod.judge(deployment)
    assert [diagnostic.message.split("\n", 1)[1] for diagnostic in found] == [
        violation.message for violation in recorded
    ]


def test_every_policy_names_its_level_severity_cure_and_settings(prod: Pack) -> None:
    found = {policy.name: policy for policy in prod.info().policies}
    assert found.keys() == {policy.name for policy in POLICIES}
    for policy in POLICIES:
        info = found[policy.name]
        assert (info.description, info.remediation_steps, [*info.tags]) == (
            policy.description, policy.cure, [*policy.tags],
        )  # fmt: skip
        assert info.severity == analyzer_pb2.PolicySeverity.Value(f"POLICY_SEVERITY_{policy.severity.name}")
        assert set(info.configSchema.properties) == set(policy.settings.model_fields) - {"level"}
    at_most = plain(found["scale-down"].configSchema.properties["at_most"])
    assert at_most["type"] == ["integer", "string"]
    assert "default" not in at_most, "an engine would give it"


def plain(struct: Any) -> Any:
    return json_format.MessageToDict(struct)


def a_pod(**changes: Any) -> analyzer_pb2.AnalyzeRequest:
    container = {"name": "a", "image": "registry.example/a:1", **changes}
    return request("kubernetes:core/v1:Pod", "pod", {
        "metadata": {"name": "a", "namespace": "shop", "labels": {"app.kubernetes.io/part-of": "shop"}},
        "spec": {"serviceAccountName": "a", "containers": [container]},
    })  # fmt: skip


def test_a_value_that_a_preview_does_not_know_is_a_warning_and_hides_no_violation(prod: Pack) -> None:
    found = prod.analyzed(a_pod(image=UNKNOWN, securityContext={"privileged": True}))
    assert failing(found) == {"privileged-pods"}
    (warning,) = [diagnostic for diagnostic in found if diagnostic.enforcementLevel == analyzer_pb2.ADVISORY]
    assert warning.policyName == "pinned-images"
    assert "Pod pod, spec.containers[0].image can't be known during preview" in warning.message


def test_an_unknown_value_in_one_resource_leaves_a_policy_of_the_stack_to_the_others(prod: Pack) -> None:
    deployment = deploy(VIOLATING["disruption-budgets"].program, outputs=provided)
    admin: Any = deployment.request("hpc-admin", "StatefulSet").object
    admin["spec"]["template"]["metadata"]["labels"] = UNKNOWN
    assert failing(prod.judge(deployment)) == {"disruption-budgets"}


def test_a_marked_credential_passes_and_a_plain_one_does_not(prod: Pack) -> None:
    for value, expected in ((CREDENTIALS, {"marked-secrets"}), ({**SECRET, "value": CREDENTIALS}, set())):
        asked = request(PROVIDER, "other", {"kubeconfig": value})
        assert prod.corrected(asked) == []
        assert failing(prod.analyzed(asked)) == expected


def test_no_message_repeats_a_text_of_the_properties(prod: Pack) -> None:
    secret = "hunter2hunter2"
    environment = [{"name": "DB_PASSWORD", "value": secret}]
    found = prod.analyzed(a_pod(env=environment, args=[f"--token={secret}"], image=f"{secret}.example/{secret}"))
    assert failing(found) == {"pinned-images", "secrets-in-secrets"}
    assert secret not in "".join(diagnostic.message for diagnostic in found)


def test_what_is_safe_is_corrected_where_the_level_is_remediate() -> None:
    team = {"labels": {"level": "remediate", "values": {"team": "research"}}}
    with running(OURS, "dev", {"settings": team}) as pack:
        asked = a_pod(image=UNKNOWN)
        pod: Any = asked.properties
        pod["spec"]["serviceAccountName"] = ""
        token, labels = pack.corrected(asked)
        assert (token.policyName, labels.policyName) == ("service-account-tokens", "labels")
        assert plain(token.properties)["spec"]["automountServiceAccountToken"] is False
        corrected = plain(labels.properties)
        assert corrected["spec"]["automountServiceAccountToken"] is False, "one follows the other"
        assert corrected["metadata"]["labels"]["team"] == "research"
        assert corrected["metadata"]["labels"]["app.kubernetes.io/part-of"] == "shop"
        assert corrected["spec"]["containers"][0]["image"] == UNKNOWN

        secret_spec = a_pod()
        hidden = {**plain(secret_spec.properties)["spec"], "serviceAccountName": ""}
        secret_spec.properties.update({"spec": {**SECRET, "value": hidden}})
        (token, _) = pack.corrected(secret_spec)
        expected = {**SECRET, "value": {**hidden, "automountServiceAccountToken": False}}
        assert plain(token.properties)["spec"] == expected, "still a secret"

        provider = request(PROVIDER, "other", {"kubeconfig": CREDENTIALS, "context": "c"})
        (marked,) = pack.corrected(provider)
        assert plain(marked.properties)["kubeconfig"] == {**SECRET, "value": CREDENTIALS}
        assert plain(marked.properties)["context"] == "c"
        provider.properties.CopyFrom(marked.properties)
        assert pack.analyzed(provider) == []
