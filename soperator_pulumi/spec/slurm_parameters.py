"""The parameters of slurm.conf that Slurm 24.11 knows, and which of them are ours to set.

A parameter is listed when slurm.conf(5) of 24.11.5 documents it and the parser of that version takes it
(`slurm_conf_options` and `_parse_partitionname` in src/common/read_config.c, whose types these are). Slurm
compares names without regard to case; this is its spelling.
"""

from enum import Enum


class Kind(Enum):
    """What Slurm's parser takes as a value."""

    NUMBER = "a whole number, or UNLIMITED"
    BOOLEAN = "YES or NO"
    TEXT = "text"


def _table(numbers: str, booleans: str, texts: str) -> dict[str, Kind]:
    groups = ((Kind.NUMBER, numbers), (Kind.BOOLEAN, booleans), (Kind.TEXT, texts))
    return {name: kind for kind, names in groups for name in names.split()}


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
    FrontendName GpuFreqDef GresTypes HashPlugin HealthCheckNodeState HealthCheckProgram Include
    InteractiveStepOptions JobAcctGatherFrequency JobAcctGatherParams JobAcctGatherType JobCompHost JobCompLoc
    JobCompParams JobCompPass JobCompType JobCompUser JobContainerType JobSubmitPlugins LaunchParameters Licenses
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
)
"""Parameters of slurm.conf and what they take."""

PARTITION_OPTIONS = _table(
    numbers="""
    DefCpuPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode GraceTime MaxCPUsPerNode MaxCPUsPerSocket MaxMemPerCPU
    MaxMemPerNode MaxNodes MinNodes PriorityJobFactor PriorityTier ResumeTimeout SuspendTimeout
    """,
    booleans="Default DisableRootJobs ExclusiveTopo ExclusiveUser Hidden LLN PowerDownOnIdle ReqResv RootOnly",
    texts="""
    AllocNodes AllowAccounts AllowGroups AllowQos Alternate CpuBind DefaultTime DenyAccounts DenyQos MaxTime Nodes
    OverSubscribe OverTimeLimit PartitionName PreemptMode QOS SelectTypeParameters Shared State SuspendTime
    TRESBillingWeights
    """,
)
"""Options of a PartitionName line and what they take."""


def _reasons(*groups: tuple[str, str]) -> dict[str, str]:
    return {name.lower(): reason for names, reason in groups for name in names.split()}


_LAYOUT = "is ours: the pods, their volumes and Services are laid out for it"
_NODES = "is ours: it is rendered from node_sets and partitions"
_POWER = "is not supported yet: nodes on demand come with pods that Slurm starts and stops"

OWNED_PARAMETERS = _reasons(
    ("ClusterName", 'is ours: set the cluster\'s "name"'),
    ("MaxNodeCount", "is ours: set slurm.max_nodes"),
    ("NodeName NodeSet PartitionName DownNodes FrontendName", _NODES),
    (
        "SlurmctldHost SlurmctldAddr SlurmctldPort SlurmdPort ControlMachine ControlAddr BackupController BackupAddr "
        "SlurmUser SlurmdUser StateSaveLocation SlurmdSpoolDir SlurmctldPidFile SlurmdPidFile PluginDir TmpFS",
        _LAYOUT,
    ),
    (
        "SlurmctldLogFile SlurmdLogFile SlurmSchedLogFile SlurmSchedLogLevel",
        "is ours: daemons log to their pod's output, where `kubectl logs` finds it",
    ),
    ("Include", "is ours: nodes get the files of slurm.conf's folder and no others"),
    ("ProctrackType TaskPlugin JobAcctGatherType", "is ours: set slurm.constrain"),
    ("SelectType", "is ours: select/cons_tres; another one cannot read the state of running jobs"),
    (
        "PlugStackConfig",
        "is ours and must not be set: nodes that get their files from the controller would then silently ignore "
        "plugstack.conf and run jobs outside the jail (measured)",
    ),
    (
        "AuthType AuthInfo AuthAltTypes AuthAltParameters CredType",
        "is ours: the daemons know each other by the munge key; set secrets.munge_key for one of your own",
    ),
    ("DisableRootJobs", "is ours: jobs never run as root"),
    (
        "AccountingStorageType AccountingStorageHost AccountingStorageBackupHost AccountingStorageExternalHost "
        "AccountingStoragePort AccountingStorageUser AccountingStorageParameters AccountingStorageEnforce",
        "is not supported yet: there is no accounting database",
    ),
    (
        "AccountingStoragePass JobCompPass",
        "must not be set: slurm.conf is readable for everybody, so it can hold no secret",
    ),
    ("GresTypes", "is not supported yet: there are no GPUs in node_sets"),
    (
        "TopologyPlugin JobContainerType BurstBufferType NodeFeaturesPlugins",
        "is not supported yet: it needs a file of its own beside slurm.conf",
    ),
    (
        "SuspendProgram ResumeProgram ResumeFailProgram SuspendTime SuspendTimeout ResumeTimeout SuspendRate "
        "ResumeRate SuspendExcNodes SuspendExcParts SuspendExcStates",
        _POWER,
    ),
    ("RebootProgram", "must not be set: a pod cannot reboot; delete it instead"),
)
"""Parameters that `slurm.extra` must not set, in lower case, and why."""

OWNED_PARTITION_OPTIONS = _reasons(
    ("PartitionName", "is ours: set the partition's name"),
    ("Nodes", "is ours: name the partition in node_sets[].partitions"),
    ("Default", "is ours: set the partition's default"),
    ("DisableRootJobs", "is ours: jobs never run as root"),
    ("Shared", "is the old name of OverSubscribe: use that"),
    ("PowerDownOnIdle ResumeTimeout SuspendTime SuspendTimeout", _POWER),
)
"""Options that a partition's `options` must not set, in lower case, and why."""
