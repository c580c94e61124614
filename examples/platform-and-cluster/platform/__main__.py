"""The platform of a Kubernetes cluster, for the clusters in the stacks of the same name in `../cluster`."""

import pulumi

from soperator_pulumi import Platform

config = pulumi.Config("hpc-platform")
platform = Platform("platform", config.require_object("platform"))

pulumi.export("parts", sorted(platform.parts))
for name, value in platform.provided.model_dump().items():
    pulumi.export(name, value)
