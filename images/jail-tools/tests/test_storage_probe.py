"""The probe as a part of the populate: once a claim, refused before anything is filled, killed without a trace."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jail_testing import trees
from jail_testing.file_systems import in_memory_with, mounted
from jail_testing.jails import in_memory, killed_at

from jail_tools.errors import RefusedError, TryAgainError
from jail_tools.probing import catalogue, speed, storage_probe
from jail_tools.probing import mounted as mounts
from jail_tools.probing.findings import StorageReport, read_report
from jail_tools.probing.seen import FindingLevel, Seen, missing
from jail_tools.probing.storage_probe import RECORD, probe, require_storage
from jail_tools.resolve_beneath import names

ACCEPTED = {"execution": "nobody needs the admin shell here"}


@pytest.fixture
def claim() -> Iterator[Path]:
    with in_memory() as folder:
        yield folder


@pytest.fixture
def noexec(claim: Path) -> Iterator[Path]:
    """A claim from which no program can be started."""
    with mounted(in_memory_with("size=4G,noexec"), claim) as folder:
        yield folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return trees.small_source(tmp_path)


def test_an_unfit_claim_is_refused_before_anything_is_filled(noexec: Path, source: Path) -> None:
    code, said, error = trees.fill(noexec, source)

    assert code == 78
    assert "Nothing was filled" in error
    assert "refused  execution: found " in error
    assert "Remove noexec from the mountOptions" in error
    assert list(noexec.iterdir()) == []
    (line,) = (line for line in said.splitlines() if line.startswith("{"))
    rows = {row["property"]: row for row in json.loads(line)["storage"]["findings"]}
    assert rows["execution"]["level"] == "refused"
    assert rows["owners"] == {
        "property": "owners",
        "level": "ok",
        "found": "root gives files to any owner",
        "needed": "root gives files to any owner",
        "consequence": rows["owners"]["consequence"],
        "cure": rows["owners"]["cure"],
        "accepted": None,
    }


def test_an_accepted_finding_lets_the_claim_be_filled_and_is_recorded_with_its_reason(
    noexec: Path, source: Path
) -> None:
    code, said, error = trees.fill(noexec, source, "--accept", f"execution={ACCEPTED['execution']}")

    assert code == 0, error
    assert "accepted execution: found " in said
    assert ACCEPTED["execution"] in said
    storage = json.loads((noexec / RECORD).read_text())["storage"]
    assert [row["accepted"] for row in storage["findings"] if row["property"] == "execution"] == [*ACCEPTED.values()]
    assert trees.is_complete(noexec)


@pytest.mark.parametrize("given", ["owners=no", "hardlinks=a reason", "execution", "execution="])
def test_what_no_user_can_accept_is_a_usage_error(claim: Path, source: Path, given: str) -> None:
    code, _, error = trees.fill(claim, source, "--accept", given)

    assert code == 78
    assert "--accept" in error
    assert list(claim.iterdir()) == []


def test_a_claim_is_probed_once(claim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_storage(claim, {})
    recorded = (claim / RECORD).read_text()
    monkeypatch.setattr(storage_probe, "probe", lambda _: pytest.fail("probed again"))

    require_storage(claim, {})

    assert (claim / RECORD).read_text() == recorded
    assert "probed" in json.loads(recorded)["storage"]
    assert sorted(names(claim)) == ["meta"]


def test_a_complete_tree_needs_no_probe(noexec: Path, source: Path) -> None:
    assert trees.fill(noexec, source, "--accept", f"execution={ACCEPTED['execution']}")[0] == 0
    (noexec / RECORD).unlink()

    code, said, _ = trees.fill(noexec, source)

    assert code == 0
    assert "storage:" not in said


def test_a_claim_of_which_an_acceptance_was_withdrawn_is_probed_again(noexec: Path) -> None:
    require_storage(noexec, ACCEPTED)

    with pytest.raises(RefusedError, match="execution"):
        require_storage(noexec, {})


@pytest.mark.parametrize(
    "damage", [b"", b"{", b'{"storage": {}}', b'{"storage": {"version": 0, "findings": []}}', b"[]", b"\xff\x00"]
)
def test_a_damaged_or_foreign_record_does_not_count(claim: Path, damage: bytes) -> None:
    require_storage(claim, {})
    (claim / RECORD).write_bytes(damage)

    require_storage(claim, {})

    report = read_report((claim / RECORD).read_text())
    assert report
    assert len(report.findings) == len(catalogue.PROPERTIES)


def test_a_record_that_came_along_from_another_file_system_does_not_count(claim: Path) -> None:
    require_storage(claim, {})
    record = json.loads((claim / RECORD).read_text())
    record["storage"]["filesystem"] = "ext4"
    (claim / RECORD).write_text(json.dumps(record))

    require_storage(claim, {})

    assert json.loads((claim / RECORD).read_text())["storage"]["filesystem"] == "tmpfs"


def test_whatever_the_moment_of_a_kill_the_next_probe_leaves_nothing(
    claim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "_FILES", 5)  # a kill between two of 200 files is like the others
    monkeypatch.setattr("jail_tools.probing.names_in_folders.LINKS", 5)
    monkeypatch.setattr(speed, "_FLUSHES", 5)
    (claim / "precious").write_text("kept")
    (claim / ".storage-probe-notours").mkdir()
    step, killed = 0, True
    while killed:
        killed = killed_at(step, lambda: probe(claim))
        step += 7
        left = sorted(names(claim))
        assert [name for name in left if not name.startswith(".storage-probe-")] == ["precious"]
    assert step > 100
    assert sorted(names(claim)) == [".storage-probe-notours", "precious"]
    assert (claim / "precious").read_text() == "kept"


def test_a_probe_at_work_is_left_alone_by_another(claim: Path) -> None:
    with storage_probe._own_folder(claim) as folder:
        storage_probe.remove_leftovers(claim)
        assert folder.exists()
    assert not folder.exists()


def test_leftovers_are_removed_without_following_links(claim: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("kept")
    leftover = claim / f".storage-probe-{'0' * 16}"
    leftover.mkdir()
    (leftover / "link").symlink_to(tmp_path)
    (claim / f".storage-probe-{'1' * 16}").symlink_to(tmp_path)

    storage_probe.remove_leftovers(claim)

    assert names(claim) == [f".storage-probe-{'1' * 16}"]
    assert (tmp_path / "elsewhere").read_text() == "kept"


def test_a_server_that_does_not_answer_is_no_finding(claim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stale(*_: object) -> None:
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr("jail_tools.probing.open_files.os.fsync", stale)

    with pytest.raises(TryAgainError, match="ESTALE"):
        probe(claim)
    assert list(claim.iterdir()) == []


LINE = "36 25 0:42 / {point} rw,relatime {tags} - {kind} server:/export {options}"


@pytest.mark.parametrize(
    ("kind", "options", "local"),
    [
        ("nfs4", "rw,vers=4.2,local_lock=none", ""),
        ("nfs", "rw,vers=3,nolock,local_lock=all", "local_lock=all, nolock"),
        ("lustre", "rw,flock", ""),
        ("lustre", "rw,localflock", "localflock"),
        ("cifs", "rw,password=hunter2,nobrl", "nobrl"),
    ],
)
def test_locks_of_one_machine_are_known_by_the_mounts_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, options: str, local: str
) -> None:
    point = tmp_path / "a claim"
    point.mkdir()
    lines = [
        LINE.format(point="/", tags="", kind="ext4", options="rw"),
        LINE.format(point=str(point).replace(" ", "\\040"), tags="shared:1", kind=kind, options=options),
        LINE.format(point=f"{point}x".replace(" ", "\\040"), tags="", kind="tmpfs", options="rw,nolock"),
    ]
    monkeypatch.setattr(mounts, "MOUNTINFO", tmp_path / "mountinfo")
    mounts.MOUNTINFO.write_text("\n".join(lines) + "\n")

    assert mounts.claim_mount(point / "below").filesystem == kind
    seen = mounts.shared_locks(point)

    assert seen == (missing(f"mounted with {local}") if local else Seen("no option against it"))
    assert "hunter2" not in seen.found


@pytest.mark.parametrize(("property_", "call"), [("flock", "flock"), ("record_locks", "lockf")])
@pytest.mark.parametrize(
    ("outcome", "found"),
    [(None, "another process takes a lock that is held"), (OSError(38, ""), "Function not implemented (ENOSYS)")],
)
def test_locks_that_a_volume_grants_to_every_process_or_to_none_are_refused(
    claim: Path, monkeypatch: pytest.MonkeyPatch, *, property_: str, call: str, outcome: OSError | None, found: str
) -> None:
    def answer(*_: object) -> None:
        if outcome:
            raise outcome

    monkeypatch.setattr(f"jail_tools.probing.open_files.fcntl.{call}", answer)

    (finding,) = (finding for finding in probe(claim).findings if finding.property == property_)

    assert (finding.found, finding.level) == (found, FindingLevel.REFUSED)


SYMLINK = os.symlink
LIES: dict[str, tuple[str, object, str]] = {
    "hard_links": ("Path.hardlink_to", lambda self, old: self.write_bytes(old.read_bytes()), "another file"),
    "symbolic_links": ("Path.symlink_to", lambda self, old: SYMLINK(str(old)[:100], self), "a link to"),
    "unlink_open": ("Path.unlink", lambda *_, **__: None, "the name stays"),
    "replace_open": ("Path.replace", lambda self, new: new.write_bytes(self.read_bytes()), "reads the new one"),
    "times": ("os.utime", lambda path, *_, **__: Path(path).open("a").close(), "1234567890 becomes"),
    "modes": ("Path.chmod", lambda *_, **__: None, "mode 0640 becomes"),
}
"""Calls that a volume answers as if it had obeyed: the call, its answer, and words of the finding."""


@pytest.mark.parametrize("property_", LIES)
def test_a_volume_that_only_seems_to_obey_is_found_out(
    claim: Path, monkeypatch: pytest.MonkeyPatch, property_: str
) -> None:
    call, answer, words = LIES[property_]
    (checked,) = (volume_property for volume_property in catalogue.PROPERTIES if volume_property.name == property_)
    monkeypatch.setattr(f"pathlib.{call}" if call.startswith("Path") else call, answer)

    seen = checked.check(claim)

    assert seen.level is None
    assert words in seen.found


def test_a_slow_volume_is_a_warning_with_its_figures(claim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(10**6))
    monkeypatch.setattr("jail_tools.probing.speed.time.monotonic", lambda: next(now) / 40)

    findings: dict[str, Any] = {finding.property: finding for finding in probe(claim).findings}

    for name, figure in (("flush_latency", "median 25.0 ms"), ("file_creation", " files a second")):
        assert findings[name].level is FindingLevel.WARNING
        assert figure in findings[name].found


def test_the_command_prints_the_table_and_json_and_writes_no_record(noexec: Path) -> None:
    done = trees.run(trees.command("probe", "--jail", noexec))

    assert done.returncode == 78
    assert "refused  execution" in done.stdout
    report = read_report(done.stdout.splitlines()[-1])
    assert isinstance(report, StorageReport)
    assert report.refused({})
    assert list(noexec.iterdir()) == []


def test_every_property_has_a_name_of_its_own_and_words() -> None:
    properties = [volume_property.name for volume_property in catalogue.PROPERTIES]
    assert len(set(properties)) == len(properties)
    for volume_property in catalogue.PROPERTIES:
        assert volume_property.needed
        assert volume_property.consequence.endswith(".")
        assert volume_property.cure.endswith(".") or volume_property.level is FindingLevel.NOTED
