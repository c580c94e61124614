"""The files of a trial start."""

from pathlib import PurePosixPath

import pytest
from hypothesis import given

from soperator_pulumi.render.parse import parse_conf
from soperator_pulumi.render.slurm_files import slurm_files
from soperator_pulumi.render.trial import trial_files
from soperator_pulumi.spec.cluster import ClusterSpec
from tests.strategies import cluster_specs

FOLDER = PurePosixPath("/somewhere/trial")


@given(cluster_specs())
def test_a_trial_differs_from_the_real_thing_in_port_and_places_only(spec: ClusterSpec) -> None:
    files = slurm_files(spec)
    trial = trial_files(files, FOLDER)
    assert {name for name in files if trial[name] != files[name]} == {"slurm.conf"}
    real, other = parse_conf(files["slurm.conf"]), parse_conf(trial["slurm.conf"])
    assert real.lines == other.lines
    differing = {name for name, value in other.parameters.items() if real.parameters[name] != value}
    assert differing == {"SlurmctldPort", "StateSaveLocation", "SlurmctldPidFile"}
    assert other.parameters["StateSaveLocation"] == "/somewhere/trial/state"


def test_a_file_without_the_places_is_refused_as_a_trial_would_touch_the_real_state() -> None:
    with pytest.raises(ValueError, match=r"slurm\.conf has 0 lines of SlurmctldPort"):
        trial_files({"slurm.conf": "ClusterName=a\n"}, FOLDER)
