"""Thirty ConfigMaps: about as many objects as a small cluster has, and nothing to look at."""

import pulumi
from pulumi_kubernetes.core.v1 import ConfigMap
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

namespace = pulumi.Config().require("namespace")
for number in range(30):
    metadata = ObjectMetaArgs(name=f"bench-{number}", namespace=namespace)
    ConfigMap(f"bench-{number}", metadata=metadata, data={"number": str(number)})
