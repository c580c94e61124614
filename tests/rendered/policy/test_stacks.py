"""The stacks of this repository violate no policy of their environments."""

import json
from pathlib import Path

import pytest

from soperator_pulumi.policy.recorded import judge
from soperator_pulumi.testing import deploy
from stacks import program
from tests.rendered.cluster.clusters import IMAGES, provided
from tools import paths
from tools.engine import Target, project

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKFcZ4bq2dE6NcAZQ0yBLBwXVGQpCq3m2V1rW9o1l2xk me"
STACKS = sorted(file.name.split(".")[1] for file in (paths.ROOT / "stacks").glob("Pulumi.*.yaml"))


@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_violates_no_policy(stack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.images.references", lambda **_: IMAGES)
    monkeypatch.setattr("tools.ssh.public_key", lambda: KEY)
    config = project.load(Target(project=paths.ROOT, stack=stack, state=tmp_path)).config
    policy = json.loads(config.get("soperator:policy", "{}"))

    found = judge(deploy(program.run, config=config, outputs=provided), policy=policy, stack=stack, variables={})

    assert found.failures == ()
    assert found.remediations == (), "what is corrected is corrected in the program"
