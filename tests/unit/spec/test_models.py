"""Properties of all models; models and the dictionaries of `spec.args` agree."""

from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin, is_typeddict

import pulumi
import pytest
from hypothesis import given
from pydantic import ValidationError

from soperator_pulumi.spec import args
from soperator_pulumi.spec.cluster import ClusterSpec, parse_cluster, rule_problems
from soperator_pulumi.spec.devices import Devices
from soperator_pulumi.spec.login import ServiceType
from soperator_pulumi.spec.platform.chart_part import ChartPart
from soperator_pulumi.spec.platform.platform_spec import PlatformSpec
from soperator_pulumi.spec.scheduling import Scheduled
from soperator_pulumi.spec.slurm import Constrain
from soperator_pulumi.spec.user_pods import UserPods
from soperator_pulumi.spec.validation.base import Model
from soperator_pulumi.spec.validation.descriptions import field_descriptions
from soperator_pulumi.spec.validation.partial import model_in, partial
from tests.strategies import Data, a_spec, cluster_data, cluster_specs
from tools.docs import typed_args


def models(model: type[Model]) -> Iterator[type[Model]]:
    yield model
    for field in model.model_fields.values():
        nested = model_in(field.annotation)
        if nested is not None:
            yield from models(nested)


BASES = (Scheduled, UserPods, Devices, ChartPart)
"""Models that others inherit from."""

ALL_MODELS: list[type[Model]] = sorted(
    {*models(ClusterSpec), *models(PlatformSpec), *BASES}, key=lambda model: model.__name__
)


@pytest.mark.parametrize("model", ALL_MODELS, ids=lambda model: model.__name__)
def test_every_field_and_model_says_what_it_is(model: type[Model]) -> None:
    assert model.__doc__
    assert field_descriptions(model).keys() == model.model_fields.keys()


@pytest.mark.parametrize("model", ALL_MODELS, ids=lambda model: model.__name__)
def test_every_model_is_frozen_and_takes_no_unknown_key(model: type[Model]) -> None:
    assert model.model_config["frozen"]
    assert model.model_config["extra"] == "forbid"


def test_a_cluster_needs_three_things_only() -> None:
    required = {name for name, field in ClusterSpec.model_fields.items() if field.is_required()}
    assert required == {"name", "node_sets", "images"}


def test_defaults_are_safe() -> None:
    cluster = a_spec()
    assert cluster.slurm.constrain is Constrain.CGROUP
    assert cluster.storage.keep
    assert cluster.login.service is ServiceType.CLUSTER_IP
    assert cluster.login.allowed_sources == ()
    assert cluster.node_sets[0].pod_resources is None


def test_what_is_left_out_is_taken_from_what_is_given() -> None:
    cluster = a_spec()
    assert cluster.namespace == "hpc"
    assert cluster.users[0].gid == cluster.users[0].uid == 2001


def test_partitions_that_only_node_sets_name_are_made() -> None:
    node_sets = [{"name": "a", "cpus": 1, "memory_gib": 1, "partitions": ["x", "y"]}]
    cluster = a_spec(node_sets=node_sets, partitions=[{"name": "y", "options": {"maxtime": 60}}])
    assert [(partition.name, partition.default, partition.options) for partition in cluster.all_partitions] == [
        ("y", True, {"MaxTime": "60"}),
        ("x", False, {}),
    ]


@given(cluster_specs())
def test_exactly_one_partition_is_the_default(cluster: ClusterSpec) -> None:
    assert [partition.default for partition in cluster.all_partitions].count(True) == 1


@pytest.mark.parametrize(("second", "default"), [({}, "b"), ({"default": False}, None)])
def test_a_partition_that_says_so_never_becomes_the_default(second: dict[str, bool], default: str | None) -> None:
    node_sets = [{"name": "a", "cpus": 1, "memory_gib": 1, "partitions": ["a", "b"]}]
    cluster = a_spec(node_sets=node_sets, partitions=[{"name": "a", "default": False}, {"name": "b", **second}])

    assert [partition.name for partition in cluster.all_partitions if partition.default] == (
        [default] if default else []
    )


@given(cluster_specs())
def test_a_spec_written_out_and_read_again_is_the_same(cluster: ClusterSpec) -> None:
    assert parse_cluster(cluster.model_dump()) == cluster
    assert parse_cluster(cluster.model_dump(mode="json")) == cluster
    assert parse_cluster(cluster) is cluster


@given(cluster_data())
def test_numbers_may_come_as_floats(data: Data) -> None:
    def as_floats(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: as_floats(item) for key, item in value.items()}
        if isinstance(value, list):
            return [as_floats(item) for item in value]
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value

    def without_pod_resources(value: Any) -> Any:  # quantities are text, in which 1.0 is not 1
        if isinstance(value, Mapping):
            return {key: without_pod_resources(item) for key, item in value.items() if key != "pod_resources"}
        return [without_pod_resources(item) for item in value] if isinstance(value, list) else value

    same = without_pod_resources(data)
    assert parse_cluster(as_floats(same)) == parse_cluster(same)


@given(cluster_data())
def test_the_lenient_reading_of_a_valid_description_is_the_strict_one(data: Data) -> None:
    lenient = partial(ClusterSpec, data)
    assert lenient == parse_cluster(data)
    assert list(rule_problems(lenient)) == []


def test_a_model_made_directly_follows_the_rules_too() -> None:
    cluster = a_spec()
    with pytest.raises(ValidationError, match="Node sets need distinct names"):
        ClusterSpec(name="hpc", images=cluster.images, node_sets=cluster.node_sets * 2)


PAIRS = [(getattr(args, typed_args.name_of(model)), model) for model in ALL_MODELS]


def test_every_dictionary_has_its_model() -> None:
    dictionaries = {variable for variable in vars(args).values() if is_typeddict(variable)}
    assert dictionaries == {dictionary for dictionary, _ in PAIRS}


@pytest.mark.parametrize(("dictionary", "model"), PAIRS, ids=lambda text: text.__name__)
def test_a_dictionary_has_the_keys_of_its_model(dictionary: type, model: type[Model]) -> None:
    of_components = {"platform"} if model is ClusterSpec else set()  # a component is taken there, too
    assert set(dictionary.__annotations__) == set(model.model_fields) - of_components


@pytest.mark.parametrize(
    ("dictionary", "model"), [pair for pair in PAIRS if pair[1] is not ClusterSpec], ids=lambda text: text.__name__
)
def test_a_dictionary_requires_what_its_model_requires(dictionary: Any, model: type[Model]) -> None:
    assert set(dictionary.__required_keys__) == {
        name for name, field in model.model_fields.items() if field.is_required()
    }


def takes_outputs(annotation: object) -> bool:
    if get_origin(annotation) is pulumi.Output:
        return True
    return any(takes_outputs(argument) for argument in get_args(annotation))


@pytest.mark.parametrize(("dictionary", "model"), PAIRS, ids=lambda text: text.__name__)
def test_a_dictionary_takes_outputs_where_its_model_does(dictionary: type, model: type[Model]) -> None:
    deferred = {name for name, field in model.model_fields.items() if takes_outputs(field.annotation)}
    assert {name for name, hint in dictionary.__annotations__.items() if "Output" in str(hint)} == deferred
