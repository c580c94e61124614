"""ConfigMaps, as many as the configuration says: the least that a program of as many objects is."""

import pulumi
from pulumi_kubernetes.core.v1 import ConfigMap
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

config = pulumi.Config()
namespace = config.require("namespace")
for number in range(config.require_int("count")):
    metadata = ObjectMetaArgs(name=f"bench-{number}", namespace=namespace)
    ConfigMap(f"bench-{number}", metadata=metadata, data={"number": str(number)})
