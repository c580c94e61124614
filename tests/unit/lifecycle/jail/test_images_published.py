"""Waiting for the shared images, and what a preview tells of them."""

from typing import Any

import pytest

from soperator_pulumi.errors import ImagesError
from soperator_pulumi.lifecycle.images_published import ImagesPublishedProvider
from tests.fakes.jail import REFUSED, JailWorld, Run
from tests.fakes.objects import NAMESPACE, SELECTOR

JOB = "container-images"
WANTED: dict[str, Any] = {
    "namespace": NAMESPACE,
    "owner": "project.dev.hpc",
    "selector": SELECTOR,
    "job": JOB,
    "job_uid": "1",
    "images": ["a:1", "b:1"],
    "kubeconfig": None,
    "context": None,
}


def publishes(world: JailWorld, *runs: Run) -> None:
    remaining = list(runs)
    world.programs["publish"] = lambda _arguments: remaining.pop(0)
    world.add_job(JOB, "publish", container="publish")


def test_images_that_are_missing_are_reported_and_the_next_run_starts_the_job_again(
    world: JailWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    publishes(world, Run(REFUSED, message="a:1: skopeo: denied"), Run(0, "a:1 is published as sha256:1"))
    with pytest.raises(ImagesError, match=r"not all of containers\.images are there: a:1: skopeo: denied"):
        ImagesPublishedProvider().create(dict(WANTED))

    assert ImagesPublishedProvider().create(dict(WANTED)).outs == WANTED


def test_a_preview_tells_which_images_come_and_go(capsys: pytest.CaptureFixture[str]) -> None:
    news = {**WANTED, "images": ["b:1", "c:1"]}

    assert ImagesPublishedProvider().diff("hpc/come-and-go", WANTED, news).changes
    said = capsys.readouterr()
    assert "images: adds c:1" in said.out + said.err
    assert "images: removes a:1, unless a task runs in it" in said.out + said.err


@pytest.mark.parametrize(("changed", "expected"), [({}, False), ({"job_uid": "2"}, True), ({"images": ["a:1"]}, True)])
def test_another_job_and_another_list_are_waited_for(changed: dict[str, Any], expected: bool) -> None:
    assert ImagesPublishedProvider().diff("hpc/waits", WANTED, {**WANTED, **changed}).changes is expected
