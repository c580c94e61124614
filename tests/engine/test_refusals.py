"""The local engine ignores nothing in silence: what it can't do it refuses by name, and then makes nothing."""

from pathlib import Path

import pytest

from tests import warm_python
from tests.conftest import Kubernetes
from tools.console import UserError
from tools.engine import DeployError, LocalDeployer, Target

pytestmark = pytest.mark.engine

PROGRAM = Path(__file__).parent / "programs" / "refused"


def deployer(kubernetes: Kubernetes, folder: Path, **config: object) -> LocalDeployer:
    environment = {"KUBECONFIG": str(kubernetes.kubeconfig)}
    python = warm_python.executable()
    target = Target(project=PROGRAM, stack="test", state=folder, config=config, environment=environment, python=python)
    return LocalDeployer(target, lambda _: None)


@pytest.mark.parametrize(
    ("ask", "name"),
    [
        ("transforms", "transforms on random:index/randomString:RandomString 'last'"),
        ("stack transforms", "stack transforms"),
        ("hooks", "resource hook"),
        ("import_", "import_ on"),
        ("deleted_with", "deleted_with on"),
        ("replace_with", "replace_with on"),
        ("replacement_trigger", "replacement_trigger on"),
        ("hide_diffs", "hide_diffs on"),
        ("custom_timeouts.read", "custom_timeouts.read on"),
        ("a component of another package", "type other:index:Thing: not supported"),
        ("function", "function kubernetes:yaml:decode"),
        ("get", "random:index/randomUuid:RandomUuid.get('got')"),
        ("asset", "an asset is not supported"),
        ("type", "random:index/randomPet:RandomPet is not supported"),
        ("package", "type aws:s3/bucket:Bucket: not supported"),
        ("ConfigMapPatch", "kubernetes:core/v1:ConfigMapPatch: not supported"),
        ("Ingress", "waiting for an Ingress"),
        ("waitFor", 'metadata.annotations["pulumi.com/waitFor"]'),
        ("replaceUnready", 'metadata.annotations["pulumi.com/replaceUnready"]'),
        ("generateName", "metadata.generateName"),
        ("renderYamlToDirectory", "renderYamlToDirectory on the kubernetes provider: not supported"),
        ("enableServerSideApply", "enableServerSideApply on the kubernetes provider: not supported"),
        ("provider", "an explicit provider of package 'random': not supported"),
    ],
)
def test_it_refuses_by_name(kubernetes: Kubernetes, tmp_path: Path, ask: str, name: str) -> None:
    engine = deployer(kubernetes, tmp_path, **{"refused:ask": ask})
    with pytest.raises(DeployError) as caught:
        engine.preview()
    assert name in str(caught.value)
    assert "Traceback" not in caught.value.failures[0].message


def test_what_it_does_not_refuse_it_does(kubernetes: Kubernetes, tmp_path: Path) -> None:
    engine = deployer(kubernetes, tmp_path, **{"refused:ask": "nothing"})
    assert {change.name for change in engine.up().changed} >= {"first", "last"}


@pytest.mark.parametrize(
    ("key", "value"),
    [("pulumi:autonaming", {"mode": "verbatim"}), ("refused:ask", {"secure": "v1:abc"})],
)
def test_it_refuses_configuration_by_its_key(kubernetes: Kubernetes, tmp_path: Path, key: str, value: object) -> None:
    with pytest.raises(UserError, match=key):
        deployer(kubernetes, tmp_path, **{key: value}).preview()
