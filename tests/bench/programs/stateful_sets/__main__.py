"""As many StatefulSets as the configuration says: the least that a program with workers is."""

import pulumi
from pulumi_kubernetes.apps.v1 import StatefulSet, StatefulSetSpecArgs
from pulumi_kubernetes.core.v1 import ContainerArgs, PodSpecArgs, PodTemplateSpecArgs
from pulumi_kubernetes.meta.v1 import LabelSelectorArgs, ObjectMetaArgs

for number in range(pulumi.Config("bench").require_int("count")):
    labels = {"app": f"n{number}"}
    container = ContainerArgs(name="main", image="registry.example.com/worker:1")
    StatefulSet(
        f"n{number}",
        metadata=ObjectMetaArgs(name=f"n{number}"),
        spec=StatefulSetSpecArgs(
            service_name="nodes",
            selector=LabelSelectorArgs(match_labels=labels),
            template=PodTemplateSpecArgs(
                metadata=ObjectMetaArgs(labels=labels), spec=PodSpecArgs(containers=[container])
            ),
        ),
    )
