"""The import alone. The SDK loads nothing of Kubernetes with it: each kind of object comes at its first use."""

import pulumi_kubernetes  # noqa: F401 - what is measured
