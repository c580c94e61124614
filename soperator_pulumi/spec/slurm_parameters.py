"""Parameters of slurm.conf in Slurm 24.11 and 26.05, and those that a spec may not set.

The table has the parameters that slurm.conf(5) of 24.11.5 or 26.05.3 documents and its parser accepts
(`slurm_conf_options` and `_parse_partitionname` in src/common/read_config.c), with the parser's types. Slurm ignores
the case of names; the spelling is Slurm's.
"""

from collections.abc import Iterator, Mapping
from enum import Enum

from soperator_pulumi.errors import Problem


class Kind(Enum):
    """Types of values that Slurm's parser accepts."""

    NUMBER = "a whole number without a unit, or UNLIMITED"
    BOOLEAN = "YES or NO"
    TIME = "minutes, hours:minutes:seconds, days-hours or UNLIMITED, such as 90, 12:00:00 or 2-00"
    TEXT = "text"


def _table(numbers: str, booleans: str, texts: str, times: str = "") -> dict[str, Kind]:
    groups = ((Kind.NUMBER, numbers), (Kind.BOOLEAN, booleans), (Kind.TEXT, texts), (Kind.TIME, times))
    return {name: kind for kind, names in groups for name in names.split()}


_SINCE_26_05 = _table(
    numbers="EpilogTimeout HealthCheckTimeout PrologTimeout",
    booleans="",
    texts="""
    CertgenParameters CertgenType CliFilterParameters HttpParserType JobCompPassScript LicenseParameters
    MetricsAuthUsers MetricsParameters MetricsType NamespaceType PowerAction SlurmctldHttpAuthParameters
    SlurmdHttpAuthParameters UrlParserType
    """,
)

_UNTIL_24_11 = _table(numbers="", booleans="", texts="FrontendName JobContainerType")
"""JobContainerType became NamespaceType. 26.05 accepts the old name with a warning."""

_PARTITION_OPTIONS_SINCE_26_05 = _table(numbers="", booleans="", texts="Exclusive Topology")

PARAMETERS = _table(
    numbers="""
    AccountingStoragePort AcctGatherNodeFreq BatchStartTimeout CompleteWait DefCpuPerGPU DefMemPerCPU DefMemPerGPU
    DefMemPerNode EioTimeout EpilogMsgTime FairShareDampeningFactor FirstJobId GetEnvTimeout GroupUpdateForce
    GroupUpdateTime HealthCheckInterval InactiveLimit JobCompPort JobFileAppend JobRequeue KeepAliveTime
    KillOnBadExit KillWait MaxArraySize MaxBatchRequeue MaxDBDMsgs MaxJobCount MaxJobId MaxMemPerCPU MaxMemPerNode
    MaxNodeCount MaxStepCount MaxTasksPerNode MessageTimeout MinJobAge OverTimeLimit PriorityWeightAge
    PriorityWeightAssoc PriorityWeightFairshare PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS
    PrologEpilogTimeout PropagatePrioProcess ResumeRate ResumeTimeout ResvOverRun ReturnToService
    SchedulerTimeSlice SlurmSchedLogLevel SlurmctldTimeout SlurmdPort SlurmdTimeout SuspendRate SuspendTimeout
    TCPTimeout TreeWidth UnkillableStepTimeout VSizeFactor WaitTime
    """,
    booleans="AllowSpecResourcesUsage DisableRootJobs PriorityFavorSmall TrackWCKey UsePAM",
    texts="""
    AccountingStorageBackupHost AccountingStorageEnforce AccountingStorageExternalHost AccountingStorageHost
    AccountingStorageParameters AccountingStoragePass AccountingStorageTRES AccountingStorageType
    AccountingStorageUser AccountingStoreFlags AcctGatherEnergyType AcctGatherFilesystemType
    AcctGatherInterconnectType AcctGatherProfileType AuthAltParameters AuthAltTypes AuthInfo AuthType BackupAddr
    BackupController BcastExclude BcastParameters BurstBufferType CliFilterPlugins ClusterName
    CommunicationParameters ControlAddr ControlMachine CpuFreqDef CpuFreqGovernors CredType DataParserParameters
    DebugFlags DependencyParameters DownNodes EnforcePartLimits Epilog EpilogSlurmctld FederationParameters
    GpuFreqDef GresTypes HashPlugin HealthCheckNodeState HealthCheckProgram Include
    InteractiveStepOptions JobAcctGatherFrequency JobAcctGatherParams JobAcctGatherType JobCompHost JobCompLoc
    JobCompParams JobCompPass JobCompType JobCompUser JobSubmitPlugins LaunchParameters Licenses
    LogTimeFormat MCSParameters MCSPlugin MailDomain MailProg MpiDefault MpiParams NodeFeaturesPlugins NodeName
    NodeSet PartitionName PlugStackConfig PluginDir PrEpParameters PrEpPlugins PreemptExemptTime PreemptMode
    PreemptParameters PreemptType PriorityCalcPeriod PriorityDecayHalfLife PriorityFlags PriorityMaxAge
    PriorityParameters PrioritySiteFactorParameters PrioritySiteFactorPlugin PriorityType
    PriorityUsageResetPeriod PriorityWeightTRES PrivateData ProctrackType Prolog PrologFlags PrologSlurmctld
    PropagateResourceLimits PropagateResourceLimitsExcept RebootProgram ReconfigFlags RequeueExit RequeueExitHold
    ResumeFailProgram ResumeProgram ResvEpilog ResvProlog SchedulerParameters SchedulerType ScronParameters
    SelectType SelectTypeParameters SlurmSchedLogFile SlurmUser SlurmctldAddr SlurmctldDebug SlurmctldHost
    SlurmctldLogFile SlurmctldParameters SlurmctldPidFile SlurmctldPort SlurmctldPrimaryOffProg
    SlurmctldPrimaryOnProg SlurmctldSyslogDebug SlurmdDebug SlurmdLogFile SlurmdParameters SlurmdPidFile
    SlurmdSpoolDir SlurmdSyslogDebug SlurmdUser SrunEpilog SrunPortRange SrunProlog StateSaveLocation
    SuspendExcNodes SuspendExcParts SuspendExcStates SuspendProgram SuspendTime SwitchParameters SwitchType
    TaskEpilog TaskPlugin TaskPluginParam TaskProlog TmpFS TopologyParam TopologyPlugin UnkillableStepProgram
    X11Parameters
    """,
) | (_SINCE_26_05 | _UNTIL_24_11)
"""Parameters of slurm.conf in either version, with their kinds."""

PARTITION_OPTIONS = (
    _table(
        numbers="""
    DefCpuPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode GraceTime MaxCPUsPerNode MaxCPUsPerSocket MaxMemPerCPU
    MaxMemPerNode MaxNodes MinNodes PriorityJobFactor PriorityTier ResumeTimeout SuspendTimeout
    """,
        booleans="Default DisableRootJobs ExclusiveTopo ExclusiveUser Hidden LLN PowerDownOnIdle ReqResv RootOnly",
        texts="""
    AllocNodes AllowAccounts AllowGroups AllowQos Alternate CpuBind DenyAccounts DenyQos Nodes
    OverSubscribe OverTimeLimit PartitionName PreemptMode QOS SelectTypeParameters Shared State SuspendTime
    TRESBillingWeights
    """,
        times="DefaultTime MaxTime",
    )
    | _PARTITION_OPTIONS_SINCE_26_05
)
"""Options of a PartitionName line in either version, with their kinds."""

VERSIONS = ("24.11", "26.05")
"""Versions of Slurm, starting with the oldest."""

API_VERSIONS: Mapping[str, tuple[str, ...]] = {
    "24.11": ("v0.0.40", "v0.0.41", "v0.0.42"),
    "26.05": ("v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"),
}
"""Versions of the API that slurmrestd answers, by Slurm version (measured)."""

_ONLY_IN = {
    **dict.fromkeys((*_SINCE_26_05, *_PARTITION_OPTIONS_SINCE_26_05), "26.05"),
    **dict.fromkeys(_UNTIL_24_11, "24.11"),
}
"""Version of the names that only one version has."""


def newer_names(settings: Mapping[str, object], version: str) -> list[str]:
    """Return the names that a version has and older versions do not."""
    return [name for name in settings if _ONLY_IN.get(name) == version] if version != VERSIONS[0] else []


def version_problems(settings: Mapping[str, object], version: str, path: str) -> Iterator[Problem]:
    """Yield settings that only another version has."""
    for name in settings:
        only = _ONLY_IN.get(name, version)
        if only != version:
            text = f'Slurm {version} has no such setting, but {only} has. Remove it, or set slurm.version to "{only}".'
            yield Problem(f"{path}.{name}", text)


def _reasons(names_by_reason: dict[str, str]) -> dict[str, str]:
    return {name.lower(): reason for reason, names in names_by_reason.items() for name in names.split()}


_POWER = "is not supported yet: nodes on demand need pods that Slurm starts and stops"

_X11 = "is not supported: for X11 forwarding slurmd runs xauth as the user outside the jail"

OWNED_PARAMETERS = _reasons(
    {
        'is managed: set the cluster\'s "name"': "ClusterName",
        "is managed: set health, and your own check as health.program": """
        HealthCheckInterval HealthCheckNodeState HealthCheckProgram
        """,
        "is managed: set slurm.max_nodes": "MaxNodeCount",
        "is managed: it is rendered from node_sets and partitions": """
        DownNodes FrontendName NodeName NodeSet PartitionName
        """,
        "is managed: the pods, their volumes and Services are laid out for it": """
        BackupAddr BackupController ControlAddr ControlMachine PluginDir SlurmUser SlurmctldAddr SlurmctldHost
        SlurmctldPidFile SlurmctldPort SlurmdPidFile SlurmdPort SlurmdSpoolDir SlurmdUser SrunPortRange
        StateSaveLocation TmpFS
        """,
        "is managed: daemons log to their pod's output, where `kubectl logs` finds it": """
        SlurmSchedLogFile SlurmSchedLogLevel SlurmctldLogFile SlurmdLogFile
        """,
        "is managed: nodes get only the files in slurm.conf's folder": "Include",
        "is managed: set slurm.constrain": "JobAcctGatherType ProctrackType TaskPlugin",
        "is managed: select/cons_tres, the only one that supports dynamic nodes": "SelectType",
        (
            "is managed and must not be set: nodes that get their files from the controller would then silently ignore "
            "plugstack.conf and run jobs outside the jail (measured)"
        ): "PlugStackConfig",
        (
            "must not be set: slurmd runs it as the user outside the jail, on the node's own root. Epilog runs as root"
        ): "TaskEpilog",
        (
            "must not be set: slurmstepd starts itself in the jail to run it, where its libraries are not, and every "
            "task ends with TaskProlog failed status=127 (measured). For variables, set node_sets[].environment"
        ): "TaskProlog",
        _X11: "X11Parameters",
        "is managed: the daemons authenticate with the munge key; set secrets.munge_key for your own": """
        AuthAltParameters AuthAltTypes AuthInfo AuthType CredType
        """,
        "is managed: jobs never run as root": "DisableRootJobs",
        "is managed: set accounting": """
        AccountingStorageBackupHost AccountingStorageExternalHost AccountingStorageHost AccountingStorageParameters
        AccountingStoragePort AccountingStorageType AccountingStorageUser
        """,
        "is managed: set accounting.enforce": "AccountingStorageEnforce",
        "is managed: set accounting.store": "AccountingStoreFlags",
        "is managed: it is rendered from node_sets[].gpus": "AccountingStorageTRES",
        "must not be set: everyone can read slurm.conf, so it must not hold secrets": """
        AccountingStoragePass JobCompPass JobCompPassScript
        """,
        "is managed: set node_sets[].gpus": "GresTypes",
        "is not supported yet: it needs its own file next to slurm.conf": """
        BurstBufferType NodeFeaturesPlugins TopologyPlugin
        """,
        (
            "is not supported yet: it needs its own file next to slurm.conf, and job_container/tmpfs of 24.11.5 "
            "ended in a container with ns base mount failed: Invalid argument (measured)"
        ): "JobContainerType",
        (
            "is not supported yet: it needs its own file next to slurm.conf, and no namespace plugin of 26.05 has "
            "been tried in a container"
        ): "NamespaceType",
        _POWER: """
        PowerAction ResumeFailProgram ResumeProgram ResumeRate ResumeTimeout SuspendExcNodes SuspendExcParts
        SuspendExcStates SuspendProgram SuspendRate SuspendTime SuspendTimeout
        """,
        "must not be set: a pod cannot reboot; delete it instead": "RebootProgram",
    }
)
"""Parameters that `slurm.extra` may not set, in lower case, with the reason."""

CONNECTIONS = 128
"""Most connections to slurmctld. The image ends the oldest one when there are more
(images/bounds/bounded_connections.c). slurmctld examines all of them for every new one: while a user opens 2,000 a
second, others wait for a second at most, and with 512 for more than 12 s (24.11, measured on two busy processors)."""

FORBIDDEN_ENTRIES = {
    "launchparameters": {
        "disable_send_gids": "nodes do not know users that were added inside the jail, and would refuse their jobs"
    },
    "prologflags": {"x11": _X11},
    "schedulerparameters": {
        "max_script_size": "is managed: set slurm.max_script_kib",
        "max_submit_line_size": "is managed: set slurm.max_arguments_kib",
    },
}
"""Entries that a list in `slurm.extra` may not have, in lower case, with the reason."""

_ACCEPTS_ALL = (
    f"with more than {CONNECTIONS} connections, the controller ends the oldest ones. If slurmctld stops accepting "
    "before that, one user's idle connections keep everyone else out"
)

SMALLEST_ENTRIES = {"slurmctldparameters": {"conmgr_max_connections": (CONNECTIONS + 1, _ACCEPTS_ALL)}}
"""Smallest numbers of entries of a list in `slurm.extra`, in lower case, with the reason."""

OWNED_PARTITION_OPTIONS = _reasons(
    {
        "is managed: set the partition's name": "PartitionName",
        "is managed: name the partition in node_sets[].partitions": "Nodes",
        "is managed: set the partition's default": "Default",
        "is managed: jobs never run as root": "DisableRootJobs",
        "is the old name of OverSubscribe: use that": "Shared",
        "is not supported yet: it names a topology in a separate file": "Topology",
        _POWER: "PowerDownOnIdle ResumeTimeout SuspendTime SuspendTimeout",
    }
)
"""Options that a partition's `options` may not set, in lower case, with the reason."""
