"""Parts of the containers of all roles: security contexts, probes, and the sidecars for munged and users.

The reasons given in comments were measured with Slurm 24.11 in pods.
"""

from collections.abc import Mapping, Sequence
from shlex import quote

import pulumi
from pulumi_kubernetes.core.v1 import (
    AppArmorProfileArgs,
    CapabilitiesArgs,
    ContainerArgs,
    ExecActionArgs,
    ProbeArgs,
    ResourceRequirementsArgs,
    SeccompProfileArgs,
    SecurityContextArgs,
    TCPSocketActionArgs,
)

from soperator_pulumi.cluster import mounts
from soperator_pulumi.cluster.mounts import Mount, SecretFile
from soperator_pulumi.cluster.secrets import Keys
from soperator_pulumi.render import layout
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.types.quantity import PodResources, ResourceAmounts

MUNGE_UID = 64031

INIT = ["/usr/bin/tini", "-g", "--"]
"""First process of every container. If slurmd were first, it would leave a zombie slurmstepd for every step."""

LAST_WORDS = "/run/termination-log"
"""File for the termination message of containers whose devices jobs or sessions see. Kubernetes' default is among the
devices, where any user could fill the machine's disk."""

JWT_SECRET_DIR = "/etc/jwt-secret"  # noqa: S105 a directory
"""Directory where Kubernetes mounts the key that signs tokens, in a mode that Slurm refuses."""

_SMALL = ResourceAmounts(cpu="100m", memory="64Mi")
_GUARANTEED = PodResources(requests=_SMALL, limits=_SMALL)
BURSTABLE = PodResources(requests=ResourceAmounts(cpu="10m", memory="32Mi"), limits=ResourceAmounts(memory="64Mi"))
"""Resources of a small helper."""

USERS_CONFIG_MAP = "users"
"""ConfigMap with passwd, group and shadow of the spec's users."""

HEALTH_CONFIG_MAP = "health"
"""ConfigMap with the settings of the quick checks."""

MERGED_SUMS = f"{layout.USER_FILES}/declared.sha256"
"""Checksums of the declared files that the sidecar has merged, written last."""

_READ_USERS = ("DAC_READ_SEARCH",)
"""Capability to read shadow, which has the mode 0000 in some distributions."""

_WRITE_USERS = ("CHOWN", "DAC_OVERRIDE")
"""Capabilities to write files of a tree, which may have any group and mode."""

_ARE_MERGED = f"import os, sys; sys.exit(not os.path.exists({MERGED_SUMS!r}))"

_COPY_KEY = "install -m 0400 /etc/munge-secret/munge.key /run/munge-key/munge.key"
_RUN = "munged --foreground --key-file=/run/munge-key/munge.key"
_RUN_FOR_DAEMON = (
    f"exec {_RUN} --pid-file=/run/munge-key/munged.pid --seed-file=/run/munge-key/munged.seed --num-threads=4"
)

_AGAIN = 'import os, time; time.sleep(2); os.execlp("sh", "sh", "-c", os.environ["MUNGE_OF_JOBS"])'
_LOOP_FOR_JOBS = (
    f"trap {quote(f'exec python3 -SB -c {quote(_AGAIN)}')} EXIT; while sleep 0.1; do {_RUN} --force"
    f" --socket={layout.MUNGE_OF_JOBS}/munge.socket.2 --pid-file={layout.MUNGE_OF_JOBS_PID}"
    " --seed-file=/run/munge-key/jobs.seed --num-threads=4; done"
)
_RUN_FOR_JOBS = (
    f'mkdir -p {layout.MUNGE_OF_JOBS} && export MUNGE_OF_JOBS={quote(_LOOP_FOR_JOBS)} && {{ sh -c "$MUNGE_OF_JOBS" & }}'
)
"""Part of the command by which jobs have a munged of their own, started again whenever it ends: a rotation ends it for
another key. No probe asks it: who holds it up by connections may not restart the daemon's.

dash ends if it can't start a process, as while a job has all that the pod may have. Then it becomes a program that
waits, and this loop again, for which it needs none."""

_SIGNS = ("munge", "--no-input", "--output=/dev/null")
_ASK = f"timeout -s KILL 10 {' '.join(_SIGNS)}"
_ASK_AGAIN = f"{{ sleep 20; {_ASK}; }}"
_WATCH = (  # Kubernetes takes $$ for $
    "{ (trap \"echo 'munged leaves questions open, or none can be asked: its container starts again.' >&2;"
    ' kill -KILL $$$$" EXIT;'
    f" while sleep 60; do {_ASK} || {_ASK_AGAIN} || {_ASK_AGAIN} || break; done) & }}"
)
"""Part of the command that asks munged once a minute and ends it, the container's first program, after three questions
in a row without a credential: at most 130 s after it stopped, and never for one slow answer of a busy machine. A probe
would start four programs and a dozen threads for a question on every node. This takes three programs.

The trap also ends munged if the shell can't start a program any more (limits of processes and memory), with which dash
ends: nothing else asks munged. A signal, by which Kubernetes ends the container, runs no trap of dash."""


def hardened(
    *,
    uid: int = 0,
    capabilities: Sequence[str] = (),
    writable_root: bool = False,
    app_armor: AppArmorProfileArgs | None = None,
) -> SecurityContextArgs:
    """Return the security context of a container limited to `capabilities`, also for setuid programs.

    Args:
        uid: User and group of the container's processes. Default: root.
        capabilities: Capabilities of root. Default: none.
        writable_root: Lets the container change its image's files, for its own life.
        app_armor: The AppArmor profile. Default: the runtime's.
    """
    return SecurityContextArgs(
        run_as_user=uid,
        run_as_group=uid,
        run_as_non_root=uid != 0,
        privileged=False,
        allow_privilege_escalation=False,
        read_only_root_filesystem=not writable_root,
        capabilities=CapabilitiesArgs(drop=["ALL"], add=[*capabilities] or None),
        seccomp_profile=SeccompProfileArgs(type="RuntimeDefault"),
        app_armor_profile=app_armor,
    )


def mounting_profile(spec: ClusterSpec) -> AppArmorProfileArgs | None:
    """Return the AppArmor profile of containers that mount; None for the runtime's own, which forbids mounting."""
    kind, _, loaded = spec.jail.app_armor.partition("/")
    if kind == "runtime":
        return None
    return AppArmorProfileArgs(type=kind.capitalize(), localhost_profile=loaded or None)


def requirements(resources: PodResources, devices: Mapping[str, str] | None = None) -> ResourceRequirementsArgs:
    """Return a container's requests and limits.

    Args:
        resources: CPU and memory.
        devices: Extended resources and huge pages, with equal requests and limits. Default: none.
    """

    def amounts(given: ResourceAmounts) -> dict[str, pulumi.Input[str]]:
        pairs = {"cpu": given.cpu, "memory": given.memory, **(devices or {})}
        return {name: value for name, value in pairs.items() if value is not None}

    return ResourceRequirementsArgs(
        requests=amounts(resources.requests) or None, limits=amounts(resources.limits) or None
    )


def asks(*command: str, period: int, failures: int, timeout: int = 5) -> ProbeArgs:
    """Return a probe that runs a command every `period` seconds. A TCP probe would fill slurmd's log with errors.

    A command costs 60 ms of a processor and three or four programs (the runtime, its init, the command; measured with
    containerd 2.1 and runc): rarely, or not at all, on a node with jobs.

    Args:
        command: The command.
        period: Seconds from one run to the next.
        failures: Runs in a row that fail before Kubernetes acts.
        timeout: Seconds after which a run fails.
    """
    return ProbeArgs(
        exec_=ExecActionArgs(command=[*command]),
        period_seconds=period,
        timeout_seconds=timeout,
        failure_threshold=failures,
    )


def connects(port: int, *, period: int, failures: int, grace_seconds: int | None = None) -> ProbeArgs:
    """Return a probe that connects to a port every `period` seconds, and fails after `failures` attempts in a row.

    A container that it ends has `grace_seconds` to stop. Default: the grace of its pod.
    """
    return ProbeArgs(
        tcp_socket=TCPSocketActionArgs(port=port),
        period_seconds=period,
        timeout_seconds=5,
        failure_threshold=failures,
        termination_grace_period_seconds=grace_seconds,
    )


def script_of_image(setting: str, name: str) -> list[str]:
    """Return the start of a command that runs a script of this package's images, which an older image may not have.

    Without the script, the container ends in words that name the setting, and a run that waits for the pod shows them.

    Args:
        setting: The image's field in `images`.
        name: Name of the script in `layout.IMAGE_SCRIPTS`.
    """
    run = (
        f'[ -x "$0" ] || {{ echo "$0 is not in this image: images.{setting} is of another version than the program that'
        ' made this pod. Name the image of its version." >&2; exit 127; }; exec "$0" "$@"'
    )
    return ["/bin/sh", "-c", run, f"{layout.IMAGE_SCRIPTS}/{name}"]


def munge_socket() -> Mount:
    """Return the read-only mount of munged's socket, which is enough to connect."""
    return mounts.memory("munge-run", "/run/munge", "1Mi", read_only=True)


def munged(
    spec: ClusterSpec, key: SecretFile, *, guaranteed: bool, has_jobs: bool = False
) -> tuple[ContainerArgs, list[Mount]]:
    """Return the sidecar that runs munged, and its mounts. It starts before the daemon and stops after it.

    munged refuses the symbolic links in a Secret's volume, so the sidecar copies the key into its own memory.

    Args:
        spec: The cluster.
        key: The munge key.
        guaranteed: True if requests and limits are equal.
        has_jobs: True if it runs a second munged for jobs. munged serves as many connections at once as it has threads,
            and waits two seconds for each that asks nothing: a user could keep slurmd from all of its messages.
    """
    command = " && ".join([_COPY_KEY, *([_RUN_FOR_JOBS] if has_jobs else []), _WATCH, _RUN_FOR_DAEMON])
    own = [
        # 0444, as only this container mounts it: an fsGroup would change the files of the jail.
        mounts.secret_file("munge-secret", key, "/etc/munge-secret", "munge.key", 0o444),
        mounts.memory("munge-key", "/run/munge-key", "1Mi"),
        mounts.memory("munge-run", "/run/munge", "1Mi"),
    ]
    container = ContainerArgs(
        name="munged",
        image=spec.images.munge,
        image_pull_policy=spec.images.pull_policy,
        restart_policy="Always",
        command=[*INIT, "/bin/sh", "-c", command],
        security_context=hardened(uid=MUNGE_UID),
        resources=requirements(_GUARANTEED if guaranteed else BURSTABLE),
        startup_probe=asks(*_SIGNS, period=1, failures=60),
        volume_mounts=[mount.in_container() for mount in own],
    )
    return container, own


def give_modes(open_directories: Sequence[Mount], own_directories: Sequence[Mount]) -> str:
    """Return the script of `prepare`: the mode of /tmp for shared directories, 0755 for a daemon's own."""
    modes = {"1777": open_directories, "0755": own_directories}
    return "".join(
        f"chmod {mode} {' '.join(place.path for place in places)}\n" for mode, places in modes.items() if places
    )


def prepare(
    spec: ClusterSpec,
    image: pulumi.Input[str],
    script: str,
    places: Sequence[Mount],
    *,
    capabilities: Sequence[str] = (),
    guaranteed: bool = False,
) -> ContainerArgs:
    """Return an init container that sets the owner and mode of directories before the daemon starts.

    Empty directories of Kubernetes have the mode 0777 without the sticky bit, so that users could replace the files of
    others. The script runs as root, their owner, and needs no capability for the mode.
    """
    return ContainerArgs(
        name="prepare",
        image=image,
        image_pull_policy=spec.images.pull_policy,
        command=[*INIT, "/bin/sh", "-ec", script],
        security_context=hardened(capabilities=capabilities),
        resources=requirements(_GUARANTEED if guaranteed else BURSTABLE),
        volume_mounts=[place.in_container() for place in places],
    )


def jwt_key(keys: Keys, mode: int = 0o400) -> list[Mount]:
    """Return the mount of the key that signs tokens, for root; none without the REST API."""
    if keys.jwt is None:
        return []
    return [mounts.secret_file("jwt-secret", keys.jwt, JWT_SECRET_DIR, layout.JWT_KEY, mode)]


def key_version(spec: ClusterSpec) -> dict[str, str]:
    """Return an annotation for pods that read the signing key, so that another key replaces the pods."""
    if spec.rest is None:
        return {}
    origin = "generated-" if spec.secrets.jwt_key is None else ""
    return {"soperator-pulumi/jwt-key-version": f"{origin}{spec.rest.key_version}"}


def merged_users() -> Mount:
    """Return the mount of the merged user files for a daemon's container."""
    return mounts.memory("extrausers", layout.USER_FILES, "16Mi", read_only=True)


def users_sidecar(
    spec: ClusterSpec, jail: pulumi.Input[str], *, writes_tree: bool = False
) -> tuple[ContainerArgs, list[Mount]]:
    """Return the sidecar that merges the spec's users with those added in the jail, and its mounts.

    Args:
        spec: The cluster.
        jail: Name of the jail's claim.
        writes_tree: Writes the spec's users into the files of the active tree as well, for programs of the jail. One
            pod of the cluster does.
    """
    images = spec.images
    own = [
        mounts.claim("jail", jail, layout.JAIL_DIR, read_only=not writes_tree),
        mounts.config_files(USERS_CONFIG_MAP, layout.DECLARED_USERS),
        mounts.memory("extrausers", layout.USER_FILES, "16Mi"),
    ]
    container = ContainerArgs(
        name="users",
        image=images.jail_tools,
        image_pull_policy=images.pull_policy,
        restart_policy="Always",
        command=[
            *(*layout.JAIL_TOOLS, "users", "--jail", layout.JAIL_DIR),
            *("--declared", layout.DECLARED_USERS, "--out", layout.USER_FILES),
            *(["--write-tree"] if writes_tree else []),
        ],
        security_context=hardened(capabilities=_WRITE_USERS if writes_tree else _READ_USERS),
        resources=requirements(BURSTABLE),
        startup_probe=asks(layout.JAIL_TOOLS[0], "-I", "-c", _ARE_MERGED, period=1, failures=60),
        volume_mounts=[mount.in_container() for mount in own],
    )
    return container, own
