"""Scripts of the lab's machines."""

import subprocess
from pathlib import Path

import pytest

from tools.kube.debs import Unpacked
from tools.kube.pki import Pki
from tools.lab import slurm_machine
from tools.lab.further_machines import Further
from tools.lab.slurm_machine import several


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the certificate authority, on machines without packages."""
    monkeypatch.setattr("tools.kube.debs.unpacked", lambda _: Unpacked(tmp_path))
    monkeypatch.setattr(slurm_machine, "_STATE_HOME", str(tmp_path))
    return tmp_path / "soperator-pulumi" / "kube" / "pki"


def test_one_machine_starts_no_kubernetes_and_has_no_further_ones() -> None:
    script, further = several(1)
    assert "joining" not in script
    assert further == Further()


def test_the_first_of_several_machines_leads_and_others_join_before_the_command_of_their_request() -> None:
    script, further = several(3)
    assert script.endswith("\n.venv/bin/python -m tools.lab.joining first 3\n")
    assert further.last == 3
    assert further.script(3, "date").endswith(
        "\n.venv/bin/python -m tools.lab.joining further 3\ndate\nexec sleep infinity\n"
    )


def test_every_machine_has_its_own_name() -> None:
    script, further = several(2)
    named = [
        next(line for line in text.splitlines() if "slurm_machine.sh" in line)
        for text in (script, further.script(2, ""))
    ]
    assert [line.split()[-1] for line in named] == ["n1", "n2"]


def test_all_machines_of_a_cluster_have_one_authority_which_no_other_cluster_has(place: Path) -> None:
    script, further = several(2)
    assert authority(script, place) == authority(further.script(2, ""), place) != authority(several(2)[0], place)


def authority(script: str, place: Path) -> tuple[bytes, bytes]:
    """Return certificate and key that a machine has by its script, and that its own programs take as they are."""
    begin, end = script.index("(\numask"), script.index(")\n.venv")
    subprocess.run(["sh", "-ec", script[begin : end + 1]], check=True)
    files = place / "ca.crt", place / "ca.key"
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600, 0o600]
    before = files[0].read_bytes(), files[1].read_bytes()
    pair = Pki(place).authority
    assert (pair.certificate.read_bytes(), pair.key.read_bytes()) == before
    return before
