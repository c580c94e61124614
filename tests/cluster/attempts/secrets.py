"""Attempts on keys, and on the files of others and of the cluster."""

import errno
import os
import socket
from pathlib import Path

from . import attempt, first_writable, names, write


def _read_any(*paths: str) -> str:
    refusal: OSError = FileNotFoundError(errno.ENOENT, paths[0])
    for path in paths:
        try:
            return f"{path}: {Path(path).read_bytes()[:8]!r}"
        except OSError as error:
            refusal = error
    raise refusal


@attempt
def read_the_munge_key() -> object:
    return _read_any("/etc/munge-secret/munge.key", "/run/munge-key/munge.key", "/etc/munge/munge.key")


@attempt
def replace_the_munge_socket() -> object:
    Path("/run/munge/munge.socket.2").unlink()
    return "removed"


@attempt
def reach_the_munge_socket() -> object:
    """Only for those who have no business with Slurm."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect("/run/munge/munge.socket.2")
    return "connected"


@attempt
def read_the_host_key() -> object:
    return _read_any("/etc/ssh-host/ssh_host_ed25519_key", "/etc/ssh/ssh_host_ed25519_key")


@attempt
def read_the_service_account_token() -> object:
    folder = "secrets/kubernetes.io/serviceaccount/token"
    return _read_any(f"/run/{folder}", f"/var/run/{folder}")


@attempt
def read_other_trees_of_the_claim() -> object:
    return [names(path) for path in ("/jail/trees", "/jail/meta", "/.jail/trees", "/.tree/../meta")]


@attempt
def read_the_passwords_of_the_jail() -> object:
    return Path("/etc/shadow").read_text()


@attempt
def add_a_user_to_the_jail() -> object:
    return write("/etc/passwd", "x")


@attempt
def change_a_program_of_the_jail() -> object:
    return write("/usr/bin/env", "x")


@attempt
def change_the_driver_of_gpus() -> object:
    return write("/usr/local/nvidia/lib64/libcuda.so.1", "x")


@attempt
def change_where_libraries_are_found() -> object:
    return write("/etc/ld.so.cache", "x")


@attempt
def change_the_clients_of_slurm() -> object:
    return write("/opt/slurm/bin/srun", "x")


@attempt
def change_the_names_of_hosts() -> object:
    return write("/etc/hosts", "127.0.0.1 controller-0")


@attempt
def change_slurms_configuration() -> object:
    return first_writable("var/spool/slurmd/conf-cache/*", "x")


@attempt
def read_the_spool_of_another_job() -> object:
    own = f"job{int(os.environ.get('SLURM_JOB_ID', '0')):05}"
    folders = [name for name in names("/var/spool/slurmd") if name.startswith("job") and name != own]
    if not folders:
        raise FileNotFoundError(errno.ENOENT, "no other job's spool is there")
    return folders


@attempt
def talk_to_the_socket_of_a_step() -> object:
    sockets = [path for path in Path("/var/spool/slurmd").rglob("*") if path.is_socket()]
    if not sockets:
        raise FileNotFoundError(errno.ENOENT, "no socket of a step is there")
    return sockets
