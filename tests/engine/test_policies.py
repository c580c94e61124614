"""Policy packs: what violates a policy fails in the preview, before anything is applied; what does not, passes."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from soperator_pulumi.cli.stack_changes import StackChanges, StepOp
from tests.engine.conftest import Stack
from tools import paths
from tools.engine.protocol import HIDDEN, Target

pytestmark = pytest.mark.engine

PACK = paths.ROOT / "policy"
OWN_PACK = paths.ROOT / "examples" / "own-policy"
SIZED = paths.ROOT / "tests" / "engine" / "programs" / "sized"
POD = {"serviceAccountName": "app", "containers": [{"name": "app", "image": "registry.example/app:1"}]}
NO_NETWORK_POLICY = {"network-policies": {"reason": "these pods are never made"}}


@pytest.fixture
def judged(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Stack:
    """A stack whose runs the repository's own pack judges: by the stack's name, in the environment prod."""
    monkeypatch.setenv("PYTHONPATH", str(paths.ROOT))
    target = stack.target

    def with_pack(**changes: Any) -> Target:
        return target(**{"policy_packs": (PACK,), **changes})

    monkeypatch.setattr(stack, "target", with_pack)
    stack.config = policy(exceptions=NO_NETWORK_POLICY)
    return stack


def policy(**parts: Any) -> dict[str, Any]:
    return {"soperator:policy": parts}


def a_pod(stack: Stack, name: str, **changes: Any) -> dict[str, Any]:
    """A resource that describes pods, as custom resources do."""
    return stack.thing(name, template={"spec": {**POD, **changes}})


def test_a_preview_fails_with_all_violations_and_nothing_is_applied(judged: Stack) -> None:
    judged.config = policy(exceptions={**NO_NETWORK_POLICY, "host-pahts": {"reason": "a mistake"}})
    latest = [{"name": "app", "image": "registry.example/app:latest"}]

    error = judged.fails(
        lambda: judged.preview(a_pod(judged, "a", containers=latest), a_pod(judged, "b", hostPID=True))
    )

    messages = {failure.name: failure.message for failure in error.failures}
    assert messages.keys() == {"declared-test", "a", "b"}
    assert 'exceptions.host-pahts: there is no such policy. Did you mean "host-paths"?' in messages["declared-test"]
    assert 'Thing a, template.spec.containers[0].image: got the tag "latest", needs a version' in messages["a"]
    assert "Pin the image" in messages["a"], "the cure"
    assert "{exceptions: {pinned-images: {reason: ..., resources: [Thing/a]}}}" in messages["a"]
    assert "privileged-pods" in messages["b"]
    assert "Thing b, template.spec.hostPID: got true, needs false." in messages["b"]
    assert judged.log() == []
    assert not any("Traceback" in line for line in judged.lines)


def test_an_update_stops_before_the_resource_that_violates_a_policy(judged: Stack) -> None:
    good, bad = a_pod(judged, "good"), a_pod(judged, "bad", hostPID=True)
    bad["options"] = {"depends_on": ["good"]}

    error = judged.fails(lambda: judged.up(good, bad))

    assert [failure.name for failure in error.failures] == ["bad"]
    assert judged.log() == ["create good", "create good done"]


def test_what_violates_nothing_is_deployed_and_stays_unchanged(judged: Stack) -> None:
    assert judged.preview(a_pod(judged, "app")).names(StepOp.CREATE) >= {"app"}
    judged.up()
    assert judged.log() == ["create app", "create app done"]
    assert judged.up().changed == ()


def test_a_policy_of_the_whole_stack_fails_the_preview(judged: Stack) -> None:
    judged.config = {}

    error = judged.fails(lambda: judged.preview(a_pod(judged, "app")))

    assert {failure.name for failure in error.failures} == {"app"}
    assert "no NetworkPolicy of this stack covers the ingress of these pods" in str(error)


def test_a_credential_is_encrypted_where_the_level_is_remediate(judged: Stack) -> None:
    judged.config = policy(environment="dev")
    judged.up(judged.thing("db", password="hunter2"))

    assert {resource.name: resource.inputs.get("password") for resource in judged.deployer().state()}["db"] == HIDDEN
    assert judged.up().changed == ()


def test_a_plain_credential_fails_the_preview_where_the_level_is_mandatory(judged: Stack) -> None:
    judged.config = {}
    error = judged.fails(lambda: judged.preview(judged.thing("db", password="hunter2")))
    assert "marked-secrets" in str(error)
    assert "hunter2" not in "\n".join([str(error), *judged.lines])

    assert judged.preview(judged.thing("db", password={"secret": "hunter2"})).names(StepOp.CREATE) >= {"db"}


def test_a_pack_of_someone_elses_judges_by_their_policy_and_not_by_ours_that_they_switched_off(
    judged: Stack, tmp_path: Path
) -> None:
    judged.config = {}
    pack = shutil.copytree(OWN_PACK, tmp_path / "own-policy")
    (pack / "venv").symlink_to(sys.prefix)

    def preview(**labels: str) -> StackChanges:
        metadata = {"name": None, "namespace": None, "labels": {"app.kubernetes.io/part-of": "team", **labels}}
        judged.resources = [judged.object("team", "core/v1:Namespace", {"metadata": metadata})]
        return judged.deployer(policy_packs=(pack,)).preview()

    (failure,) = judged.fails(preview).failures
    assert failure.name == "team"
    assert "metadata.labels.cost-centre: needs a cost centre, cc-..." in failure.message
    assert preview(**{"cost-centre": "cc-1"}).names(StepOp.CREATE) >= {"team"}


def test_a_preview_names_the_pack_that_judges_it(local: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(paths.ROOT))
    local.deployer(policy_packs=(PACK,)).preview()
    assert any("policy pack soperator-pulumi judges with " in line for line in local.lines)


def test_a_pack_that_does_not_start_fails_with_its_own_words(local: Stack, tmp_path: Path) -> None:
    (tmp_path / "PulumiPolicy.yaml").write_text("runtime: python\n")
    (tmp_path / "__main__.py").write_text("raise RuntimeError('nothing to serve')\n")

    error = local.fails(lambda: local.deployer(policy_packs=(tmp_path,)).preview())

    assert "nothing to serve" in str(error)


def test_a_folder_that_is_no_pack_is_refused_by_its_name(local: Stack, tmp_path: Path) -> None:
    error = local.fails(lambda: local.deployer(policy_packs=(tmp_path,)).preview())
    assert f"{tmp_path} is not a policy pack: it has no PulumiPolicy.yaml." in str(error)


@pytest.fixture
def sized(judged: Stack, monkeypatch: pytest.MonkeyPatch) -> Stack:
    """Node sets of sizes that the configuration gives, whose scale-down the pack judges."""
    target = judged.target
    monkeypatch.setattr(judged, "target", lambda **changes: target(project=SIZED, **changes))
    return judged


def of_sizes(stack: Stack, **sizes: int) -> Stack:
    stack.config = {"sized:namespace": stack.namespace, "sized:sizes": sizes}
    return stack


def test_the_size_before_is_known_to_policies_and_is_no_change_by_itself(sized: Stack) -> None:
    of_sizes(sized, cpu=4, gpu=2).up()
    assert of_sizes(sized, cpu=4, gpu=2).up().changed == ()
    assert of_sizes(sized, cpu=4, gpu=2).preview().changed == (), "in the state by now"

    assert of_sizes(sized, cpu=3, gpu=2).preview().names(StepOp.UPDATE) == {"cpu-drain"}
    many = sized.fails(lambda: of_sizes(sized, cpu=1, gpu=2).preview())
    gone = sized.fails(lambda: of_sizes(sized, cpu=4).preview())

    assert many.failures[0].name == "cpu-drain"
    allowed = "3 of 4 nodes would leave at once, but at most 1 are allowed (25%)."
    assert f"NodeDrain cpu-drain, replicas: {allowed}" in str(many)
    assert "3 of 6 nodes would leave at once, but at most 1 are allowed" in " ".join(str(many).split())
    assert gone.failures[0].name == "removed"
    assert "removed.gpu: 2 of 2 nodes would leave at once" in str(gone)

    of_sizes(sized, cpu=4, gpu=1).up()
    lost = of_sizes(sized, cpu=3, gpu=1).preview()
    assert lost.names(StepOp.UPDATE) == {"cpu-drain"}, "what the run before has taken counts no more"
    assert "gpu-drain" in of_sizes(sized, cpu=4).preview().names(StepOp.DELETE), "one node at once is allowed"
