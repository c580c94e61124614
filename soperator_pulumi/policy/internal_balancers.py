"""Annotations of clouds that keep a load balancer inside their networks."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from soperator_pulumi.policy.value_tree import mapped


class InJson(NamedTuple):
    """A value within the JSON of an annotation."""

    path: Sequence[str]
    """Keys down to the value; lists on the way count with all of their items."""
    value: str
    """The value that all of them have, in lower case."""


Internal = Mapping[str, str | InJson]
"""Annotations that keep a load balancer or Ingress inside a cloud's network, with their values in lower case."""

_ANY_VALUE = ""

HUAWEI_AUTOCREATE = {"kubernetes.io/elb.autocreate": InJson(("type",), "inner")}
"""Annotation of a Service or Ingress of Huawei's and other clouds' CCE, for a load balancer that it creates."""

INTERNAL_BALANCER: Internal = {
    **HUAWEI_AUTOCREATE,
    "cloud.google.com/load-balancer-type": "internal",
    "lb.stackit.cloud/internal-lb": "true",
    "load-balancer.hetzner.cloud/disable-public-network": "true",
    "networking.gke.io/load-balancer-type": "internal",
    "oci-network-load-balancer.oraclecloud.com/internal": "true",
    "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-address-type": "intranet",
    "service.beta.kubernetes.io/alicloud-loadbalancer-address-type": "intranet",
    "service.beta.kubernetes.io/aws-load-balancer-internal": "true",
    "service.beta.kubernetes.io/aws-load-balancer-scheme": "internal",
    "service.beta.kubernetes.io/azure-load-balancer-internal": "true",
    "service.beta.kubernetes.io/cce-load-balancer-internal-vpc": "true",
    "service.beta.kubernetes.io/do-loadbalancer-network": "internal",
    "service.beta.kubernetes.io/oci-load-balancer-internal": "true",
    "service.beta.kubernetes.io/openstack-internal-load-balancer": "true",
    "service.beta.kubernetes.io/scw-loadbalancer-private": "true",
    "service.beta.kubernetes.io/upcloud-load-balancer-config": InJson(("networks", "type"), "private"),
    "service.beta.kubernetes.io/volcengine-loadbalancer-address-type": "private",
    "service.kubernetes.io/ibm-load-balancer-cloud-provider-ip-type": "private",
    "service.kubernetes.io/qcloud-loadbalancer-internal-subnetid": _ANY_VALUE,
    "yandex.cloud/load-balancer-type": "internal",
}
"""Annotations of Services, from https://kubernetes.io/docs/concepts/services-networking/service/#internal-load-balancer
and the pages of the clouds' controllers; `_ANY_VALUE` stands for every value that is not empty."""

INTERNAL_CLASSES = {"tailscale"}
"""Values of `loadBalancerClass` of private networks: https://tailscale.com/kb/1439/kubernetes-operator-cluster-ingress."""

_AWS_INTERNAL = "service.beta.kubernetes.io/aws-load-balancer-internal"
"""Annotation for which the older controller takes `0.0.0.0/0` as true as well."""

_OF_KIND = {
    "oci-network-load-balancer.oraclecloud.com/internal": ("oci.oraclecloud.com/load-balancer-type", "nlb"),
}
"""Annotations that only count for one kind of load balancer, with the annotation and the value that choose it."""

_EXISTING = {"kubernetes.io/elb.autocreate": "kubernetes.io/elb.id"}
"""Annotations that don't count next to another one, which names a load balancer that is there."""


def is_internal(annotations: Mapping[str, object], internal: Internal = INTERNAL_BALANCER) -> bool:
    """Return True if annotations keep a load balancer inside a cloud's network, and none contradicts them."""
    counted = [key for key in internal.keys() & annotations.keys() if _counts(key, annotations)]
    return bool(counted) and all(_keeps_inside(key, annotations[key], internal[key]) for key in counted)


def _counts(key: str, annotations: Mapping[str, object]) -> bool:
    other, kind = _OF_KIND.get(key, (key, None))
    is_of_kind = kind is None or str(annotations.get(other)).lower() == kind
    return is_of_kind and not annotations.get(_EXISTING.get(key, ""))


def _keeps_inside(key: str, value: object, wanted: str | InJson) -> bool:
    if isinstance(wanted, InJson):
        found = [*_within(_parsed(value), wanted.path)]
        return bool(found) and all(str(item).lower() == wanted.value for item in found)
    text = str(value).lower()
    if wanted == _ANY_VALUE:
        return bool(text)
    return text == wanted or (key == _AWS_INTERNAL and text == "0.0.0.0/0")


def _parsed(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        return None  # the cloud's controller refuses it


def _within(value: object, path: Sequence[str]) -> Iterator[object]:
    """Yield the values at the end of a path, None for an item without one."""
    if isinstance(value, list):
        for item in value:
            yield from _within(item, path)
    elif path:
        yield from _within(mapped(value).get(path[0]), path[1:])
    else:
        yield value
