"""The Lease: one planner drains at a time, a waiting one names it, and a killed one does not hold it for ever."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from soperator_pulumi.errors import DrainError, KubernetesError, RunCancelledError
from soperator_pulumi.kube.verbs import Json
from soperator_pulumi.operations.nodes import lease
from soperator_pulumi.operations.nodes.lease import DURATION_SECONDS, LEASE, WAIT_SECONDS, ClusterLease
from soperator_pulumi.operations.planner_process import me
from soperator_pulumi.slurm.drain.reason import Marker, Operation
from soperator_pulumi.spec.drain import DrainSpec
from tests.fakes.clock import FakeClock
from tests.fakes.objects import LEASES, NAMESPACE_PATH, Objects
from tests.fakes.workers import OWNER
from tests.unit.faults.stage import STAGE, provider
from tests.unit.lifecycle.model import NAME, a_model

AGENT = "agent@pod-7 process 1"


PATH = f"{LEASES}/{LEASE}"


@dataclass(eq=False)
class Api(Objects):
    """An API server, with what is to happen at its next change."""

    refuses: str = ""

    def merge(self, path: str, body: Json) -> Json | None:
        if self.refuses:
            raise KubernetesError(self.refuses)
        return super().merge(path, body)


@pytest.fixture
def api() -> Iterator[Api]:
    lease._held.clear()
    yield Api()
    lease._held.clear()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def a_lease(api: Api, clock: FakeClock, lines: list[str] | None = None) -> ClusterLease:
    return ClusterLease(api, "hpc", "hpc", [].append if lines is None else lines.append, clock)  # type: ignore[arg-type] # of its verbs a Lease uses three


def holder(api: Api) -> str:
    return str(api.objects.get(PATH, {}).get("spec", {}).get("holderIdentity", ""))


def gone() -> int:
    """Return the number of a process that is not there."""
    return next(number for number in range(2**22, 2, -1) if not Path("/proc", str(number)).exists())


def of_process(number: int) -> str:
    """Return another process of this machine as a holder."""
    return me().replace(f"process {os.getpid()}", f"process {number}")


def renewed(api: Api) -> str:
    return str(api.objects.get(PATH, {}).get("spec", {}).get("renewTime", ""))


def take(api: Api, who: str, renewed: str = "2026-01-01T00:00:00.000000Z") -> None:
    """Hold the Lease as another planner."""
    found = api.apply(PATH, {"metadata": {"name": LEASE}}, manager=who)
    spec = {"holderIdentity": who, "leaseDurationSeconds": DURATION_SECONDS, "renewTime": renewed}
    assert Objects.merge(api, PATH, {"metadata": found["metadata"], "spec": spec})


def test_it_names_who_works_and_is_free_afterwards(api: Api, clock: FakeClock) -> None:
    with a_lease(api, clock).held():
        assert holder(api) == me()
        assert f"process {os.getpid()}" in me()
    assert holder(api) == ""


def test_operations_of_one_process_share_it_until_the_last_has_ended(api: Api, clock: FakeClock) -> None:
    with a_lease(api, clock).held():
        with a_lease(api, clock).held():
            assert holder(api) == me()
        assert holder(api) == me()
    assert holder(api) == ""


def test_a_run_that_waits_says_for_whom_and_continues_when_that_one_has_ended(api: Api, clock: FakeClock) -> None:
    take(api, AGENT)
    for second in range(5, 100, 5):
        clock.after(second, lambda second=second: take(api, AGENT, f"2026-01-01T00:00:{second:02}.000000Z"))  # type: ignore[misc] # a default
    clock.after(99, lambda: take(api, ""))
    lines: list[str] = []
    with a_lease(api, clock, lines).held():
        assert 99 <= clock.time <= 106
    assert lines[0] == f"hpc: waits for {AGENT}, which drains nodes, {WAIT_SECONDS} s at most"
    assert len(lines) == 2, "again after a minute"


def test_a_planner_that_was_killed_elsewhere_loses_it_when_it_has_not_renewed(api: Api, clock: FakeClock) -> None:
    take(api, AGENT)
    with a_lease(api, clock).held():
        assert DURATION_SECONDS <= clock.time <= DURATION_SECONDS + 6
        assert holder(api) == me()


def test_a_planner_that_was_killed_on_this_machine_loses_it_at_once(api: Api, clock: FakeClock) -> None:
    take(api, of_process(gone()))
    with a_lease(api, clock).held():
        assert clock.time == 0


def test_a_planner_in_a_container_with_the_name_of_this_machine_is_waited_for(api: Api, clock: FakeClock) -> None:
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    take(api, of_process(gone()).replace(str(namespace), str(namespace + 1)))
    with a_lease(api, clock).held():
        assert clock.time >= DURATION_SECONDS


def test_a_planner_of_another_user_whom_proc_hides_is_waited_for(
    api: Api, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_process: int, _signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    take(api, of_process(gone()))
    with a_lease(api, clock).held():
        assert clock.time >= DURATION_SECONDS


def test_a_planner_that_renews_is_waited_for_ten_minutes_and_then_nothing_is_drained(
    api: Api, clock: FakeClock
) -> None:
    take(api, AGENT)

    def renew() -> None:
        take(api, AGENT, f"at {clock.time}")
        clock.after(5, renew)

    clock.after(5, renew)
    with pytest.raises(DrainError, match=f"no node is drained: {AGENT} has been draining nodes for 600 s"):
        a_lease(api, clock).held().__enter__()
    assert clock.time >= WAIT_SECONDS
    assert holder(api) == AGENT


def test_it_is_renewed_while_it_is_held(api: Api, clock: FakeClock) -> None:
    own = a_lease(api, clock)
    with own.held():
        before = api.objects[PATH]["spec"]["renewTime"]
        clock.sleep(5)
        own.keep()
        assert api.objects[PATH]["spec"]["renewTime"] == before
        clock.sleep(10)
        own.keep()
        assert api.objects[PATH]["spec"]["renewTime"] > before


def test_an_operation_that_joins_renews_it_at_once_as_no_one_may_have_for_long(api: Api, clock: FakeClock) -> None:
    with a_lease(api, clock).held():
        before = renewed(api)
        clock.sleep(25)
        with (own := a_lease(api, clock)).held():
            own.keep()
            assert renewed(api) > before


def test_it_is_not_taken_by_a_renewal(api: Api, clock: FakeClock) -> None:
    own = a_lease(api, clock)
    with own.held():
        pass
    clock.sleep(60)
    own.keep()
    assert holder(api) == ""


def test_a_gate_that_waits_for_slurmctld_renews_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with a_model() as model:
        model.up(2)
        kubernetes, world = model.world.kubernetes, model.world
        gaps, last = list[float](), [world.time]
        merge = kubernetes.merge

        def noted(path: str, body: Json) -> Json | None:
            gaps.append(world.time - last[0])
            last[0] = world.time
            return merge(path, body)

        monkeypatch.setattr(kubernetes, "merge", noted)
        kubernetes.slurm.up = False
        with pytest.raises(DrainError, match="slurmctld does not answer"):
            model.engine.destroy()
        assert world.time > 2 * DURATION_SECONDS
        assert max(gaps) < DURATION_SECONDS


def test_a_run_that_has_lost_it_ends(api: Api, clock: FakeClock) -> None:
    own = a_lease(api, clock)
    with own.held():
        take(api, AGENT)
        clock.sleep(60)
        with pytest.raises(DrainError, match=f"{AGENT} drains nodes now, so this run ends"):
            own.keep()
    assert holder(api) == AGENT, "it is another one's, and stays so"


def test_an_api_that_is_not_reached_ends_no_run_that_holds_it(api: Api, clock: FakeClock) -> None:
    own = a_lease(api, clock)
    with own.held():
        api.refuses = "The Kubernetes API is not reached"
        clock.sleep(60)
        own.keep()
        api.refuses = ""
        own.keep()
        assert holder(api) == me()


def test_a_lease_that_may_not_be_written_is_an_error_before_anything_is_drained(api: Api, clock: FakeClock) -> None:
    api.refuses = "leases.coordination.k8s.io is forbidden"
    with pytest.raises(KubernetesError, match="forbidden"):
        a_lease(api, clock).held().__enter__()


def test_of_two_at_the_same_moment_one_waits(clock: FakeClock) -> None:
    class Quicker(Api):
        def merge(self, path: str, body: Json) -> Json | None:
            if not holder(self):
                take(self, AGENT)
            return super().merge(path, body)

    other = Quicker()
    take(other, "")
    lines: list[str] = []
    clock.after(10, lambda: take(other, me()))
    with a_lease(other, clock, lines).held():
        assert clock.time >= 10
    assert AGENT in lines[0]


@dataclass(eq=False)
class Busy(Api):
    """An API server at which someone else acts once between a look and the change that follows it."""

    between: Callable[[], None] | None = None

    def merge(self, path: str, body: Json) -> Json | None:
        between, self.between = self.between, None
        if between:
            between()
        return super().merge(path, body)


def test_another_one_that_held_it_for_a_moment_ends_nothing(clock: FakeClock) -> None:
    api = Busy()

    def come_and_go() -> None:
        take(api, AGENT)
        take(api, "")

    api.between = come_and_go
    with a_lease(api, clock).held():
        assert holder(api) == me()


def test_a_lease_that_someone_deletes_meanwhile_is_created_again(clock: FakeClock) -> None:
    api = Busy()
    api.between = lambda: api.delete(PATH)
    with a_lease(api, clock).held():
        assert holder(api) == me()


def test_a_namespace_that_is_being_deleted_needs_none(clock: FakeClock) -> None:
    class Ending(Api):
        def get(self, path: str) -> Json | None:
            going = {"metadata": {"name": "hpc", "deletionTimestamp": "2026-11-21T00:00:00Z"}}
            return going if path == NAMESPACE_PATH else super().get(path)

        def apply(self, path: str, body: Json, *, manager: str = "") -> Json:
            del body, manager
            raise KubernetesError(f"{path}: unable to create new content in namespace hpc: it is being terminated")

    with a_lease(Ending(), clock).held():
        assert clock.time == 0


def test_a_scale_down_waits_for_an_agent_and_then_looks_again() -> None:
    with a_model() as model:
        model.up(3)
        kubernetes, world = model.world.kubernetes, model.world
        kubernetes.objects[PATH]["spec"] = {"holderIdentity": AGENT, "leaseDurationSeconds": 30, "renewTime": "1"}
        job = model.submit(seconds=20, required=frozenset({"gpu-2"}))
        lines = model.up(2, policy=DrainSpec.model_validate({"timeout": "60s"}))
        assert any(line.startswith(f"hpc: waits for {AGENT}") for line in lines)
        assert job.state == "COMPLETED"
        assert world.time > 30
        assert sorted(model.pods) == ["gpu-0", "gpu-1"]
        assert not [text for text in model.drained().values() if str(Operation.SCALE_DOWN) in text]


def test_a_scale_up_waits_for_no_agent() -> None:
    with a_model() as model:
        model.up(2)
        lease_of_agent = {"holderIdentity": AGENT, "leaseDurationSeconds": 30, "renewTime": "1"}
        model.world.kubernetes.objects[PATH]["spec"] = {**lease_of_agent}
        began = model.world.time
        STAGE.begin(model.faults)
        state = model.engine.state["NodeDrain gpu"]
        outputs = provider("NodeDrain").update("NodeDrain gpu", state, {**state, "replicas": 3.0}).outs
        assert outputs is not None
        assert outputs["replicas"] == 3
        assert model.world.time - began < 1
        assert model.world.kubernetes.objects[PATH]["spec"] == lease_of_agent


def test_nodes_that_an_agent_drains_are_undrained_once_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    with a_model() as model:
        model.up(2)
        kubernetes, world = model.world.kubernetes, model.world
        kubernetes.objects[PATH]["spec"] = {"holderIdentity": AGENT, "leaseDurationSeconds": 30, "renewTime": "1"}
        kubernetes.slurm.drain(["gpu-0"], str(Marker(OWNER, Operation.REMOVAL, "abcdef")))
        undrained, began = list[float](), world.time
        resume = kubernetes.slurm.resume

        def noted(names: Iterable[str], *, undrain: bool = False) -> None:
            undrained.append(world.time - began)
            resume(names, undrain=undrain)

        monkeypatch.setattr(kubernetes.slurm, "resume", noted)
        STAGE.begin(model.faults)
        state = model.engine.state[NAME]
        provider("NodesReady").update(NAME, state, state)
        assert not model.drained()
        assert min(undrained) >= DURATION_SECONDS


@pytest.mark.usefixtures("cancelled")
def test_a_cancelled_run_takes_no_lease(api: Api, clock: FakeClock) -> None:
    with pytest.raises(RunCancelledError), a_lease(api, clock).held():
        pass
    assert holder(api) == ""
