"""Jobs: when one is another one, what goes with it, and one that was made again behind the engine's back."""

from typing import Any

import pytest

from soperator_pulumi.kube.access import Access
from soperator_pulumi.kube.kube_api import Cluster
from soperator_pulumi.operations.batch_jobs import JobFollower
from soperator_pulumi.operations.progress import MachineClock
from tests.engine.conftest import Stack
from tests.engine.test_awaits import container
from tests.waiting import wait_until
from tools.engine import StepOp

pytestmark = pytest.mark.engine

JOBS = "/apis/batch/v1"


def job(
    stack: Stack, job_name: str, *, label: str = "a", pod_labels: dict[str, str] | None = None, **fields: Any
) -> dict[str, Any]:
    """A Job that no one waits for; without other fields its pod runs for as long as it is let."""
    template: dict[str, Any] = {"spec": {"restartPolicy": "Never", "containers": [{**container(), **fields}]}}
    if pod_labels:
        template["metadata"] = {"labels": pod_labels}
    metadata = {"name": job_name, "labels": {"l": label}, "annotations": {"pulumi.com/skipAwait": "true"}}
    body = {"spec": {"template": template, "backoffLimit": 0}, "metadata": metadata}
    return {**stack.object(job_name, "batch/v1:Job", body), "name": "j"}


def uid(stack: Stack, name: str) -> str:
    found = stack.find("jobs", name, JOBS)
    assert found is not None
    return str(found["metadata"]["uid"])


def test_no_one_waits_for_a_job_that_says_so(stack: Stack) -> None:
    stack.up(job(stack, "a"))
    assert stack.up().changed == ()


def test_under_another_name_it_is_another_job_and_the_old_one_goes_with_its_pod(stack: Stack) -> None:
    stack.up(job(stack, "a"))
    wait_until(lambda: len(stack.pods()) == 1, "the Job's pod")
    assert stack.up(job(stack, "b")).names(StepOp.REPLACE) == {"j"}
    assert uid(stack, "b")
    wait_until(lambda: stack.find("jobs", "a", JOBS) is None, "the old Job has gone")
    names = {pod["metadata"]["labels"]["job-name"] for pod in stack.pods()}
    assert names <= {"b"}


def test_with_background_deletion_a_changed_template_replaces_a_job_under_its_name(stack: Stack) -> None:
    """Without it the old one, whose deletion no one waits for, would still be there (K8)."""
    background = {"pulumi.com/deletionPropagationPolicy": "background"}

    def of(container_name: str) -> dict[str, Any]:
        made = job(stack, "a", name=container_name)
        made["properties"]["metadata"]["annotations"] |= background
        return made

    stack.up(of("c"))
    wait_until(lambda: len(stack.pods()) == 1, "the Job's pod")
    before = uid(stack, "a")
    assert stack.up(of("d")).names(StepOp.REPLACE) == {"j"}
    assert uid(stack, "a") != before


def test_a_label_is_changed_in_place(stack: Stack) -> None:
    stack.up(job(stack, "a"))
    before = uid(stack, "a")
    assert stack.up(job(stack, "a", label="b")).names(StepOp.UPDATE) == {"j"}
    assert uid(stack, "a") == before


@pytest.mark.parametrize("pod_labels", [None, {"app": "x"}], ids=["without pod labels", "with pod labels"])
def test_a_failed_job_that_was_made_again_is_still_the_stacks_own(
    stack: Stack, pod_labels: dict[str, str] | None
) -> None:
    """Act of the package on a populate Job that has failed: no conflict follows when a label changes."""
    stack.up(job(stack, "a", command=["/absent"], pod_labels=pod_labels))
    kube = Cluster(Access(str(stack.kubernetes.kubeconfig), stack.kubernetes.target.context))
    followed = JobFollower(kube, stack.namespace, "a", "c", "jail", stack.lines.append, MachineClock())
    outcome = followed.end()
    assert "/absent" in outcome.failure
    before = followed.look()
    followed.recreate(before)
    assert followed.end().failure
    assert uid(stack, "a") != before.uid
    assert stack.up().changed == ()
    changed = job(stack, "a", label="b", command=["/absent"], pod_labels=pod_labels)
    assert stack.up(changed).names(StepOp.UPDATE) == {"j"}
    found = stack.find("jobs", "a", JOBS)
    assert found is not None
    assert found["metadata"]["labels"]["l"] == "b"


def test_with_a_resource_for_each_name_going_back_after_a_failure_finds_the_first_job(stack: Stack) -> None:
    """With one resource for both, the first Job would wait for its deletion, and its name would be taken."""
    first, second = {**job(stack, "a"), "name": "j-a"}, {**job(stack, "b"), "name": "j-b"}
    stack.up(first)
    before = uid(stack, "a")
    stack.mark("fail-create-t")
    stack.fails(lambda: stack.up(second, stack.thing("t")))
    assert stack.up(first).names(StepOp.DELETE) == {"j-b"}
    assert uid(stack, "a") == before
