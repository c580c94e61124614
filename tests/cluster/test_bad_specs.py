"""Mistyped specs: one message with all problems by path, nothing applied, no traceback."""

from collections.abc import Callable, Iterator

import pytest

from tests.cluster.slurm import Slurm, a_node_set, unique
from tests.conftest import Kubernetes
from tools.engine import DeployError

pytestmark = pytest.mark.cluster


def what_up_says(slurm: Slurm, capfd: pytest.CaptureFixture[str]) -> str:
    """Return all that a person sees of a failed `up`: the error and what was printed."""
    with pytest.raises(DeployError) as failure:
        slurm.up()
    printed = capfd.readouterr()
    return f"{failure.value}\n{printed.out}\n{printed.err}"


def is_applied(slurm: Slurm) -> bool:
    return slurm.namespace in {item.metadata.name for item in slurm.api.list_namespace().items}


def test_all_problems_are_reported_at_once_and_nothing_is_applied(
    new_slurm: Callable[..., Slurm], capfd: pytest.CaptureFixture[str]
) -> None:
    slurm = new_slurm(
        node_sets=[a_node_set("cpu", replicas=-1), a_node_set("cpu", memory_gib="2G"), a_node_set("login", cpus=0.5)],
        partitions=[{"name": "lonely"}],
        slurm={"constrain": "none", "extra": {"PlugStackConfig": "/etc/slurm/plugstack.conf"}},
        colour="blue",
    )

    said = what_up_says(slurm, capfd)

    paths = [
        "node_sets[0].replicas", "node_sets[1].name", "node_sets[1].memory_gib", "node_sets[2].name",
        "node_sets[2].cpus", "partitions[0]", "slurm.extra.PlugStackConfig", "colour",
    ]  # fmt: skip
    assert [path for path in paths if path not in said] == []
    assert "Traceback" not in said
    assert not is_applied(slurm)


@pytest.fixture
def a_namespace(kubernetes: Kubernetes) -> Iterator[str]:
    """A namespace that someone else made."""
    name = unique("prepared")
    kubernetes.run("create", "namespace", name)
    yield name
    kubernetes.throw_away(name)


def test_an_own_secret_that_is_not_there_is_reported_before_anything_is_applied(
    new_slurm: Callable[..., Slurm], a_namespace: str, capfd: pytest.CaptureFixture[str]
) -> None:
    slurm = new_slurm(namespace=a_namespace, create_namespace=False, secrets={"munge_key": {"secret": "mine"}})

    said = what_up_says(slurm, capfd)

    assert 'secrets.munge_key: got "mine", but there is no Secret of that name' in said
    assert "Traceback" not in said
    assert slurm.api.list_namespaced_service(a_namespace).items == []


def test_an_own_secret_without_the_needed_key_is_reported_before_anything_is_applied(
    new_slurm: Callable[..., Slurm], a_namespace: str, capfd: pytest.CaptureFixture[str]
) -> None:
    slurm = new_slurm(namespace=a_namespace, create_namespace=False, secrets={"munge_key": {"secret": "mine"}})
    slurm.kubernetes.run(
        "create", "secret", "generic", "mine", "-n", a_namespace, "--from-literal=other=not-to-be-told"
    )

    said = what_up_says(slurm, capfd)

    assert 'the Secret "mine" has no key "munge.key". Its keys: other.' in said
    assert "not-to-be-told" not in said
    assert slurm.api.list_namespaced_service(a_namespace).items == []


def test_an_own_munge_key_is_used(new_slurm: Callable[..., Slurm], a_namespace: str) -> None:
    slurm = new_slurm(
        namespace=a_namespace,
        create_namespace=False,
        node_sets=[a_node_set("cpu")],
        secrets={"munge_key": {"secret": "mine"}},
    )
    slurm.kubernetes.run(
        "create", "secret", "generic", "mine", "-n", a_namespace, f"--from-literal=munge.key={'k' * 64}"
    )
    slurm.up()

    assert slurm.ssh("srun hostname").stdout == "cpu-0\n"
    assert "munge-key" not in {item.metadata.name for item in slurm.api.list_namespaced_secret(a_namespace).items}
