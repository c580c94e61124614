"""A cluster that moves from Python to another language, is scaled down there with a job on a node, and destroyed.

The CLI runs a program in YAML. The local engine, which runs Python alone, has one in Python that asks the plugin for
the component, as a program in any language does.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.languages import Language, ProgramInLanguages
from tests.cluster.slurm import Slurm, a_cluster, a_node_set, deployed, unique
from tests.cluster.workers import UNTIL_DRAINED, drained, ended_well, in_service, job_on, pods, said, set_size
from tests.conftest import Kubernetes
from tests.engine.conftest import AVAILABLE
from tools.engine import StepOp

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]


@pytest.fixture(params=AVAILABLE)
def program(
    request: pytest.FixtureRequest, kubernetes: Kubernetes, built_images: None, tmp_path: Path
) -> Iterator[ProgramInLanguages]:
    """A cluster of a program in Python, on each engine that is there."""
    cluster = a_cluster(name=unique("lang"), node_sets=[a_node_set("cpu", replicas=2)])
    with deployed(ProgramInLanguages(kubernetes, tmp_path, cluster, runs_on=str(request.param))) as program:
        yield program


def identities(slurm: Slurm) -> set[str]:
    """Return what must not be another one after a move: pods and claims."""
    found = [
        *slurm.api.list_namespaced_pod(slurm.namespace).items,
        *slurm.api.list_namespaced_persistent_volume_claim(slurm.namespace).items,
    ]
    return {f"{item.metadata.name} {item.metadata.uid}" for item in found}


def test_a_cluster_moves_to_another_language_is_scaled_down_there_and_destroyed(program: ProgramInLanguages) -> None:
    job, before = job_on(program, "cpu-1", UNTIL_DRAINED), identities(program)
    program.language = Language.YAML if program.runs_on == "pulumi" else Language.REMOTE
    moved = program.up()
    assert {change.operation for change in moved.changed} == {StepOp.UPDATE}
    assert identities(program) == before
    assert program.job(job)["JobState"] == "RUNNING"
    assert drained(program) == {}
    assert not program.deployer().up().changed

    set_size(program, 1)
    foreseen = said(program.deployer().preview())
    assert f"{program.cluster['name']}/cpu: 2 -> 1 node. Leaving: cpu-1" in foreseen
    assert f"job {job} (alice" in foreseen
    assert "drains cpu-1" in said(program.up())
    assert ended_well(program, job)
    assert [*pods(program)] == ["cpu-0"]
    assert in_service(program) == {"cpu-0"}

    program.deployer().destroy()
    assert program.deployer().state() == []
