"""Resolution of accounts: those that the specification declares, and those that were made inside the jail.

Pure functions. The daemons know both: an account of the jail counts when its ids, a user's primary group among them,
are people's (1000 and more) and when it does not clash with a declared one. No process of a user has a group of the
system: group 0 sees all of /proc, others read what is not for users. A declared account is kept in the jail's own files
too, so that every program there knows it; a record that we did not put there stays as it is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jail_tools.accounts.tables import AccountFile, Record, Table, identity, is_user, members, problem
from jail_tools.accounts.three_way_merge import settle_group, three_way

Accounts = Mapping[AccountFile, Mapping[str, Record]]

SYSTEM_NAMES = frozenset(
    """
    _apt _ssh adm audio backup bin cdrom clock crontab daemon dialout dip disk fax floppy games input irc kmem kvm
    list lp mail man messagebus munge netdev news nobody nogroup operator plugdev proxy render root sasl sgx shadow
    slurm slurmexport slurmrest soperator-health src sshd staff sudo sync sys systemd-journal systemd-network
    systemd-timesync tape tty users utmp uucp video voice www-data
    """.split()  # noqa: SIM905 one name a line would be a screen of nothing
)
"""Users and groups of the daemons' images, which take precedence there. The specification refuses the same names."""

_LAST_CHANGE = "19000"
"""Day of the last password change since 1970: any day in the past, as there is no password."""


@dataclass(frozen=True)
class DaemonAccounts:
    """Accounts for the daemons, and the problems of those that were left out."""

    accounts: dict[AccountFile, dict[str, Record]]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class TreeAccounts:
    """The jail's files with the declared accounts, the managed records among them, and the clashes."""

    tables: dict[AccountFile, Table]
    managed: dict[AccountFile, dict[str, Record]]
    problems: tuple[str, ...]


def for_daemons(declared: Accounts, tree: Accounts, managed: Accounts) -> DaemonAccounts:
    """Return the declared accounts and those that were made in the jail.

    `managed` is what this package put into the jail's files. A managed account that is no longer declared does not
    count, even while it is still in the files.

    The specification names the declared users of a declared group; the jail may add its own users. No password of the
    jail is handed on: users log in by key.
    """
    problems: list[str] = []
    users = _beside(AccountFile.PASSWD, declared, tree, managed, problems)
    groups = _beside(AccountFile.GROUP, declared, tree, managed, problems)
    shadow = {
        name: _without_password(
            tree[AccountFile.SHADOW].get(name, (name, "*", _LAST_CHANGE, "0", "99999", "7", "", "", ""))
        )
        for name in users
        if name not in declared[AccountFile.SHADOW]
    }
    known = {**declared[AccountFile.PASSWD], **users}
    problems += _in_system_groups(known, tree)
    own_groups = {
        name: _with_members(record, members(record) | (_members_in(tree, record) & users.keys()))
        for name, record in declared[AccountFile.GROUP].items()
    }
    tree_groups = {name: _with_members(record, members(record) & known.keys()) for name, record in groups.items()}
    return DaemonAccounts(
        {
            AccountFile.PASSWD: {
                **declared[AccountFile.PASSWD],
                **{name: (record[0], "x", *record[2:]) for name, record in users.items()},
            },
            AccountFile.GROUP: {**own_groups, **tree_groups},
            AccountFile.SHADOW: {**declared[AccountFile.SHADOW], **shadow},
        },
        tuple(problems),
    )


def for_tree(declared: Accounts, managed: Accounts, tables: Mapping[AccountFile, Table]) -> TreeAccounts:
    """Return the jail's files with the declared accounts in them.

    `managed` is what this package put there earlier. Records that are no longer declared are removed. Records that
    users changed stay until the declaration changes. Records that users removed come back.
    """
    problems: list[str] = []
    written, ours_now = {}, {}
    users_left_alone = _clashing(AccountFile.PASSWD, declared, managed, tables[AccountFile.PASSWD].records, problems)
    groups_left_alone = _clashing(AccountFile.GROUP, declared, managed, tables[AccountFile.GROUP].records, problems)
    for kind, table in tables.items():
        known = table.records
        left_alone = groups_left_alone if kind is AccountFile.GROUP else users_left_alone
        base = {name: record for name, record in managed[kind].items() if name in known}
        ours = {
            name: record
            for name, record in declared[kind].items()
            if name not in left_alone and (name in base or name not in known)
        }
        settle = settle_group if kind is AccountFile.GROUP else None
        merged = three_way(base, ours, known, settle=settle)
        decided = {conflict.key: conflict.ours for conflict in merged.conflicts}
        records = {**merged.records, **{name: record for name, record in decided.items() if record is not None}}
        written[kind], ours_now[kind] = table.with_records(records), ours
    return TreeAccounts(written, ours_now, tuple(problems))


def before(managed: Accounts, after: Accounts) -> dict[AccountFile, dict[str, Record]]:
    """Return the records to note before the files are written, so that a killed run forgets no managed ones."""
    return {kind: {**after[kind], **managed[kind]} for kind in AccountFile}


def without(accounts: Accounts, managed: Accounts) -> dict[AccountFile, dict[str, Record]]:
    """Return the accounts that this package does not manage."""
    return {kind: {k: record for k, record in accounts[kind].items() if k not in managed[kind]} for kind in AccountFile}


def _beside(
    kind: AccountFile, declared: Accounts, tree: Accounts, managed: Accounts, problems: list[str]
) -> dict[str, Record]:
    what = "user" if kind is AccountFile.PASSWD else "group"
    names = {identity(kind, record): name for name, record in declared[kind].items()}
    found = {}
    for name, record in tree[kind].items():
        number = identity(kind, record) or 0
        mine = declared[kind].get(name)
        if mine is not None:
            if identity(kind, mine) != number:
                problems.append(
                    f"{what} {name} has the id {number} in the jail, and {mine[2]} as declared: the declared one counts"
                )
        elif not is_user(number) or name in SYSTEM_NAMES or name in managed[kind]:
            continue
        elif number in names:
            problems.append(
                f"{what} {name} of the jail has the id {number} of the declared {names[number]}, which alone counts: "
                "give one of them another id"
            )
        elif (wrong := problem(kind, record)) is not None:
            problems.append(f"{what} of the jail is left out: {wrong}")
        else:
            found[name] = record
    return found


def _in_system_groups(users: Mapping[str, Record], tree: Accounts) -> Iterator[str]:
    """Yield a problem for every user whom the jail puts into system groups, which only the system may have."""
    system = [
        (name, members(record))
        for name, record in tree[AccountFile.GROUP].items()
        if not is_user(identity(AccountFile.GROUP, record) or 0) and problem(AccountFile.GROUP, record) is None
    ]
    for user in users:
        if groups := sorted(name for name, inside in system if user in inside):
            what = "is in groups of the jail that are the system's, and do not count in sessions and jobs"
            yield f"user {user} {what}: {', '.join(groups)}"


def _clashing(
    kind: AccountFile, declared: Accounts, managed: Accounts, known: Mapping[str, Record], problems: list[str]
) -> set[str]:
    """Return the declared names that clash with the jail's file."""
    what = "user" if kind is AccountFile.PASSWD else "group"
    others = {identity(kind, record): name for name, record in known.items() if name not in managed[kind]}
    found = set()
    for name, record in declared[kind].items():
        holder = others.get(identity(kind, record))
        if name in known and name not in managed[kind]:
            found.add(name)
            if known[name][2] != record[2]:
                problems.append(f"{what} {name} is in the jail's own file with the id {known[name][2]}: left alone")
        elif holder is not None:
            found.add(name)
            problems.append(f"{what} {name} is not written into the jail's file: {holder} has its id {record[2]} there")
    return found


def _members_in(tree: Accounts, group: Record) -> set[str]:
    found = tree[AccountFile.GROUP].get(group[0])
    return members(found) if found is not None and found[2] == group[2] else set()


def _with_members(group: Record, names: set[str]) -> Record:
    return (*group[:3], ",".join(sorted(names)))


def _without_password(record: Record) -> Record:
    return (record[0], "!" if record[1].startswith("!") else "*", *record[2:])
