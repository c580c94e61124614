"""Names, ports and paths that files, pods and images share, and the form of rendered files."""

from soperator_pulumi.spec.types import absolute_path

CONTROLLER_HOST = "controller-0"
"""Host name of slurmctld's pod."""

SLURMCTLD_PORT = 6817
SLURMD_PORT = 6818
ANSWERS_PORT = 6816
"""Port of a pod that is open while its Slurm daemon answers, so that the kubelet's probe starts no program."""

ACCOUNTING_HOST = "accounting-0"
"""Host name of slurmdbd's pod."""

SLURMDBD_PORT = 6819

SLURM_OF_SPEC = "SLURM_OF_SPEC"
"""Variable with `slurm.version`, in containers of daemons that convert their stored state."""

ACCOUNTING_CLUSTER_ID = "accounting-cluster-id"
"""File with the confirmed id of the cluster in the accounting database, for slurmctld's start; next to slurm.conf."""

SLURMDBD_DIR = "/run/slurmdbd"
"""Directory in memory of slurmdbd's container, with slurmdbd's files in the required mode."""

JWT_KEY = "jwt.key"
"""File name of the key that signs tokens, in the directories of daemons that check them."""

REST_PORT = 6820
REST_UID = 64033
"""uid and gid of slurmrestd in its image. slurmrestd refuses to run as root or SlurmUser."""

REST_SOCKET = "/run/rest/slurmrestd.sock"
"""Socket of slurmrestd, in memory that only the proxy shares."""

REST_CONF_DIR = "/etc/rest"
REST_TLS_DIR = "/etc/rest-tls"
REST_HEALTH_PORT = 6821
"""Port of the proxy for probes only, so that no flood of clients can block the kubelet."""

REST_HEALTH_PATH = "/healthz"
REST_THREADS = 20
"""Threads of slurmrestd, the default of slurmrestd(8), and so the requests that it answers at the same time."""

METRICS_PORT = 9341
METRICS_PATH = "/metrics"
ACCOUNT_DIR = "/run/kubernetes"
"""Directory of the service account's token in the exporter's container."""

EXPORTER_UID = 64035
"""uid and gid of the metrics exporter in its image: a user without rights in Slurm."""

DATABASE_HOST = "database"
"""Service of the cluster's own MariaDB."""

OPERATOR_DATABASE_HOST = "accounting-database"
"""MariaDB of mariadb-operator. It names its objects differently from the cluster's own MariaDB."""

DATABASE_PORT = 3306

DATABASE_AUTHORITY = "/etc/database-authority/ca.crt"
"""Certificate of an external database's authority, in slurmdbd's container."""

DATABASE_NAME = "slurm_acct_db"
DATABASE_USER = "slurm"

MYSQL_UID = 64032
"""uid and gid of mysql in the image of the database."""

DATABASE_CLAIM = "database"
DATABASE_DIR = "/var/lib/mysql"
"""Mount point of the database's volume."""

DUMP_COMPONENT = "accounting-dump"
"""CronJob of database dumps, and component of its pods."""

DUMP_CONTAINER = "dump"
DUMPS_CLAIM = "accounting-dumps"
DUMPS_DIR = "/var/lib/dumps"
"""Mount point of the volume with the dumps."""

SRUN_PORTS = (60001, 63000)
"""First and last port of srun on login and worker nodes, for the output of tasks. A NetworkPolicy opens this range. One
srun uses a few ports, so a login node can run several hundred."""

MANAGED_BY = {"app.kubernetes.io/managed-by": "pulumi"}
"""Label of the objects that this package creates. pulumi-kubernetes sets it itself only if it does not apply objects on
the server: `Check` in https://github.com/pulumi/pulumi-kubernetes/blob/master/provider/pkg/provider/provider.go."""

LOGIN_PODS = {"app.kubernetes.io/name": "sshd"}
"""Label of the pods of all login nodes, in every pool."""

SSH_PORT = 2222
"""Port of sshd, above 1023, so that it needs no capability."""

STATE_DIR = "/var/spool/slurmctld"
STATE_IN_USE = "state-in-use"
"""ConfigMap that tells, below the key of the same name, on which claim slurmctld has run."""

STATE_LOSS_ACCEPTED = "STATE_LOSS_ACCEPTED"
"""Variable of slurmctld's container with the reason for which an empty state is accepted."""

SPOOL_DIR = absolute_path.SPOOL
RUN_DIR = "/run/slurm"

MUNGE_OF_JOBS = "/run/munge/jobs"
"""Directory of a worker with the socket of the munged for jobs, which is /run/munge in their view."""

MUNGE_OF_JOBS_PID = "/run/munge-key/jobs.pid"
"""File with the process number of the munged for jobs, in the container of munged."""

SSH_HOST_KEY = "/etc/ssh-host/ssh_host_ed25519_key"
SSH_KEYS_DIR = "/etc/ssh-keys"

SLURM_UID = 64030
"""uid and gid of slurm in all images, as in Debian."""

HOMES_DIR = absolute_path.HOMES
SHARED_MEMORY_DIR = absolute_path.SHARED_MEMORY
TEMPORARY_DIR = absolute_path.TEMPORARY

JAIL_DIR = "/jail"
"""Mount point of the jail's volume in worker and login containers."""

ACTIVE_TREE = f"{JAIL_DIR}/active"
"""Link to the tree that new jobs enter, on the jail's volume."""

HOMES_IN_JAIL = "home"
"""Directory of the jail's volume with the homes."""

TREES_IN_JAIL = "trees"
"""Directory of the jail's volume with the trees."""

IMAGES_IN_JAIL = "container-images"
"""Directory of the jail's volume with shared container images."""

PUBLISHED_IMAGES = "/var/lib/soperator/images"
"""Directory of shared container images in worker containers, in the jail, and in the pod that fills it
(`spank-plugin/container_view.h`, `images/containers/container_images/published_images.py`)."""

LOCAL_IMAGES = "/var/lib/soperator/local-images"
"""Directory of copies of container images on a machine's disk, in worker containers and in the jail
(`spank-plugin/container_view.h`, `images/containers/container_images/local_copies.py`)."""

PUBLISH_IMAGES = "/usr/lib/soperator/containers/publish-images"
"""Program that fills the directory of shared images, in the worker's image."""

DOCKER_CONFIG_KEY = ".dockerconfigjson"
"""Key of a Secret of the type kubernetes.io/dockerconfigjson."""

LIST_IMAGES = "/usr/lib/soperator/containers/list-images"
"""Program that lists shared images and users' stores, in the worker's image."""

JAIL_VIEWS = "/run/jail"
"""Directory of a login container with the views of trees."""

ACTIVE_VIEW = f"{JAIL_VIEWS}/active"
"""View of new sessions."""

CLIENT_DIR = "/opt/slurm"
"""Slurm's client programs and their libraries, in images and in the jail."""

SPANK_PLUGIN = f"{CLIENT_DIR}/lib/slurm/spank_jail.so"
"""SPANK plugin that moves a job into the jail."""

OPEN_AS_USER = f"{CLIENT_DIR}/lib/open_as_user.so"
"""Library with which slurmd opens users' files as the user, and accepts only a step's own tasks (LD_PRELOAD)."""

JAIL_BINDS = f"{RUN_DIR}/jail-binds"
"""Mounts of a worker's pod for the jail, one plugin argument per line, written by the pod."""

JAIL_OWN = f"{RUN_DIR}/jail-own"
"""List of a worker pod's own directories, from which a user's files are removed after the user's last job."""

NODE_GRES = f"{RUN_DIR}/gres.conf"
"""Generic resources of one node. Its pod writes the file from the devices that it has, and gres.conf includes it."""

JOB_FILES = f"{RUN_DIR}/job-files"
"""Directory of a worker that every job on it sees at the same path, read-only."""

HEALTH_CHECK = "/usr/lib/soperator/health/health-check"
"""Program of the quick checks, in the worker's image."""

HEALTH_SETTINGS = "/etc/soperator/health"
"""Directory of a worker's container with the settings of the quick checks."""

HOOKS_FILE = "job_hooks.json"
"""File with the hooks' settings, among those of node sets, whose names cannot have an underscore."""

CONTAINERS_FILE = "job_containers.json"
"""File of the settings of containers in jobs, in the same directory."""

JOB_PROLOG = "/usr/lib/soperator/health/job-prolog"
JOB_EPILOG = "/usr/lib/soperator/health/job-epilog"
"""Programs that run the hooks of jobs, in the worker's image."""

GPU_JOBS = "/var/lib/soperator/gpu-jobs"
"""Directory of a worker's container with the machine's files that name the job of every GPU."""

IMAGE_SCRIPTS = "/usr/lib/soperator"
"""Folder of the scripts that start slurmctld, slurmdbd and a worker, in their images."""

LONG_CHECK = "/usr/lib/soperator/health/long-check"
"""Program of the long checks, in the worker's image."""

LONG_CHECK_SETTINGS = "/etc/soperator/long-checks"
"""Directory of a long check's container with the settings of the long checks."""

LONG_CHECK_REPORTS = "/run/long-checks"
"""Directory of the exporter's container with the reports of the long checks."""

NOT_VERIFIED = "health: not verified"
"""Reason of the drain of a new node until long checks have passed (`images/wire/slurm_wire/drain_reasons.py`)."""

HEALTH_USER = "soperator-health"
HEALTH_UID = 64034
"""uid and gid of the user who runs the jobs of long checks, without any rights."""

HEALTH_FOLDER = f"{HOMES_DIR}/{HEALTH_USER}"
"""Directory with the reports of the long checks and the output of their jobs."""

DRIVER = f"{RUN_DIR}/driver"
"""Tree of the GPU driver for jobs' views, made when the worker's container starts."""

JAIL_LOGIN = f"{CLIENT_DIR}/sbin/jail-login"
"""Program that makes the view of a tree for sshd."""

LOGIN_FAREWELL = "/usr/lib/soperator/farewell.py"
"""preStop hook of sshd's container."""

WELCOME = "/etc/profile.d/soperator.sh"
"""Message of the day, in the image of the login nodes and in their sessions."""

USER_FILES = "/var/lib/extrausers"
"""User database of libnss-extrausers: passwd, group and shadow."""

DECLARED_USERS = "/etc/users"
"""Users of the spec in the container that merges users."""

JAIL_TOOLS_DIR = "/.jail-tools"
"""Python interpreter of jail_tools, installed in the image from which the jail is filled."""

JAIL_TOOLS = (f"{JAIL_TOOLS_DIR}/bin/python3", "-I", "-m", "jail_tools")
"""Command whose subcommands fill and switch trees, merge users and run the admin shell."""

JAIL_BEING_FILLED = "/.jail"
"""Mount point of the jail's volume in the container that fills a tree: a path that no image has."""

JAIL_FILLED = "jail-filled"
"""ConfigMap that tells, below the key of the same name, which tree was filled last, on which claim, and when."""

JAIL_FILLED_BEFORE = "JAIL_FILLED_BEFORE"
"""The same text for the program that fills a tree, as an environment variable."""

ADMIN_TREE = "/.tree"
"""Mount point of the whole active tree in the admin shell."""


HEADER = "# Rendered by soperator-pulumi from the cluster's spec: a change by hand is undone by the next deployment."
"""First line of every rendered file with comments. It has no time, as the same spec must give the same file."""


def lines(*texts: str) -> str:
    """Return a file with these lines."""
    return "\n".join(texts) + "\n"
