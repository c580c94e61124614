"""Containers in jobs: an image in place of the jail, on every node, as the user and no more."""

import base64
import json
import re
import shlex
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from containers_testing.image_registry import layer, make_layout, special

from soperator_pulumi.render import layout
from tests import squashfs_tools
from tests.cluster import busybox
from tests.cluster.escaping import BY_USERS, PROGRAM, addresses, assert_blocked, bring, outcomes, words
from tests.cluster.slurm import Slurm
from tests.waiting import wait_until
from tools.kube import archives

pytestmark = pytest.mark.cluster

STORE = "/home/alice/.local/share/soperator/containers"

IMAGE = "/home/alice/images/busybox.tar"
HOSTILE = "/home/alice/images/hostile.tar"

SMALL = "-n1 --overcommit --mem=1"

OF_THE_JAIL = ",".join(f"{path}:{path}:ro" for path in ("/usr", "/lib", "/lib64"))
"""Mounts that give Python to an image without any library."""

OF_THE_CONTAINER = {"add_a_user_to_the_jail", "change_where_libraries_are_found"}
"""Attempts on files that are the container's own, and go with it."""

IN_CONTAINERS = sorted(set(BY_USERS) - OF_THE_CONTAINER)


def send(slurm: Slurm, path: str, content: bytes) -> None:
    """Put a file into alice's home."""
    command = f"mkdir -p $(dirname {path}) && base64 -d > {path}"
    slurm.ssh(command, stdin=base64.encodebytes(content).decode())


def hostile() -> bytes:
    """Return an archive of an image that means harm, with busybox in it."""
    links = {
        "/proc": "../../home/bob",
        "/etc": "/home/bob",
        "/tmp": "/proc/1/root",
        "/opt": "/..",
        "/bin/sh": "busybox",
        "/bin/ls": "busybox",
        "/bin/cat": "busybox",
        "/bin/id": "busybox",
        "/bin/mknod": "busybox",
    }
    return archives.archive("hostile:1", {"/bin/busybox": busybox.program()}, entrypoint=["/bin/sh"], links=links)


@pytest.fixture(scope="module")
def image(slurm: Slurm) -> Iterator[str]:
    """An image of busybox, as `docker save` writes it, and a secret of bob."""
    send(slurm, IMAGE, busybox.archive().read_bytes())
    slurm.ssh("umask 077; echo of-bob > ~/secret", user="bob")
    yield IMAGE
    slurm.ssh(f"rm -rf ~/images {STORE}")
    for node in ("cpu-0", "cpu-1"):
        assert "DRAIN" not in slurm.node_state(node), "a user's container has drained it"


def run(slurm: Slurm, image: str, script: str, options: str = SMALL, *, check: bool = True) -> tuple[str, str]:
    """Run a shell script in a container and return what it printed, and what srun said."""
    command = f"srun {options} --container-image={image} sh -c {shlex.quote(script)}"
    done = slurm.ssh(command, check=check)
    return done.stdout, done.stderr


def refused(slurm: Slurm, options: str, image: str = IMAGE) -> str:
    """Return the words with which a task is refused; fail if it has run."""
    done = slurm.ssh(f"srun {SMALL} --container-image={image} {options} echo has run", check=False)
    assert done.returncode != 0
    assert "has run" not in done.stdout
    return done.stderr


def test_an_image_is_brought_once_and_runs_on_every_node(slurm: Slurm, image: str) -> None:
    script = "echo $SLURMD_NODENAME $(ls -d /usr/bin /bin/busybox 2>/dev/null) $(id -u)"
    slurm.ssh(f"rm -rf {STORE}")
    said, told = run(slurm, image, script, "-N2 --overcommit --mem=1")

    assert sorted(said.splitlines()) == ["cpu-0 /bin/busybox 2001", "cpu-1 /bin/busybox 2001"]
    assert told.count("has brought it in") == 1
    _, again = run(slurm, image, script)
    assert "brought" not in again


COPIES = "/var/lib/soperator/local-images"


def test_a_node_with_a_disk_starts_a_copy_that_containers_and_other_users_do_not_see(slurm: Slurm, image: str) -> None:
    on_big = f"{SMALL} -p big"
    _, told = run(slurm, image, "true", on_big)
    assert "copies the image to this node's disk" in told
    said, told = run(slurm, image, "ls -d /var/lib/soperator 2>&1; :", on_big)

    assert "cop" not in told
    assert "/var/lib/soperator: No such file or directory" in said
    jail = f"srun {on_big} sh -c 'stat -c %a {COPIES} {COPIES}/2001; cat {COPIES}/2001/images/*/rootfs/bin/sh | wc -c'"
    mode, own, size = slurm.ssh(jail).stdout.split()
    assert (mode, own) == ("1777", "700")
    assert int(size) == len(busybox.program())
    others = slurm.ssh(f"srun {on_big} sh -c 'ls {COPIES}/2001; mv {COPIES}/2001 {COPIES}/x'", user="bob", check=False)
    assert re.search("ls: .*Permission denied", others.stderr)
    assert re.search("mv: .*not permitted", others.stderr)
    slurm.ssh(f"srun {on_big} sh -c 'rm {COPIES}/2001/images/*/rootfs/bin/ls'")
    assert run(slurm, image, "ls /bin/ls 2>/dev/null; :", on_big)[0] == "", "the task starts from the copy"
    assert run(slurm, image, "ls /bin/ls")[0] == "/bin/ls\n", "the node without a disk reads the shared volume"
    slurm.ssh(f"srun {on_big} rm -rf {COPIES}/2001")


@pytest.mark.soak  # a node reports every half minute
def test_copies_of_a_node_are_listed(slurm: Slurm, image: str) -> None:
    def listed() -> dict[str, int]:
        found = json.loads(slurm.exec("cpu-0", "slurmd", layout.LIST_IMAGES))
        return {node["node"]: node["images"] for node in found["nodes"] if node["size_bytes"] > len(busybox.program())}

    run(slurm, image, "true", f"{SMALL} -p big")
    wait_until(lambda: listed() == {"big-0": 1}, what="the node reports its copy", timeout_seconds=120)
    slurm.ssh(f"srun {SMALL} -p big rm -rf {COPIES}/2001")


def test_an_image_counts_for_all_components_of_a_heterogeneous_step(slurm: Slurm, image: str) -> None:
    other = of_mebibytes(slurm, "other", 1)
    script = "sh -c 'echo $SLURMD_NODENAME $(ls -d /large /bin/busybox /usr/bin 2>/dev/null)'"
    first, second = f"srun --mem=1 --het-group=0 --container-image={image} {script}", f"--het-group=1 --mem=1 {script}"
    steps = [
        f"srun --mem=1 --het-group=0,1 --container-image={image} {script} | sort",
        f"{first} : {second} | sort",
        f"{first} : --container-image={other} {second} || echo refused",
        f"{first}; srun --container-image={other} {second}",
    ]
    slurm.ssh("cat > ~/images/steps", stdin="\n".join(steps))

    done = slurm.ssh(f"salloc -Q {SMALL} -w cpu-0 : {SMALL} -w cpu-1 sh /home/alice/images/steps")

    both = ["cpu-0 /bin/busybox", "cpu-1 /bin/busybox"]
    assert done.stdout.splitlines() == [*both, *both, "refused", both[0], "cpu-1 /bin/busybox /large"]
    assert "--container-image is given twice" in done.stderr


def test_tasks_of_an_array_start_one_image(slurm: Slurm, image: str) -> None:
    slurm.ssh(f"rm -rf {STORE}")
    script = "#!/bin/sh\necho $SLURM_ARRAY_TASK_ID $(ls -d /bin/busybox /usr/bin 2>/dev/null)\n"
    options = f"{SMALL} --array=0-2 --container-image={image} -o /home/alice/images/array-%a"
    slurm.ssh(f"sbatch --wait {options}", stdin=script)

    said = slurm.ssh("cat ~/images/array-*").stdout
    assert re.findall(r"(?m)^\d .*$", said) == ["0 /bin/busybox", "1 /bin/busybox", "2 /bin/busybox"]
    assert said.count("has brought it in") == 1


def test_an_archive_of_an_oci_layout_is_an_image_too(slurm: Slurm, image: str, tmp_path: Path) -> None:
    files = layer([("bin/busybox", busybox.program()), special("bin/sh", b"2", "busybox")], mode=0o755)
    layout = make_layout(tmp_path / "layout", [files], Env=["PATH=/bin"])
    with tarfile.open(tmp_path / "oci.tar", "w") as archive:
        for path in layout.iterdir():
            archive.add(path, path.name)
    send(slurm, "/home/alice/images/oci.tar", (tmp_path / "oci.tar").read_bytes())

    said, _ = run(slurm, "/home/alice/images/oci.tar", "echo $0 from $PATH")
    assert said == "/bin/sh from /bin\n"


def test_a_relative_path_counts_from_the_working_directory(slurm: Slurm, image: str) -> None:
    done = slurm.ssh(f"cd ~/images && srun {SMALL} --container-image=./busybox.tar pwd")

    assert done.stdout == "/\n"


def test_a_batch_script_runs_in_a_container(slurm: Slurm, image: str) -> None:
    script = f"#!/bin/sh\n#SBATCH --container-image={image}\nls -d /usr/bin /bin/busybox 2>&1; echo done\n"
    slurm.ssh("cat > ~/images/job.sh", stdin=script)
    job = int(slurm.ssh(f"cd ~/images && sbatch --parsable {SMALL} -o ~/images/out job.sh").stdout)
    slurm.wait_for_job(job, "COMPLETED")

    said = slurm.ssh("cat ~/images/out").stdout
    assert "/bin/busybox\n" in said
    assert "ls: /usr/bin: No such file or directory" in said
    assert said.endswith("done\n")


def test_a_variable_of_pyxis_is_an_option_of_all_steps_of_a_job(slurm: Slurm, image: str) -> None:
    done = slurm.ssh(
        f"PYXIS_CONTAINER_IMAGE={image} salloc -Q {SMALL} srun --mem=1 ls -d /bin/busybox /usr/bin", check=False
    )

    assert done.stdout == "/bin/busybox\n"
    assert "/usr/bin: No such file or directory" in done.stderr


def test_options_of_salloc_are_those_of_its_steps(slurm: Slurm, image: str) -> None:
    done = slurm.ssh(f"salloc -Q {SMALL} --container-image={image} srun --mem=1 ls -d /bin/busybox")

    assert done.stdout == "/bin/busybox\n"


def test_exit_codes_and_standard_input_are_as_in_the_jail(slurm: Slurm, image: str) -> None:
    done = slurm.ssh(f"srun {SMALL} --container-image={image} sh -c 'cat; exit 7'", stdin="through\n", check=False)

    assert done.returncode == 7
    assert done.stdout == "through\n"


def test_the_user_has_a_name_and_the_groups_of_the_jail(slurm: Slurm, image: str) -> None:
    said, _ = run(slurm, image, "whoami; id -g; id -G")
    jail = slurm.ssh(f"srun {SMALL} sh -c 'whoami; id -g; id -G'").stdout

    assert said == jail


def test_mounts_home_directory_and_variables_are_as_the_options_say(slurm: Slurm, image: str) -> None:
    slurm.ssh("mkdir -p ~/images/data && echo data > ~/images/data/file")
    options = (
        f"{SMALL} --container-mounts=/home/alice/images/data:/data:ro,/home/alice/images/data/file:/etc/file "
        "--container-mount-home --container-workdir=/data --container-env=PATH"
    )
    said, _ = run(slurm, image, "pwd; cat file /etc/file; ls -d ~/images; touch x 2>&1; echo $PATH", options)

    assert said.splitlines()[:4] == ["/data", "data", "data", "/home/alice/images"]
    assert "Read-only file system" in said
    assert said.splitlines()[-1] == slurm.ssh("srun -n1 --overcommit --mem=1 sh -c 'echo $PATH'").stdout.strip()


def test_the_home_is_not_there_unless_it_is_wanted(slurm: Slurm, image: str) -> None:
    assert run(slurm, image, "ls -A /home ~; echo end")[0] == "/home:\nalice\n\n/home/alice:\nend\n"


def test_changes_are_lost_and_stay_out_of_the_image(slurm: Slurm, image: str) -> None:
    assert run(slurm, image, "rm /bin/busybox; [ -e /bin/busybox ] || echo gone")[0] == "gone\n"
    assert run(slurm, image, "echo x > /new && read it < /new && echo $it")[0] == "x\n"
    assert run(slurm, image, "ls /new 2>/dev/null; ls /bin/busybox")[0] == "/bin/busybox\n"


def test_a_read_only_container_takes_no_change(slurm: Slurm, image: str) -> None:
    said, _ = run(
        slurm, image, "echo x > /tmp/x && rm /tmp/x && echo x > /new; echo end", f"{SMALL} --container-readonly"
    )

    assert said == "end\n"


ENTRY = """#!/bin/sh
echo banner
export FIRST="from the entry point" SLURM_JOB_ID=0 PATH=/opt/image:$PATH
[ -z "$FAIL" ] || { echo "no licence" >&2; exit 3; }
exec "$@"
"""


@pytest.fixture(scope="module")
def with_entry_point(slurm: Slurm, image: str) -> str:
    """An image whose entry point sets variables."""
    files = {"/bin/busybox": busybox.program(), "/entry": ENTRY.encode()}
    links = {f"/bin/{name}": "busybox" for name in ("sh", "cat", "id")}
    path = "/home/alice/images/entry.tar"
    send(slurm, path, archives.archive("entry:1", files, entrypoint=["/entry"], links=links))
    return path


def test_an_entry_point_gives_its_variables_to_every_task(slurm: Slurm, with_entry_point: str) -> None:
    script = 'echo "$SLURM_PROCID $FIRST $(test $SLURM_JOB_ID = 0 || echo job) ${PATH%%:*}"'
    said, told = run(slurm, with_entry_point, script, "-n2 --overcommit --mem=1 --container-entrypoint")

    assert sorted(said.splitlines()) == [f"{task} from the entry point job /opt/image" for task in (0, 1)]
    assert "banner" not in told
    said, told = run(slurm, with_entry_point, script, f"{SMALL} --container-entrypoint --container-entrypoint-log")
    assert "banner" not in said
    assert "banner" in told
    assert run(slurm, with_entry_point, script)[0].startswith("0  job ")


def test_an_entry_point_that_fails_fails_the_task_with_its_words(slurm: Slurm, with_entry_point: str) -> None:
    done = slurm.ssh(
        f"FAIL=1 PYXIS_CONTAINER_ENTRYPOINT=1 srun {SMALL} --container-image={with_entry_point} echo has run",
        check=False,
    )

    assert done.returncode != 0
    assert done.stdout == ""
    assert "the image's entry point /entry has failed with exit code 3. no licence" in done.stderr


@pytest.fixture(scope="module")
def squashfs(slurm: Slurm, image: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file as `enroot import` writes it, whose programs want to be set-user-id."""
    tree = tmp_path_factory.mktemp("squashfs") / "tree"
    for name, content in {
        "bin/busybox": busybox.program().decode("latin-1"),
        "entry": ENTRY,
        "etc/rc": 'cd "/work" && unset OLDPWD || exit 1\n    exec \'/entry\' "$@"\n',
        "etc/environment": 'OF_IMAGE="1 2"\nPATH=/bin\n',
    }.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(content, encoding="latin-1")
        (tree / name).chmod(0o4755)
    for name in ("sh", "cat", "id", "ls"):
        (tree / "bin" / name).symlink_to("busybox")
    (tree / "work").mkdir()
    squashfs_tools.pack(tree, tree.with_suffix(".sqsh"), "-all-root")
    send(slurm, "/home/alice/images/it.sqsh", tree.with_suffix(".sqsh").read_bytes())
    return "/home/alice/images/it.sqsh"


def test_a_file_of_enroot_is_an_image_with_variables_directory_and_entry_point(slurm: Slurm, squashfs: str) -> None:
    script = 'echo "$OF_IMAGE $PWD $FIRST $(id -u)"; ls -l /entry'
    said, told = run(slurm, squashfs, script, f"{SMALL} --container-entrypoint")

    assert said.splitlines()[0] == "1 2 /work from the entry point 2001"
    assert said.splitlines()[1].startswith("-rwxr-xr-x")
    assert "has brought it in" in told
    assert "brought" not in run(slurm, squashfs, "true")[1]


def test_a_named_container_keeps_its_files_for_steps_and_jobs_on_all_nodes(slurm: Slurm, image: str) -> None:
    named = f"{STORE}/named"
    slurm.ssh(f"rm -rf {named}/tools")
    create = f"{SMALL} -w cpu-0 --container-name=tools:create"
    run(slurm, image, "echo kept > /bin/kept; mkdir /top; chmod 700 /top", create)

    steps = [
        "cat /bin/kept; ls -d /top; grep -c alice /etc/passwd; id -u; ls -l /dev/null | cut -c1; mkdir /bin/second",
        "ls -d /bin/second; touch /proc/x /sys/x /opt/slurm/x 2>/dev/null || echo closed",
    ]
    script = "; ".join(f"srun --mem=1 --container-name=tools sh -c {shlex.quote(step)}" for step in steps)
    said = slurm.ssh(f"salloc -Q {SMALL} -w cpu-1 sh -c {shlex.quote(script)}").stdout.splitlines()
    assert said == ["kept", "/top", "1", "2001", "c", "/bin/second", "closed"]

    assert "there is a container tools already" in refused(slurm, "--container-name=tools:create")
    assert "no task runs in a container tools" in refused(slurm, "--container-name=tools:exec")
    _, told = run(slurm, image, "true", f"{SMALL} --container-name=tools")
    assert "--container-image has no effect" in told
    slurm.ssh(f"cd {named} && flock -n ../uses/named.tools mv tools ../trash/")
    done = slurm.ssh(f"srun {SMALL} --container-name=tools true", check=False)
    assert "there is no container tools. Give --container-image to make it" in done.stderr


def test_a_step_of_two_nodes_makes_one_named_container(slurm: Slurm, image: str) -> None:
    options = "-N2 --overcommit --mem=1 --container-name=both:create"
    said, told = run(slurm, image, "echo x >> /shared; echo done", options)

    assert said == "done\ndone\n"
    assert told.count("makes a container") == 1
    assert run(slurm, image, "grep -c x /shared", f"{SMALL} --container-name=both")[0] == "2\n"


def test_a_requeued_job_continues_in_its_named_container(slurm: Slurm, image: str) -> None:
    out = "/home/alice/images/requeued.out"
    inside = 'echo run >> /runs; if [ -z "$SLURM_RESTART_COUNT" ]; then echo started; exec sleep 300; fi; cat /runs'
    step = f"srun --container-image={image} --container-name=requeued sh -c {shlex.quote(inside)}"
    send(slurm, "/home/alice/images/requeued.sh", step.encode())
    job = slurm.submit("sh images/requeued.sh", options=f"{SMALL} --requeue --open-mode=append -o {out}")
    wait_until(lambda: "started\n" in slurm.ssh(f"cat {out}", check=False).stdout, what="the first run has started")
    slurm.scontrol("requeue", str(job))
    wait_until(lambda: slurm.job(job)["JobState"] == "PENDING", what="the first run has ended")

    # In the second of the requeue slurmd takes a launch for the one that it has given up ("Job credential revoked").
    slurm.scontrol("update", f"jobid={job}", "starttime=now+2")
    slurm.wait_for_job(job, "COMPLETED")
    assert slurm.ssh(f"cat {out}").stdout.endswith("run\nrun\n")


@pytest.mark.parametrize(
    ("make", "told"),
    [
        ("ln -s / rootfs", "is not a folder of the user"),
        ("ln -s /proc/self rootfs", "rootfs"),
    ],
)
def test_a_named_container_that_its_user_has_changed_gives_no_more(
    slurm: Slurm, image: str, make: str, told: str
) -> None:
    run(slurm, image, "true", f"{SMALL} --container-name=changed")
    slurm.ssh(f"cd {STORE}/named/changed && mv rootfs kept && {make}")
    try:
        assert told in refused(slurm, "--container-name=changed")
    finally:
        slurm.ssh(f"rm -rf {STORE}/named/changed")


def test_a_saved_container_is_an_image_with_what_the_task_has_changed(slurm: Slurm, with_entry_point: str) -> None:
    save = "-n2 --overcommit --mem=1 --container-save=saved.sqsh --chdir /home/alice/images"
    script = "echo of $SLURM_PROCID > /changed; mkdir -p /home/alice; touch /tmp/of-the-jail; exit 3"
    done = slurm.ssh(f"srun {save} --container-image={with_entry_point} sh -c {shlex.quote(script)}", check=False)

    assert done.returncode == 3
    assert "has saved" in done.stderr
    options = f"{SMALL} --container-entrypoint"
    said, _ = run(slurm, "/home/alice/images/saved.sqsh", 'cat /changed; echo "$FIRST"', options)
    assert said == "of 0\nfrom the entry point\n"
    assert slurm.ssh("ls -A ~/images | grep -c saved").stdout == "1\n"


def test_a_container_that_cannot_be_saved_is_not_started(slurm: Slurm, image: str) -> None:
    assert "is not a folder that you can write to" in refused(slurm, "--container-save=/home/bob/it.sqsh")
    assert "is a folder" in refused(slurm, "--container-save=/home/alice")


def test_a_named_container_is_saved_and_continues(slurm: Slurm, image: str) -> None:
    path = "/home/alice/images/named.sqsh"
    run(slurm, image, "echo x > /first", f"{SMALL} --container-name=goes-on --container-save={path}")

    assert run(slurm, path, "cat /first")[0] == "x\n"
    assert slurm.ssh(f"srun {SMALL} --container-name=goes-on cat /first").stdout == "x\n"


def test_a_job_that_hangs_while_it_is_saved_is_cancelled_and_keeps_the_former_file(slurm: Slurm, image: str) -> None:
    slurm.ssh("echo former > ~/images/kept.sqsh; rm -f ~/images/stopped")
    stop = "for it in /proc/[0-9]*; do grep -q '[s]ave-image' $it/cmdline && kill -STOP ${it#/proc/}; done"
    script = f"{stop}; touch /home/alice/images/stopped"
    options = (
        f"{SMALL} --container-image={image} --container-save=/home/alice/images/kept.sqsh "
        "--container-mounts=/home/alice/images"
    )
    command = shlex.quote(f"srun {options} sh -c {shlex.quote(script)}")
    job = int(slurm.ssh(f"sbatch --parsable {SMALL} -w cpu-0 -o /dev/null --wrap {command}").stdout)
    wait_until(lambda: slurm.ssh("ls ~/images/stopped", check=False).returncode == 0, what="the program is stopped")
    assert slurm.job(job)["JobState"] == "RUNNING"

    slurm.ssh(f"scancel {job}")
    slurm.wait_for_job(job, "CANCELLED")
    wait_until(lambda: "COMPLETING" not in slurm.node_state("cpu-0"), what="the node is free", timeout_seconds=60)
    assert slurm.ssh("cat ~/images/kept.sqsh").stdout == "former\n"


def test_a_step_ends_by_a_signal_while_its_image_comes_and_not_by_a_warning(slurm: Slurm, image: str) -> None:
    lock = f"{STORE}/locks/named.late"
    script = f"""#!/bin/sh
mkdir -p {STORE}/locks
flock {lock} sleep 120 &
while flock -n {lock} true; do sleep 0.1; done
srun {SMALL} --container-image={image} --container-name=late echo has run
echo "ended with $?"
"""
    slurm.ssh("cat > ~/images/job.sh", stdin=script)
    job = int(slurm.ssh(f"cd ~/images && sbatch --parsable {SMALL} -o ~/images/late job.sh").stdout)

    def said() -> str:
        return slurm.ssh("cat ~/images/late", check=False).stdout

    wait_until(lambda: "waits on" in said(), what="the step waits for its image")
    slurm.ssh(f"scancel --signal=USR1 {job}.0 && scancel --signal=TERM {job}.0")
    wait_until(lambda: "ended with" in said(), what="the step ends", timeout_seconds=15)
    assert "ended with 143" in said()
    assert "has run" not in said()
    assert "its import was ended" not in said()


def test_a_batch_script_is_saved(slurm: Slurm, image: str) -> None:
    path = "/home/alice/images/batch.sqsh"
    script = f"#!/bin/sh\n#SBATCH --container-image={image} --container-save={path}\necho batch > /changed\n"
    slurm.ssh("cat > ~/images/job.sh", stdin=script)
    job = int(slurm.ssh(f"cd ~/images && sbatch --parsable {SMALL} -o ~/images/out job.sh").stdout)
    slurm.wait_for_job(job, "COMPLETED")

    assert "has saved" in slurm.ssh("cat ~/images/out").stdout
    assert run(slurm, path, "cat /changed")[0] == "batch\n"


def test_slurms_own_containers_are_refused_with_the_option_to_use(slurm: Slurm, image: str) -> None:
    done = slurm.ssh(f"srun {SMALL} --container=/home/alice/bundle true", check=False)

    assert "Give an image by --container-image" in done.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            "--container-unshare=net",
            "--container-unshare is not supported: a container has the namespaces of tasks",
        ),
        ("--container-remap-root", "jobs of this cluster may make no user namespaces (jail.isolation.user_namespaces)"),
        ("--container-entrypoint", "entry point /bin/sh has failed with exit code"),
        ("--container-mounts=relative:/x", "absolute paths"),
        ("--container-workdir=/missing", "chdir to /missing"),
    ],
)
def test_what_cannot_be_is_reported(slurm: Slurm, image: str, options: str, told: str) -> None:
    assert told in refused(slurm, options)


@pytest.mark.parametrize(
    ("image_text", "told"),
    [
        ("/home/alice/images/missing.tar", "No such file or directory"),
        ("../../etc", "is not an image"),
        ("--help", "is not an image"),
        ("127.0.0.1:1#a/b", "connection refused"),
    ],
)
def test_an_image_that_cannot_be_brought_is_reported(slurm: Slurm, image: str, image_text: str, told: str) -> None:
    assert told in refused(slurm, "", image_text)


def test_srun_shows_the_options(slurm: Slurm) -> None:
    assert "--container-image=[USER@][REGISTRY#]IMAGE[:TAG]|PATH" in slurm.ssh("srun --help").stdout


def of_mebibytes(slurm: Slurm, name: str, count: int) -> str:
    """Make an image of a size, and return its path."""
    files = {"/bin/busybox": busybox.program(), "/large": name.encode().ljust(count << 20)}
    path = f"/home/alice/images/{name}.tar"
    send(slurm, path, archives.archive(f"{name}:1", files, entrypoint=["/bin/sh"], links={"/bin/sh": "busybox"}))
    return path


def stored(slurm: Slurm) -> str:
    """Return the names of the images in alice's store."""
    return slurm.ssh(f"cat {STORE}/images/*/reference").stdout


def test_an_image_in_use_on_another_node_makes_no_room(slurm: Slurm, image: str) -> None:
    first, second, third = (of_mebibytes(slurm, name, 7) for name in ("first", "second", "third"))
    slurm.ssh(f"rm -rf {STORE} ~/images/runs ~/images/end")
    folder = "/home/alice/images"
    script = f"touch {folder}/runs; until [ -e {folder}/end ]; do sleep 1; done; grep -c first /large"
    options = f"{SMALL} --container-image={first} --container-mounts={folder} -w cpu-1 -t 10 -o {folder}/out"
    job = int(slurm.ssh(f"sbatch --parsable {options} --wrap {shlex.quote(script)}").stdout)
    wait_until(lambda: slurm.ssh("ls ~/images/runs", check=False).returncode == 0, what="the job runs in its image")
    run(slurm, second, "true", f"{SMALL} -w cpu-0")

    _, told = run(slurm, third, "true", f"{SMALL} -w cpu-0")

    assert f"removes docker-archive:{second}" in told
    assert first in stored(slurm)
    assert f"Jobs are running in docker-archive:{first}" in refused(slurm, "", of_mebibytes(slurm, "fourth", 12))
    slurm.ssh("touch ~/images/end")
    slurm.wait_for_job(job, "COMPLETED")
    assert slurm.ssh("cat ~/images/out").stdout.splitlines()[-1] == "1"
    run(slurm, second, "true", f"{SMALL} -w cpu-0")
    assert first not in stored(slurm)


# Attempts of a user, with options and with images.


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--container-mounts=/home/bob/secret:/x", "Permission denied"),
        ("--container-mounts=/home/alice/images/link:/x", "Permission denied"),
        ("--container-mounts=/proc/self/root:/x", "open /proc/self/root"),
        ("--container-mounts=/proc/1/root:/x", "open /proc/1/root"),
        ("--container-mounts=/home/alice/images:/", "would hide the image"),
        ("--container-mounts=/home/alice/images:/x/..", "would hide the image"),
        ("--container-mounts=/jail:/x", "open /jail: No such file or directory"),
        ("--container-mounts=/var/spool/slurmd/cred_state:/x", "No such file or directory"),
    ],
)
def test_no_mount_shows_more_than_the_user_reaches(slurm: Slurm, image: str, options: str, told: str) -> None:
    slurm.ssh("ln -sfn /home/bob/secret ~/images/link")

    assert told in refused(slurm, options)


def test_a_folder_that_is_closed_to_the_user_stays_closed_where_it_is_mounted(slurm: Slurm, image: str) -> None:
    slurm.ssh("chmod 700 ~", user="bob")
    said, told = run(slurm, image, "cat /x/secret", f"{SMALL} --container-mounts=/home/bob:/x", check=False)

    assert said == ""
    assert "'/x/secret': Permission denied" in told


def test_a_mount_in_place_of_proc_or_dev_is_not_seen(slurm: Slurm, image: str) -> None:
    slurm.ssh("mkdir -p ~/images/fake/self")
    options = f"{SMALL} --container-mounts=/home/alice/images/fake:/proc,/home/alice/images/fake:/dev"
    said, _ = run(slurm, image, "grep -c . /proc/self/status; ls -l /dev/null", options)

    assert int(said.splitlines()[0]) > 10
    assert said.splitlines()[1].startswith("crw")


@pytest.mark.parametrize(
    ("name", "make", "told"),
    [
        ("rootfs", "ln -s /", "is not a folder of the user"),
        ("rootfs", "ln -s /home/bob", "is not a folder of the user"),
        ("rootfs", "ln -s /proc/self", "rootfs"),
        ("environment", "mkfifo", "is not a file"),
        ("workdir", "ln -s /home/bob/secret", "workdir"),
    ],
)
def test_a_store_that_its_user_has_changed_gives_no_more(
    slurm: Slurm, image: str, name: str, make: str, told: str
) -> None:
    slurm.ssh(f"rm -rf {STORE}")
    run(slurm, image, "true")
    slurm.ssh(f"cd {STORE}/images/* && mv {name} kept && {make} {name}")
    try:
        assert told in refused(slurm, "")
    finally:
        slurm.ssh(f"cd {STORE}/images/* && rm {name} && mv kept {name}")


def test_no_user_reaches_the_images_of_another(slurm: Slurm, image: str) -> None:
    run(slurm, image, "true")

    assert "Permission denied" in slurm.ssh(f"ls {STORE}/images", user="bob", check=False).stderr


def test_a_hostile_image_harms_no_one_else(slurm: Slurm, image: str) -> None:
    send(slurm, HOSTILE, hostile())
    done = slurm.ssh(
        f"srun {SMALL} --container-image={HOSTILE} sh -c 'cat /home/bob/secret; ls /etc/shadow; mknod /x c 1 1; id -u'",
        check=False,
    )

    assert "of-bob" not in done.stdout
    assert slurm.ssh("cat ~/secret; ls -A ~", user="bob").stdout.startswith("of-bob\n")


@pytest.fixture(scope="module")
def in_a_container(slurm: Slurm, image: str) -> Iterator[dict[str, str]]:
    """What came of the attempts on the jail, made in a container with a neighbour next to it."""
    bring(slurm)
    neighbour = slurm.submit(
        "SECRET=of-bob sleep 3600", user="bob", options="-w cpu-0 --overcommit --mem=1 -o /dev/null"
    )
    slurm.wait_for_job(neighbour, "RUNNING")
    options = (
        f"-w cpu-0 --overlap --container-mount-home --container-workdir=/home/alice --container-mounts={OF_THE_JAIL}"
    )
    command = f"env PATH=/usr/bin:/bin {addresses(slurm, 'cpu-0')} {PROGRAM} {' '.join(IN_CONTAINERS)}"
    yield outcomes(slurm.ssh(f"srun {SMALL} --container-image={image} {options} {command}").stdout)
    slurm.ssh(f"scancel {neighbour}", user="bob")
    wait_until(lambda: slurm.job(neighbour)["JobState"] == "CANCELLED", what="the neighbour has ended")


@pytest.mark.parametrize("name", IN_CONTAINERS, ids=words)
def test_a_job_in_a_container_cannot(in_a_container: dict[str, str], name: str) -> None:
    assert_blocked(in_a_container[name])
