"""A rotation of keys: no munged changes before all pods have the new key, and a killed run is continued."""

import pytest

from soperator_pulumi.errors import NotReadyError
from soperator_pulumi.operations.key_rotation import MOUNTED_KEY, KeyRotation
from soperator_pulumi.render import layout
from tests.fakes.keyed_pods import KeyedPods, a_cluster
from tests.fakes.objects import NAMESPACE, PODS, SELECTOR

ALL = {"controller-0", "cpu-0", "cpu-1", "login-0"}


def rotation(world: KeyedPods) -> KeyRotation:
    return KeyRotation(world, NAMESPACE, SELECTOR, world.reported.append, world.clock)


def rotate(world: KeyedPods) -> None:
    rotation(world).munge("munge-key", "munge.key")


def test_every_pod_uses_the_new_munge_key() -> None:
    world = a_cluster()
    world.set_key(MOUNTED_KEY, "new")

    rotate(world)

    assert world.in_use() == dict.fromkeys(ALL, "new")


def test_slurmctld_reads_with_the_former_key_until_the_last_message_with_it_has_arrived() -> None:
    world = a_cluster()
    world.set_key(MOUNTED_KEY, "new")

    rotate(world)

    changed, _ = world.without_munged["controller-0"]
    for pod in ALL - {"controller-0"}:
        stops, starts = world.without_munged[pod]
        assert stops + 0.5 <= changed <= starts - 0.5
        assert starts - stops < 2, "Slurm's programs try for two seconds to reach munged"


def test_no_job_starts_from_a_second_before_the_change_until_after_it() -> None:
    world = a_cluster()
    world.set_key(MOUNTED_KEY, "new")

    rotate(world)

    ((stops, starts),) = world.pauses
    assert stops + 1 <= min(begin for begin, _ in world.without_munged.values())
    assert starts > max(end for _, end in world.without_munged.values())


def test_munged_stays_everywhere_while_one_pod_has_not_got_the_key() -> None:
    world = a_cluster()
    world.set_key(MOUNTED_KEY, "new")
    world.cut_off = {"cpu-1"}

    with pytest.raises(NotReadyError, match=r"is not in 1 pod \(cpu-1\) of namespace hpc after 180 s"):
        rotate(world)

    assert not world.without_munged


def test_munged_changes_nowhere_if_one_pod_does_not_get_the_moment() -> None:
    world = a_cluster()
    world.set_key(MOUNTED_KEY, "new")
    world.not_armed = {"cpu-1"}

    with pytest.raises(NotReadyError, match="is not the same in all pods after 3 attempts"):
        rotate(world)

    assert world.in_use() == dict.fromkeys(ALL, "old")
    assert world.pauses == []


def test_munged_changes_nowhere_if_it_does_not_start_with_the_new_key_in_one_pod() -> None:
    world = a_cluster()
    world.set_key(MOUNTED_KEY, "new")
    world.shortest_key = 32

    with pytest.raises(NotReadyError, match="munged does not start with the new key in 4 pods"):
        rotate(world)

    assert world.in_use() == dict.fromkeys(ALL, "old")


def test_munged_changes_nowhere_while_a_clock_differs() -> None:
    world = a_cluster()
    world.set_key(MOUNTED_KEY, "new")
    world.late_clocks = {"cpu-0": 0.8}

    with pytest.raises(NotReadyError, match=r"The clocks of the machines of 1 pod \(cpu-0\)"):
        rotate(world)

    assert world.in_use() == dict.fromkeys(ALL, "old")


def test_a_clock_of_the_cluster_that_differs_from_this_ones_is_no_fault() -> None:
    world = a_cluster()
    world.set_key(MOUNTED_KEY, "new")
    world.late_clocks = dict.fromkeys(ALL, -30.0)

    rotate(world)

    assert world.in_use() == dict.fromkeys(ALL, "new")
    assert max(end for _, end in world.without_munged.values()) < 10


def test_a_pod_that_starts_meanwhile_with_the_former_key_changes_too() -> None:
    world = a_cluster()
    world.set_key(MOUNTED_KEY, "new")

    def start() -> None:
        world.set_key(MOUNTED_KEY, "old")
        world.add_pod("cpu-2", "worker", "slurmd")
        world.set_key(MOUNTED_KEY, "new")

    world.clock.after(3, start)

    rotate(world)

    assert world.in_use() == dict.fromkeys([*ALL, "cpu-2"], "new")


def test_another_secret_than_the_pods_mount_is_refused_with_the_way_to_it() -> None:
    world = a_cluster()
    world.mounts = "other"
    world.add_pod("cpu-0", "worker", "slurmd")
    world.set_key(MOUNTED_KEY, "new")

    with pytest.raises(NotReadyError, match="do not read the Secret munge-key"):
        rotate(world)


def test_a_pod_that_goes_meanwhile_is_not_waited_for() -> None:
    world = a_cluster()
    world.set_key(MOUNTED_KEY, "new")
    world.cut_off = {"cpu-1"}
    world.clock.after(20, lambda: world.delete(f"{PODS}/cpu-1"))

    rotate(world)

    assert {*world.without_munged} == ALL - {"cpu-1"}
    assert world.clock.time < 60


def test_the_run_after_a_killed_one_changes_the_pods_with_the_former_key_alone() -> None:
    world = a_cluster()
    world.set_key(MOUNTED_KEY, "new")
    world.add_pod("cpu-0", "worker", "slurmd")

    rotate(world)

    assert {*world.without_munged} == ALL - {"cpu-0"}
    world.without_munged.clear()
    rotate(world)
    assert not world.without_munged


def test_a_cluster_without_pods_needs_no_secret_yet() -> None:
    rotate(KeyedPods())


def test_a_secret_without_the_key_changes_nothing() -> None:
    world = a_cluster()

    with pytest.raises(NotReadyError, match=r"Secret hpc/munge-key has no key other\.key"):
        rotation(world).munge("munge-key", "other.key")

    assert not world.without_munged


def test_sshd_reads_the_new_host_key_once_the_login_pods_have_it() -> None:
    world = a_cluster()
    world.set_key(layout.SSH_HOST_KEY, "new host")

    rotation(world).ssh_host("ssh-host-key", "ssh_host_ed25519_key")

    assert world.hangups == ["login-0"]
    assert world.files["login-0", layout.SSH_HOST_KEY] == b"new host"
    assert not world.without_munged
