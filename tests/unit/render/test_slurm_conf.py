"""slurm.conf says what the spec says."""

import copy
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.render.change_impact import changes, parse_conf
from soperator_pulumi.render.communication import client_slurm_conf, communication_lines
from soperator_pulumi.render.layout import SRUN_PORTS
from soperator_pulumi.render.slurm_conf import MPI, node_conf, slurm_conf
from soperator_pulumi.render.slurm_files import slurm_files
from soperator_pulumi.render.slurmdbd_conf import client_conf, slurmdbd_conf
from soperator_pulumi.spec.cluster import ClusterSpec, parse_cluster
from soperator_pulumi.spec.node_set import NodeSetSpec
from soperator_pulumi.spec.slurm import Constrain, SlurmSpec
from soperator_pulumi.spec.slurm_parameters import PARAMETERS, PARTITION_OPTIONS
from tests.strategies import Data, a_spec, cluster_data, cluster_specs

MERGED = {"SchedulerParameters", "SlurmctldParameters", "SlurmdParameters", "JobSubmitPlugins"}


@given(cluster_specs())
def test_what_is_read_back_is_the_spec(spec: ClusterSpec) -> None:
    conf = parse_conf(slurm_conf(spec))
    assert conf.parameters["ClusterName"] == spec.name
    assert conf.parameters["MaxNodeCount"] == str(spec.slurm.max_nodes)
    assert conf.rows("NodeSet") == {node_set.name: {"Feature": node_set.name} for node_set in spec.node_sets}
    assert list(conf.rows("PartitionName")) == [all_partition.name for all_partition in spec.all_partitions]
    for partition in spec.all_partitions:
        row = conf.rows("PartitionName")[partition.name]
        members = [node_set.name for node_set in spec.node_sets if partition.name in node_set.partitions]
        assert row["Nodes"].split(",") == members
        assert row["Default"] == ("YES" if partition.default else "NO")
        assert partition.options.items() <= row.items()
    for name, value in spec.slurm.extra.items():
        assert name in MERGED or conf.parameters[name] == value


@pytest.mark.parametrize(
    ("nodes", "width"), [(64, None), (4096, None), (4368, None), (4369, "17"), (16_384, "26"), (65_536, "40")]
)
def test_messages_reach_all_nodes_by_three_hops(nodes: int, width: str | None) -> None:
    conf = parse_conf(slurm_conf(a_spec(slurm={"max_nodes": nodes})))
    assert conf.parameters.get("TreeWidth") == width


def test_a_tree_width_of_the_spec_counts() -> None:
    conf = parse_conf(slurm_conf(a_spec(slurm={"max_nodes": 65_536, "extra": {"TreeWidth": 64}})))
    assert conf.parameters["TreeWidth"] == "64"


def test_partitions_and_features_have_the_names_that_sites_give_them() -> None:
    node_set = {"name": "gpu", "cpus": 4, "memory_gib": 8, "partitions": ["all", "1day"], "features": ["40gb"]}
    spec = a_spec(node_sets=[node_set])
    assert list(parse_conf(slurm_conf(spec)).rows("PartitionName")) == ["all", "1day"]
    assert node_conf(spec, spec.node_sets[0]).startswith("Feature=gpu,40gb ")


@pytest.mark.parametrize(
    "settings",
    [{"network": {"ipv6": True}}, {"slurm": {"extra": {"CommunicationParameters": "EnableIPv6"}}}],
    ids=["by the spec", "by slurm.extra"],
)
def test_ipv6_is_in_the_configuration_of_all_daemons_and_clients(settings: Data) -> None:
    spec = a_spec(**settings)
    assert spec.accounting is not None
    of_slurmdbd = slurmdbd_conf(spec.accounting, "hunter2", communication=communication_lines(spec))
    for text in (slurm_conf(spec), of_slurmdbd, client_conf(spec), client_slurm_conf(spec)):
        assert text.count("CommunicationParameters=EnableIPv6\n") == 1


def test_ipv6_is_added_to_the_users_own_parameters_of_communication() -> None:
    spec = a_spec(network={"ipv6": True}, slurm={"extra": {"CommunicationParameters": "NoAddrCache"}})
    assert parse_conf(slurm_conf(spec)).parameters["CommunicationParameters"] == "EnableIPv6,NoAddrCache"
    assert "CommunicationParameters" not in slurm_conf(a_spec())


@given(cluster_specs())
def test_every_key_is_one_that_slurm_knows(spec: ClusterSpec) -> None:
    conf = parse_conf(slurm_conf(spec))
    assert conf.parameters.keys() <= PARAMETERS.keys()
    for row in conf.rows("PartitionName").values():
        assert row.keys() <= PARTITION_OPTIONS.keys()


@given(cluster_specs())
def test_no_parameter_is_given_twice(spec: ClusterSpec) -> None:
    keys = [
        line.partition("=")[0].lower()
        for line in slurm_conf(spec).splitlines()
        if line and not line.startswith(("#", "NodeSet=", "PartitionName="))
    ]
    assert sorted(keys) == sorted(set(keys))


@given(cluster_specs())
def test_nodes_get_their_files_from_the_controller(spec: ClusterSpec) -> None:
    conf = parse_conf(slurm_conf(spec))
    assert "enable_configless" in conf.parameters["SlurmctldParameters"].split(",")
    assert "PlugStackConfig" not in conf.parameters
    assert set(slurm_files(spec)) == {"slurm.conf", "cgroup.conf", "gres.conf", "plugstack.conf", "job_submit.lua"}


@given(cluster_data(), st.integers(0, 60))
def test_scaling_changes_no_file(data: Data, replicas: int) -> None:
    scaled = copy.deepcopy(data)
    for node_set in scaled["node_sets"]:
        node_set["replicas"] = replicas
    assert slurm_files(parse_cluster(scaled)) == slurm_files(parse_cluster(data))


@given(cluster_specs())
def test_the_same_spec_gives_the_same_files(spec: ClusterSpec) -> None:
    assert slurm_files(spec) == slurm_files(parse_cluster(spec.model_dump()))


@given(cluster_specs())
def test_a_job_that_asks_for_no_memory_gets_its_share_on_every_node(spec: ClusterSpec) -> None:
    rows = parse_conf(slurm_conf(spec)).rows("PartitionName")
    for node_set in spec.node_sets:
        for name in node_set.partitions:
            if "DefMemPerNode" in rows[name]:
                assert "DefMemPerCPU" not in rows[name]
            else:
                share = int(rows[name]["DefMemPerCPU"])
                assert share * node_set.cpus <= max(node_set.scheduled_memory_mib, node_set.cpus)


@given(cluster_specs())
def test_a_job_with_all_gpus_of_a_node_fits_with_the_shares_of_each(spec: ClusterSpec) -> None:
    rows = parse_conf(slurm_conf(spec)).rows("PartitionName")
    for node_set in spec.node_sets:
        for row in (rows[name] for name in node_set.partitions if node_set.gpus):
            assert node_set.gpus
            assert int(row.get("DefCpuPerGPU", 0)) * node_set.gpus.total <= node_set.cpus
            assert int(row.get("DefMemPerGPU", 0)) * node_set.gpus.total <= node_set.scheduled_memory_mib


def test_nodes_with_more_gpus_than_cpus_give_none_of_these_to_a_gpu() -> None:
    """A share of 1 would leave no job all GPUs (measured), and one of 0 is none."""
    node_set = {"name": "gpu", "cpus": 2, "memory_gib": 1, "gpus": {"count": 4}}
    row = parse_conf(slurm_conf(a_spec(node_sets=[node_set]))).rows("PartitionName")["main"]
    assert "DefCpuPerGPU" not in row
    assert row["DefMemPerGPU"] == "240"


@pytest.mark.parametrize(("threads", "share"), [(1, "23"), (2, "22")])
def test_the_cpus_of_a_gpu_are_whole_cores_or_the_last_gpus_would_have_none(threads: int, share: str) -> None:
    """Slurm gives a job of 23 CPUs 12 cores, and 8 such jobs 96 of the 92 cores."""
    layout = {"sockets": 2, "cores_per_socket": 92 // threads, "threads_per_core": threads}
    node_set = {"name": "gpu", "cpus": 184, "memory_gib": 64, "gpus": {"count": 8}, **layout}
    row = parse_conf(slurm_conf(a_spec(node_sets=[node_set]))).rows("PartitionName")["main"]
    assert row["DefCpuPerGPU"] == share


def test_reserved_cores_are_registered_and_no_job_is_promised_their_cpus() -> None:
    layout = {"sockets": 2, "cores_per_socket": 46, "threads_per_core": 2}
    node_set = {"name": "gpu", "cpus": 184, "memory_gib": 64, "gpus": {"count": 8}, "reserved_cores": 8, **layout}
    spec = a_spec(node_sets=[node_set])
    row = parse_conf(slurm_conf(spec)).rows("PartitionName")["main"]
    (own,) = spec.node_sets
    assert " ThreadsPerCore=2 CoreSpecCount=8 RealMemory=" in node_conf(spec, own)
    assert row["DefCpuPerGPU"] == "20"
    assert row["DefMemPerCPU"] == str(own.scheduled_memory_mib // 168)


def test_a_setting_of_memory_in_a_partitions_options_replaces_all_shares_of_memory() -> None:
    node_set = {"name": "gpu", "cpus": 8, "memory_gib": 8, "gpus": {"count": 4}}
    options = {"DefMemPerGPU": 100}
    spec = a_spec(node_sets=[node_set], partitions=[{"name": "main", "options": options}])
    row = parse_conf(slurm_conf(spec)).rows("PartitionName")["main"]
    assert (row["DefCpuPerGPU"], row["DefMemPerGPU"]) == ("2", "100")
    assert "DefMemPerCPU" not in row


def _layout_of(node_set: NodeSetSpec) -> dict[str, str]:
    names = ("Sockets", "CoresPerSocket", "ThreadsPerCore")
    return dict(zip(names, map(str, node_set.layout), strict=True)) if node_set.layout else {}


@given(cluster_specs())
def test_nodes_register_with_their_set_as_first_feature_and_with_what_slurm_schedules(spec: ClusterSpec) -> None:
    for node_set in spec.node_sets:
        pairs = dict(pair.split("=") for pair in node_conf(spec, node_set).split(" "))
        assert pairs == {
            "Feature": ",".join([node_set.name, *node_set.features]),
            "CPUs": str(node_set.cpus),
            **_layout_of(node_set),
            "RealMemory": str(node_set.scheduled_memory_mib),
            **({"Gres": node_set.gpus.gres} if node_set.gpus else {}),
        }


@pytest.mark.parametrize("constrain", Constrain)
def test_tracking_binding_and_accounting_of_processes_go_together(constrain: Constrain) -> None:
    files = slurm_files(a_spec(slurm={"constrain": constrain}))
    parameters = parse_conf(files["slurm.conf"]).parameters
    plugins = [parameters[name] for name in ("ProctrackType", "TaskPlugin", "JobAcctGatherType")]
    by_cgroup = constrain is Constrain.CGROUP
    assert all(("cgroup" in plugin) is by_cgroup for plugin in plugins)
    assert ("CgroupPlugin=disabled" in files["cgroup.conf"]) is not by_cgroup


@pytest.mark.parametrize(
    ("requests", "overrides"),
    [
        (None, False),
        ({"cpu": 4, "memory": "8Gi"}, False),
        ({"cpu": 8, "memory": "16Gi"}, False),
        ({"cpu": "3900m", "memory": "8Gi"}, True),
        ({"cpu": 4, "memory": "8191Mi"}, True),
        ({}, True),
    ],
)
def test_slurm_believes_the_spec_over_the_machine_only_where_pods_ask_for_less(
    requests: Data | None, *, overrides: bool
) -> None:
    node_set: Data = {"name": "cpu", "cpus": 4, "memory_gib": 8}
    if requests is not None:
        node_set["pod_resources"] = {"requests": requests}
    parameters = parse_conf(slurm_conf(a_spec(node_sets=[node_set]))).parameters
    assert ("config_overrides" in parameters.get("SlurmdParameters", "")) is overrides


@pytest.mark.parametrize(("memory", "overrides"), [("8Gi", False), ("7Gi", True)])
def test_slurm_checks_machines_with_a_declared_layout_unless_their_pods_ask_for_less_memory(
    memory: str, *, overrides: bool
) -> None:
    node_set: Data = {
        "name": "cpu",
        "cpus": 8,
        "memory_gib": 8,
        "pod_resources": {"requests": {"cpu": 7, "memory": memory}},
    }
    node_set |= {"sockets": 1, "cores_per_socket": 4, "threads_per_core": 2}
    parameters = parse_conf(slurm_conf(a_spec(node_sets=[node_set]))).parameters
    assert ("config_overrides" in parameters.get("SlurmdParameters", "")) is overrides


@pytest.mark.parametrize("version", get_args(SlurmSpec.model_fields["version"].annotation))
def test_srun_starts_mpi_programs_as_one_unless_the_user_says_otherwise(version: str) -> None:
    for extra, plugin in ({}, MPI[version]), ({"MpiDefault": "none"}, "none"):
        slurm = {"version": version, "extra": extra}
        assert parse_conf(slurm_conf(a_spec(slurm=slurm))).parameters["MpiDefault"] == plugin
    assert MPI[version] in {"pmix", "pmi2"}


def test_the_users_entries_of_a_list_are_added_to_ours() -> None:
    extra = {"SlurmctldParameters": "cloud_dns,enable_configless"}
    parameters = parse_conf(slurm_conf(a_spec(slurm={"extra": extra}))).parameters
    entries = parameters["SlurmctldParameters"].split(",")
    assert (entries[0], entries[-1]) == ("enable_configless", "cloud_dns")
    assert entries.count("enable_configless") == 1


def test_the_users_number_of_connections_is_in_force_in_place_of_the_default() -> None:
    """slurmctld takes the last entry of a name."""
    extra = {"SlurmctldParameters": "conmgr_max_connections=512"}
    parameters = parse_conf(slurm_conf(a_spec(slurm={"extra": extra}))).parameters
    entries = parameters["SlurmctldParameters"].split(",")
    bounds = [entry for entry in entries if entry.startswith("conmgr_max_connections=")]
    assert bounds[-1] == "conmgr_max_connections=512"


def test_slurmctld_bounds_scripts_and_command_lines_next_to_the_users_entries_and_those_of_hooks() -> None:
    slurm = {"max_script_kib": 512, "max_arguments_kib": 64, "extra": {"SchedulerParameters": "bf_continue"}}
    hooks = {"prolog": {"mount": {"script": "true"}}}
    parameters = parse_conf(slurm_conf(a_spec(slurm=slurm, hooks=hooks))).parameters
    assert parameters["SchedulerParameters"].split(",") == [
        "nohold_on_prolog_fail",
        "max_script_size=524288",
        "max_submit_line_size=65536",
        "bf_continue",
    ]


@pytest.mark.parametrize(
    ("extra", "plugins"),
    [
        ({}, "lua"),
        ({"JobSubmitPlugins": "require_timelimit"}, "lua,require_timelimit"),
        ({"jobsubmitplugins": "throttle,lua"}, "lua,throttle"),
    ],
)
def test_submissions_are_checked_by_ours_and_by_the_users_plugins(extra: Data, plugins: str) -> None:
    parameters = parse_conf(slurm_conf(a_spec(slurm={"extra": extra}))).parameters
    assert parameters["JobSubmitPlugins"] == plugins


def test_root_runs_no_job() -> None:
    assert parse_conf(slurm_conf(a_spec())).parameters["DisableRootJobs"] == "YES"


def test_a_default_of_ours_is_replaced_not_repeated() -> None:
    text = slurm_conf(a_spec(slurm={"extra": {"slurmdtimeout": 300}}))
    assert text.count("SlurmdTimeout=") == 1
    assert "SlurmdTimeout=300\n" in text


def test_the_ports_of_srun_are_those_that_policies_open() -> None:
    assert parse_conf(slurm_conf(a_spec())).parameters["SrunPortRange"] == "{}-{}".format(*SRUN_PORTS)


def test_unkillable_step_timeout_is_at_least_five_times_the_message_timeout() -> None:
    parameters = parse_conf(slurm_conf(a_spec())).parameters
    assert int(parameters["UnkillableStepTimeout"]) >= 5 * int(parameters["MessageTimeout"])


def test_a_node_set_of_another_cluster_has_no_node_conf_here() -> None:
    stranger = a_spec(node_sets=[{"name": "other", "cpus": 1, "memory_gib": 1}]).node_sets[0]
    with pytest.raises(ValueError, match="other is not a node set of hpc"):
        node_conf(a_spec(), stranger)


@given(cluster_specs())
def test_files_end_with_a_line_and_say_where_they_come_from(spec: ClusterSpec) -> None:
    for text in slurm_files(spec).values():
        assert text.startswith(("# Rendered by soperator-pulumi", "-- Rendered by soperator-pulumi"))
        assert text.endswith("\n")
        assert all(character.isprintable() or character == "\n" for character in text)
    assert changes(slurm_files(spec), slurm_files(spec)) == ()


@pytest.mark.parametrize(("gib", "scheduled"), [(0.125, 96), (0.5, 448), (8, 7936), (120, 121856)])
def test_slurm_schedules_less_than_a_pod_has_so_that_slurmd_has_room(gib: float, scheduled: int) -> None:
    """64 MiB, a 32nd from 2 GiB on, at most 1 GiB, and no more than a quarter."""
    spec = a_spec(node_sets=[{"name": "cpu", "cpus": 2, "memory_gib": gib}])

    assert f"RealMemory={scheduled}" in node_conf(spec, spec.node_sets[0])
    assert parse_conf(slurm_conf(spec)).rows("PartitionName")["main"]["DefMemPerCPU"] == str(scheduled // 2)


def test_slurm_schedules_all_memory_where_the_spec_gives_the_pod_its_own() -> None:
    resources = {"limits": {"memory": "10Gi"}}
    spec = a_spec(node_sets=[{"name": "cpu", "cpus": 2, "memory_gib": 8, "pod_resources": resources}])

    assert "RealMemory=8192" in node_conf(spec, spec.node_sets[0])
