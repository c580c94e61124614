"""Numbers of machines that a person gives."""

from pathlib import Path

import pytest

from tools.console import UserError
from tools.kube import EmbeddedKubernetes
from tools.kube.further_machines import MOST, FurtherMachines
from tools.kube.settings import Settings
from tools.kube.supervisor import Supervisor


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    return Settings(state=Path("kube"))  # short, whatever the temporary folder


@pytest.fixture
def machines(settings: Settings) -> FurtherMachines:
    return FurtherMachines(settings, Supervisor(settings.run, settings.logs, settings.run / "cgroup.procs"))


def make(settings: Settings, *numbers: int) -> None:
    for number in numbers:
        settings.further(number).state.mkdir(parents=True)


def test_a_cluster_has_one_machine_unless_told_otherwise(machines: FurtherMachines) -> None:
    assert machines.wanted(None) == machines.wanted(1) == []
    assert machines.wanted(3) == [2, 3]


def test_without_a_number_the_machines_stay(settings: Settings, machines: FurtherMachines) -> None:
    make(settings, 2, 3)
    assert machines.wanted(None) == [2, 3]


@pytest.mark.parametrize("number", [-1, 0, MOST + 1])
def test_numbers_out_of_range_are_refused(machines: FurtherMachines, number: int) -> None:
    with pytest.raises(UserError, match=f"MACHINES={number}: a cluster has 1 to {MOST} machines"):
        machines.wanted(number)


def test_machines_are_not_taken_away(settings: Settings, machines: FurtherMachines) -> None:
    make(settings, 2, 3)
    with pytest.raises(UserError, match=r"MACHINES=2: the cluster has 3.*make down"):
        machines.wanted(2)


def test_the_first_machine_is_never_killed(settings: Settings, machines: FurtherMachines) -> None:
    make(settings, 2, 3)
    with pytest.raises(UserError, match="N=1: n1 is this machine, with the control plane: choose one of 2, 3"):
        machines.kill(1)


def test_a_machine_that_was_never_made_is_named_with_what_makes_it(machines: FurtherMachines) -> None:
    with pytest.raises(UserError, match="N=2: there is no machine n2: `make up MACHINES=2` makes a second one"):
        machines.kill(2)


def test_a_machine_that_does_not_run_is_not_killed_again(settings: Settings, machines: FurtherMachines) -> None:
    make(settings, 2)
    with pytest.raises(UserError, match=r"n2 does not run\. Start it with `make machine-start N=2`"):
        machines.kill(2)


def test_a_machine_does_not_start_without_the_first(settings: Settings) -> None:
    make(settings, 2)
    with pytest.raises(UserError, match=r"Kubernetes is not up\. `make up` starts it, with all its machines"):
        EmbeddedKubernetes(settings).start_machine(2)
