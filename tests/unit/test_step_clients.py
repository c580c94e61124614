"""step_clients.so (images/bounds) in front of what stands for libslurm and slurmstepd, with a clock of its own."""

import subprocess
from pathlib import Path

import pytest

from tests.unit.guarded_program import compiled

LIBRARY = """\
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
long long clock_milliseconds;
int clock_gettime(clockid_t which, struct timespec *now)
{
    now->tv_sec = clock_milliseconds / 1000;
    now->tv_nsec = clock_milliseconds % 1000 * 1000000;
    return 0;
}
int SWITCH(void) { return 0; }
struct message { struct sockaddr_storage address; char rest[TYPE_AT - sizeof(struct sockaddr_storage)]; short type; };
char behaviour;
int attempt;
int told;
int slurm_send_recv_rc_msg_only_one(struct message *message, int *code, int milliseconds)
{
    told = 0;
    switch (attempt++ >= 2 && behaviour == 'f' ? 'a' : behaviour) {
    case 'j':
    case 'l':
        clock_milliseconds += behaviour == 'l' ? 300 : (milliseconds ? milliseconds : 30000) - 1;
        /* fall through */
    case 'a':
        told = 1;
        *code = 0;
        return 0;
    case 'd':
        if (milliseconds > 0 && milliseconds < 1500)
            break;
        clock_milliseconds += 1500;
        told = 1;
        *code = 0;
        return 0;
    case 'c':
        *code = 1;
        return 0;
    case 's':
        clock_milliseconds += milliseconds ? milliseconds : 30000;
    }
    errno = ETIMEDOUT;
    return -1;
}
"""
"""What stands for libslurm, with the offset of a version.

The letter of a client says what it does: it answers (a), after 300 ms (l), after 1.5 s (d), or just in time (j),
answers with a code (c), is silent (s), refuses (r), or refuses the first two attempts (f).
"""

PROGRAM = """\
#include <netinet/in.h>
#include <stdio.h>
extern long long clock_milliseconds;
extern char behaviour;
extern int attempt;
extern int told;
struct message { struct sockaddr_storage address; char rest[TYPE_AT - sizeof(struct sockaddr_storage)]; short type; };
int slurm_send_recv_rc_msg_only_one(struct message *message, int *code, int milliseconds);
static struct sockaddr_storage address_of(int number, char family)
{
    struct sockaddr_storage address = {.ss_family = family == '6' ? AF_INET6 : family == '0' ? AF_UNSPEC : AF_INET};
    struct sockaddr_in *v4 = (void *)&address;
    struct sockaddr_in6 *v6 = (void *)&address;

    if (family == '6') {
        v6->sin6_port = htons(40000);
        v6->sin6_addr.s6_addr[15] = number;
    } else if (family == '4') {
        v4->sin_port = htons(40000 + number);
    }
    return address;
}
int main(int count, char **words)
{
    for (int i = 2; i < count; i++) {
        long long started = clock_milliseconds;

        clock_milliseconds += words[i][0] == 'Q' ? 20000 : 0;
        for (char *client = words[i] + 1; *client; client++) {
            struct message message = {.type = words[i][0] == 'L' ? 6002 : words[i][0] == 'E' ? 6003 : 5016};
            long pause = 100;
            int code;

            message.address = address_of(client - words[i], words[1][0]);
            behaviour = *client;
            attempt = told = 0;
            for (int attempts = 6; attempts; attempts--, pause *= pause < 800 ? 2 : 1) {
                if (slurm_send_recv_rc_msg_only_one(&message, &code, 0) == 0 && code == 0)
                    break;
                clock_milliseconds += attempts > 1 ? pause : 0;
            }
            if (told)
                putchar('0' + (client - words[i]) % 10);
        }
        printf(" %lld\\n", (clock_milliseconds - started) / 1000);
    }
    return 0;
}
"""
"""slurmstepd tells all clients, of every word in turn: L that tasks have started, E that they have ended, or else.

Q is a quiet of 20 s.

Print the numbers of the clients that were told, and the seconds it took. The first word is the family of addresses.
"""

VERSIONS = {
    "24.11": {"SWITCH": "switch_g_unpack_stepinfo", "TYPE_AT": "212"},
    "26.05": {"SWITCH": "switch_g_stepinfo_unpack", "TYPE_AT": "226"},
}


@pytest.fixture(scope="module", params=sorted(VERSIONS))
def build(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    return compiled(tmp_path_factory.mktemp("clients"), "step_clients.so", LIBRARY, PROGRAM, VERSIONS[request.param])


def told(build: Path, *waves: str, family: str = "4") -> list[tuple[str, int]]:
    """Return the clients that were told in every wave, and the seconds that it took."""
    done = subprocess.run(
        [str(build / "program"), family, *waves],
        env={"LD_PRELOAD": str(build / "step_clients.so")},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    lines = (line.rsplit(" ", 1) for line in done.stdout.splitlines())
    return [(clients, int(seconds)) for clients, seconds in lines]


@pytest.mark.parametrize("family", ["4", "6"])
def test_a_client_that_does_not_answer_is_asked_twice(build: Path, family: str) -> None:
    assert told(build, "La", "Esa", family=family) == [("1", 0), ("2", 45)]


@pytest.mark.parametrize("client", ["s", "r", "c"])
@pytest.mark.parametrize("family", ["4", "6", "0"])
def test_hundreds_of_clients_that_do_not_answer_hold_a_step_for_a_minute(build: Path, family: str, client: str) -> None:
    ((clients, seconds),) = told(build, "E" + 250 * client, family=family)
    assert not clients
    assert seconds <= 62


def test_srun_is_told_behind_hundreds_of_clients_that_do_not_answer(build: Path) -> None:
    """srun is the last: slurmstepd asks those that attached later before."""
    launched, ended = told(build, "L" + 200 * "s" + "a", "E" + 200 * "s" + "a")
    assert launched[0] == ended[0] == "1"
    assert ended[1] <= 62


def test_srun_is_told_of_tasks_that_end_after_the_minute(build: Path) -> None:
    waves = told(build, "La", *["E" + "a" + 9 * "s"] * 5)
    assert [clients for clients, _ in waves] == ["1"] * 6
    assert sum(seconds for _, seconds in waves) <= 62


def test_clients_that_answered_once_and_then_no_more_hold_a_step_for_a_few_seconds_more(build: Path) -> None:
    _, *ended = told(build, "E" + 250 * "a", "E" + 250 * "s", "E" + 250 * "s")
    assert sum(seconds for _, seconds in ended) <= 62 + 16 * 2


@pytest.mark.parametrize("family", ["4", "6", "0"])
def test_hundreds_of_clients_that_answer_just_in_time_hold_a_step_for_a_minute(build: Path, family: str) -> None:
    ((_, seconds),) = told(build, "E" + 250 * "j", family=family)
    assert seconds <= 62


def test_hundreds_of_clients_that_answer_late_hold_the_messages_of_a_step_for_a_minute_and_a_few_seconds(
    build: Path,
) -> None:
    messages = 10
    waves = told(build, *["E" + 250 * "l"] * messages)
    assert sum(seconds for _, seconds in waves) <= 62 + messages * 16 * 0.3


def test_srun_on_a_busy_login_node_is_told_of_hundreds_of_tasks_and_a_client_that_attaches_then_is_too(
    build: Path,
) -> None:
    *waves, last = told(build, "Ll", *["El"] * 500, "Ell")
    assert [clients for clients, _ in waves] == ["1"] * 501
    assert last[0] == "12"


def test_srun_on_a_slow_login_node_is_told_of_tasks_that_end_over_an_hour(build: Path) -> None:
    _, *waves = told(build, "Ld", *["Ed", "Q"] * 180)
    assert [clients for clients, _ in waves[::2]] == ["1"] * 180


def test_srun_that_refuses_two_attempts_is_told_with_the_next_one(build: Path) -> None:
    assert [clients for clients, _ in told(build, "La", "Ef", "Ef")] == ["1", "1", "1"]


def test_all_clients_that_answer_are_told(build: Path) -> None:
    assert told(build, "Eaaaaaaa", "Esaaaaaa") == [("1234567", 0), ("234567", 45)]


def test_messages_that_are_not_for_clients_are_sent_as_slurm_does(build: Path) -> None:
    """Six times, for MessageTimeout."""
    assert told(build, "Xs", "Ls") == [("", 182), ("", 182)]
