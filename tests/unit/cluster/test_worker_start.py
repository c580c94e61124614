"""Start of a worker's slurmd: what it closes, its limits, and an image of another version."""

import re
import socket
import time
from pathlib import Path

import pytest

from container_images.node_report import COUNTS
from soperator_pulumi.cluster import containers, worker_scripts
from soperator_pulumi.cluster.worker_scripts import NEWCOMER_SECONDS
from soperator_pulumi.render import layout
from tests.unit.cluster.worker_container import IMAGE, POD_START, ROOT, Worker, paths


def test_what_everyone_may_write_to_is_closed_before_slurmd_starts(worker: Worker) -> None:
    worker.node("IDLE+DYNAMIC_NORM")
    assert worker.start()[0] == "-D"

    closed = [call.split()[-1] for call in worker.calls.read_text().splitlines() if "-o remount,bind,ro " in call]
    assert closed == ["/dev", "/dev/pts", "/dev/nvidia0", "/proc/keys"]
    assert (worker.root / "termination-log").stat().st_mode & 0o077 == 0


def test_volumes_are_closed_before_slurmd_starts_and_its_jobs_find_what_they_see(worker: Worker) -> None:
    assert worker.start()[0] == "-D"
    closed = [call for call in worker.calls.read_text().splitlines() if "noexec=" in call]
    options = "nosuid=recursive,nodev=recursive,noexec=recursive"
    assert closed == [
        f"mount -o remount,bind,{options} /tmp",
        f"mount -o remount,bind,ro=recursive,{options} /data",
        f"mount -o remount,bind,{options} /home",  # of the runtime, not of the pod
    ]
    links = [call.split()[-1] for call in worker.calls.read_text().splitlines() if "nosymfollow=recursive" in call]
    assert links == [f"{worker.root}/jail", "/tmp", "/data"]
    assert (worker.root / "jail-binds").read_text() == "bind=/tmp\nbind=/data:ro\n"
    assert (worker.root / "jail-own").read_text() == "/tmp\n/dev/mqueue\n"


def test_jobs_may_have_containers_where_the_pod_says_so(worker: Worker) -> None:
    worker.options["containers_mib"] = 512
    assert worker.start()[0] == "-D"
    assert (worker.root / "jail-binds").read_text() == "bind=/tmp\nbind=/data:ro\ncontainers=512\n"


def test_what_is_in_memory_has_a_file_for_16_kib_of_its_size_before_it_is_closed(worker: Worker) -> None:
    worker.start()
    of_tmp = [call for call in worker.calls.read_text().splitlines() if call.endswith(" /tmp")]
    assert of_tmp[-2:] == ["mount -o remount,nr_inodes=16384 /tmp", "mount -o remount,bind,nosymfollow=recursive /tmp"]
    assert worker.calls.read_text().count("nr_inodes=16384") == 1


@pytest.mark.parametrize(
    ("lock_memory", "limits"),
    [
        (False, ""),
        (True, "--memlock=unlimited:unlimited setpriv --inh-caps=-sys_resource --bounding-set=-sys_resource "),
    ],
)
def test_slurmd_starts_with_the_limits_that_jobs_inherit(worker: Worker, lock_memory: bool, limits: str) -> None:
    worker.write(**{"bin/prlimit": '#!/bin/sh\necho "prlimit $*"\n'})
    (worker.root / "bin/prlimit").chmod(0o755)
    worker.options["lock_memory"] = lock_memory
    (started,) = worker.start()
    assert started == f"prlimit --nproc=4096:4096 {limits}s6-svscan {worker.root}/services"


def test_slurmd_starts_again_without_the_news_of_a_boot_and_without_a_slurmd_of_before(worker: Worker) -> None:
    """With it, slurmctld would take the node's jobs for lost, depending on ReturnToService."""
    assert worker.start()[-1] == "-b"
    before = worker.calls.read_text().splitlines()

    again = worker.run(["s6-svscan", str(worker.root / "services")]).stdout.splitlines()

    assert "-b" not in again
    assert again[0] == "-D"
    assert worker.calls.read_text().splitlines()[len(before) :] == ["pkill -KILL -x -U root slurmd"]


def test_slurmd_opens_what_users_name_with_their_rights_and_shares_no_memory_with_them(worker: Worker) -> None:
    worker.write(**{"bin/slurmd": "#!/bin/sh\necho $LD_PRELOAD $PMIX_MCA_gds\n"})
    (said,) = worker.start()
    libraries, store = said.split()
    assert f"{worker.root}/open_as_user.so" in libraries.split(":")
    assert store == "hash"


def test_what_callers_of_a_step_send_is_seen_before_a_library_that_reads_by_itself(worker: Worker) -> None:
    worker.write(**{"bin/slurmd": "#!/bin/sh\necho $LD_PRELOAD\n"})
    (libraries,) = worker.start()
    loaded = [Path(library).stem for library in libraries.split(":")]
    assert loaded.index("open_as_user") < loaded.index("bounded_connections")


def test_connections_to_slurmd_are_bounded(worker: Worker) -> None:
    worker.write(**{"bin/slurmd": "#!/bin/sh\necho $LD_PRELOAD $CONNECTIONS_MAX $REQUEST_BYTES_MAX\n"})
    (said,) = worker.start()
    libraries, connections, request_bytes = said.split()
    assert f"{worker.root}/bounded_connections.so" in libraries.split(":")
    assert connections == "256"
    assert int(request_bytes) == 140 << 20


def test_slurmd_reads_of_users_what_their_programs_send(worker: Worker) -> None:
    """Lists of hosts are bounded for known_messages.so, too, which counts those of a message."""
    worker.write(**{"bin/slurmd": "#!/bin/sh\necho $LD_PRELOAD $HOSTLIST_MAX\n"})
    (said,) = worker.start()
    libraries, hosts = said.split()
    loaded = [Path(library).stem for library in libraries.split(":")]
    assert loaded.index("known_messages") < loaded.index("bounded_hostlists")
    assert hosts == "65536"


def test_clients_that_do_not_answer_hold_no_step(worker: Worker) -> None:
    worker.write(**{"bin/slurmd": "#!/bin/sh\necho $LD_PRELOAD\n"})
    (libraries,) = worker.start()
    assert f"{worker.root}/step_clients.so" in libraries.split(":")


def test_a_worker_that_may_close_volumes_but_not_mount_does_not_start_slurmd_and_names_the_setting(
    worker: Worker,
) -> None:
    """As under AppArmor: the kernel asks it about mount(2) alone."""
    refuses = "#!/bin/sh\ncase $* in --bind*) echo permission denied >&2; exit 32 ;; esac\n"
    worker.write(**{"bin/mount": refuses, "termination-log": "", "open_as_user.so": ""})

    done = worker.run(worker.start_command())

    assert done.returncode == 1
    assert "set jail.app_armor: unconfined" in done.stderr
    assert (worker.root / "termination-log").read_text() in done.stderr


def test_slurmd_finds_no_steps_of_an_earlier_container(worker: Worker) -> None:
    """It would report them to slurmctld as running, and start no batch job that finds its former script."""
    spool = worker.root / "spool"
    (spool / "cred_state").touch()
    (spool / "job00009").mkdir()
    (spool / "job00009" / "slurm_script").touch()
    with socket.socket(socket.AF_UNIX) as step:
        step.bind(str(spool / "cpu-4_9.0"))

    worker.start()

    assert [path.name for path in spool.iterdir()] == ["cred_state"]


def test_jobs_of_an_earlier_container_leave_no_images_to_those_that_get_their_numbers(worker: Worker) -> None:
    (worker.root / "found-images").mkdir()
    (worker.root / "found-images/9").touch()

    worker.start()

    assert not (worker.root / "found-images").exists()


def test_a_new_node_is_put_into_service_next_to_slurmd(worker: Worker) -> None:
    worker.start()
    begun, deadline = worker.root / "put-into-service", time.monotonic() + 10
    while not begun.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert begun.read_text() == f"cpu-4\n{POD_START}\n{NEWCOMER_SECONDS}\n"


def test_a_new_node_that_a_check_has_to_verify_registers_so_and_no_one_puts_it_into_service(worker: Worker) -> None:
    worker.options["verify_new_nodes"] = True
    started = " ".join(worker.start())

    assert 'State=DRAIN Reason="health: not verified"' in started
    assert POD_START not in started
    assert not (worker.root / "put-into-service").exists()


@pytest.mark.parametrize("change", ["other=1", "processes="])
def test_an_image_of_another_version_than_the_program_ends_in_words_that_name_it(worker: Worker, change: str) -> None:
    command = [word for word in worker.start_command() if not word.startswith(change)]
    done = worker.run([*command, change] if change == "other=1" else command)
    assert done.returncode != 0
    assert change.rstrip("=") in done.stderr
    assert "images.worker is of another version than the program that made this pod." in done.stderr
    assert worker.calls.read_text() == ""


def test_an_image_without_the_scripts_ends_in_words_that_name_it(worker: Worker) -> None:
    (worker.root / "scripts/start.sh").unlink()
    done = worker.run(worker.start_command())
    assert done.returncode == 127
    assert "start.sh is not in this image: images.worker is of another version" in done.stderr


def test_scripts_and_program_agree_on_paths() -> None:
    here = {**vars(layout), "CGROUPS": worker_scripts.CGROUPS, "LAST_WORDS": containers.LAST_WORDS}
    only_of_scripts = {
        *("BOUNDED_CONNECTIONS", "BOUNDED_HOSTLISTS", "DEVICES", "FOUND_IMAGES", "KNOWN_MESSAGES", "MESSAGE_QUEUES"),
        *("PMIX_DIR", "PROC", "SERVICES", "STEP_CLIENTS", "SYS"),
    }
    assert {name: path for name, path in paths().items() if name not in only_of_scripts} == {
        name: str(here[name]) for name in paths().keys() - only_of_scripts
    }
    assert f"COPY scripts {layout.IMAGE_SCRIPTS}\n" in (IMAGE / "Containerfile").read_text()


def test_scripts_and_the_plugin_agree_on_paths() -> None:
    headers = "".join(path.read_text() for path in (ROOT / "spank-plugin").glob("*.h"))
    defined = dict(re.findall(r'#define (\w+) +"(.*)"', headers))
    assert defined["USER_CLEANUP_DIRECTORIES"] == paths()["JAIL_OWN"]
    assert defined["PMIX_DIRECTORY"] == paths()["PMIX_DIR"]
    assert defined["FOUND_IMAGES"] == paths()["FOUND_IMAGES"]
    assert defined["MUNGE_OF_JOBS"] == layout.MUNGE_OF_JOBS
    assert Path(defined["IMAGE_COUNTS"]) == COUNTS


@pytest.mark.parametrize("containers", [None, 4096])
def test_a_node_reports_containers_if_jobs_may_have_them(worker: Worker, containers: int | None) -> None:
    worker.options["containers_mib"] = containers
    worker.start()
    assert (worker.root / "services/containers/run").exists() == bool(containers)
    assert (worker.root / "services/watch/run").exists()


def test_slurmd_does_not_start_where_it_could_hang_in_a_pipe_of_a_user(worker: Worker) -> None:
    worker.node("IDLE+DYNAMIC_NORM")
    worker.write(**{"termination-log": ""})

    done = worker.run(worker.start_command())

    assert done.returncode != 0
    assert "open_as_user.so" in done.stderr
    assert done.stdout == ""
