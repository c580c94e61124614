"""Errors in the log of a Slurm daemon."""

from soperator_pulumi.slurm.daemon_log import errors_in

MISMATCH = """\
slurmctld: slurmctld version 24.11.5 started on cluster hpc(7)
slurmctld: fatal: CLUSTER ID MISMATCH.
slurmctld has been started with "ClusterID=7"  from the state files, but the DBD thinks it should be "4321".
Running multiple clusters from a shared StateSaveLocation WILL CAUSE CORRUPTION.
Remove /var/spool/slurmctld/clustername to override this safety check if this is intentional.
slurmctld: debug: next run
and a further line of no error
"""


def test_a_fatal_error_has_all_its_lines() -> None:
    found = errors_in(MISMATCH, "slurmctld")

    assert found[:4] == MISMATCH.splitlines()[1:5]
    assert not [line for line in found if "next run" in line or "further line" in line]


def test_ids_of_two_clusters_have_a_cure() -> None:
    assert "set accounting.cluster_id to that id" in errors_in(MISMATCH, "slurmctld")[-1]
    assert errors_in("slurmctld: fatal: no such plugin", "slurmctld") == ["slurmctld: fatal: no such plugin"]


def test_errors_of_several_runs_are_named_once() -> None:
    run = "slurmctld: started\nslurmctld: error: no key\nslurmctld: fatal: ended\n"

    assert errors_in(run + run, "slurmctld") == ["slurmctld: error: no key", "slurmctld: fatal: ended"]
