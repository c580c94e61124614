"""Operations on a live cluster, without Pulumi: a resource, a command or an agent can carry them out."""
