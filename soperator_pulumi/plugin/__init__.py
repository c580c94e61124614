"""Plugin of Pulumi for programs in other languages: `SlurmCluster`, and the resources that act on a live cluster."""
