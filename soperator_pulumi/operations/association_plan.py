"""Plan for the accounting database: what to add for the spec's accounts and users. Nothing is ever removed.

An association holds the usage of its user, and limits that administrators set. A user who leaves the spec, and
associations that the spec does not know, stay as they are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from soperator_pulumi.slurm.sacctmgr import Association, Sacctmgr


@dataclass(frozen=True)
class RecordedAssociations:
    """The part of a database that concerns one cluster."""

    has_cluster: bool
    associations: Sequence[Association] = ()


@dataclass(frozen=True)
class AssociationPlan:
    """Ordered steps towards the spec. Every step can be repeated."""

    cluster: str
    adds_cluster: bool
    accounts: tuple[str, ...]
    """Accounts to add."""
    users: Mapping[str, tuple[str, ...]]
    """Users to add, by account. A user's default account precedes the user's other accounts."""
    defaults: Mapping[str, tuple[str, ...]]
    """Users whose default account differs from the spec, by the spec's default account."""

    @property
    def is_empty(self) -> bool:
        """True if the database has everything."""
        return not (self.adds_cluster or self.accounts or self.users or self.defaults)

    def lines(self) -> Iterator[str]:
        """Yield the steps as lines for users."""
        if self.adds_cluster:
            yield f"accounting: registers cluster {self.cluster}"
        if self.accounts:
            yield f"accounting: adds {_counted(self.accounts, 'account')}"
        for account, users in self.users.items():
            yield f"accounting: adds {_counted(users, 'user')} to account {account}"
        for account, users in self.defaults.items():
            yield f"accounting: makes {account} the default account of {_counted(users, 'user')}"

    def run(self, sacctmgr: Sacctmgr) -> None:
        """Carry out the steps."""
        if self.adds_cluster:
            sacctmgr.add_cluster()
        if self.accounts:
            sacctmgr.add_accounts(self.accounts)
        for account, users in self.users.items():
            sacctmgr.add_users(users, account)
        for account, users in self.defaults.items():
            sacctmgr.set_default_account(users, account)


_SHOWN = 5


def plan(
    cluster: str, accounts: Sequence[str], users: Mapping[str, Sequence[str]], now: RecordedAssociations
) -> AssociationPlan:
    """Return the steps from a database to the spec.

    Args:
        cluster: Slurm's name of the cluster.
        accounts: Accounts of the spec.
        users: Accounts of the spec's users, by user; the default account comes first.
        now: The database.
    """
    has = {(association.user, association.account) for association in now.associations}
    defaults = {
        association.user: association.account
        for association in now.associations
        if association.user and association.is_default
    }
    wanted = dict.fromkeys([*accounts, *(account for own in users.values() for account in own)])
    added: dict[str, list[str]] = {}
    # A user's first account becomes the default one: those of all users come before the second accounts.
    for place in range(max((len(own) for own in users.values()), default=0)):
        for user, own in users.items():
            if place < len(own) and (user, own[place]) not in has:
                added.setdefault(own[place], []).append(user)
    changed: dict[str, list[str]] = {}
    for user, own in users.items():
        if defaults.get(user, own[0]) != own[0] or (user not in defaults and _comes_late(user, own, added)):
            changed.setdefault(own[0], []).append(user)
    return AssociationPlan(
        cluster,
        adds_cluster=not now.has_cluster,
        accounts=tuple(account for account in wanted if ("", account) not in has),
        users={account: tuple(names) for account, names in added.items()},
        defaults={account: tuple(names) for account, names in changed.items()},
    )


def _comes_late(user: str, own: Sequence[str], added: Mapping[str, Sequence[str]]) -> bool:
    """Return True if a new user gets another account before the default one, which was added for others earlier."""
    first = next((account for account, names in added.items() if user in names), own[0])
    return first != own[0]


def recorded(sacctmgr: Sacctmgr) -> RecordedAssociations:
    """Return what the database has."""
    if sacctmgr.cluster not in sacctmgr.clusters():
        return RecordedAssociations(has_cluster=False)
    return RecordedAssociations(has_cluster=True, associations=sacctmgr.associations())


def _counted(names: Sequence[str], noun: str) -> str:
    shown = ", ".join(names[:_SHOWN])
    if len(names) == 1:
        return f"{noun} {shown}"
    return f"{len(names)} {noun}s ({shown}{', ...' if len(names) > _SHOWN else ''})"
