"""told_clients.so (images/bounds) in front of what stands for libslurm, in a program that stands for slurmctld."""

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.unit.guarded_program import compiled

LIBRARY = """\
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
int SWITCH(void) { return 0; }
struct message { struct sockaddr_storage address; char rest[TYPE_AT - sizeof(struct sockaddr_storage)]; short type; };
pthread_barrier_t all_wait;
int ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *time, const __sigset_t *signals)
{
    printf("%ld\\n", time ? time->tv_sec * 1000 + time->tv_nsec / 1000000 : -1);
    pthread_barrier_wait(&all_wait);
    return 0;
}
int slurm_send_only_node_msg(struct message *message)
{
    poll(NULL, 0, TIMEOUT);
    return message->type;
}
"""
"""What stands for libslurm, with the offset of a version, and prints for how many milliseconds it waits."""

PROGRAM = """\
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
struct message { struct sockaddr_storage address; char rest[TYPE_AT - sizeof(struct sockaddr_storage)]; short type; };
int slurm_send_only_node_msg(struct message *message);
extern pthread_barrier_t all_wait;
static void *tell(void *type)
{
    struct message message = {.type = *(short *)type};

    return slurm_send_only_node_msg(&message) == message.type ? NULL : type;
}
int main(int count, char **words)
{
    pthread_t threads[100];
    short types[100];
    void *failed;

    for (int i = 1; i < count; i++) {
        pthread_barrier_init(&all_wait, NULL, atoi(words[i] + 5));
        types[0] = atoi(words[i]);
        for (int thread = 0; thread < atoi(words[i] + 5); thread++)
            pthread_create(&threads[thread], NULL, tell, types);
        for (int thread = 0; thread < atoi(words[i] + 5); thread++) {
            pthread_join(threads[thread], &failed);
            if (failed)
                return 1;
        }
    }
    pthread_barrier_init(&all_wait, NULL, 1);
    poll(NULL, 0, 30000);
    poll(NULL, 0, -1);
    return 0;
}
"""
"""Send as many messages of a type at the same time as a word says, and then poll for something else."""

VERSIONS = {
    "24.11": {"SWITCH": "switch_g_unpack_stepinfo", "TYPE_AT": "212"},
    "26.05": {"SWITCH": "switch_g_stepinfo_unpack", "TYPE_AT": "226"},
}
OTHERS = [30000, -1]
ALLOCATED, NOTIFIED, JOB_NOTIFY = "4002", "7005", "4022"


@pytest.fixture(scope="module", params=sorted(VERSIONS))
def build(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    macros = {**VERSIONS[request.param], "TIMEOUT": "30000"}
    return compiled(tmp_path_factory.mktemp("told"), "told_clients.so", LIBRARY, PROGRAM, macros)


def waits(build: Path, *messages: str) -> list[int]:
    """Return the milliseconds of every wait, in their order."""
    done = subprocess.run(
        [str(build / "program"), *messages],
        env={"LD_PRELOAD": str(build / "told_clients.so")},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return [int(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("kind", [ALLOCATED, NOTIFIED])
def test_a_client_that_does_not_read_is_waited_for_five_seconds(build: Path, kind: str) -> None:
    assert waits(build, f"{kind} 1") == [5000, *OTHERS]


def test_a_node_that_does_not_read_is_waited_for_as_ever(build: Path) -> None:
    assert waits(build, f"{JOB_NOTIFY} 1") == [30000, *OTHERS]


def test_of_many_clients_that_do_not_read_all_but_the_first_hold_their_threads_for_a_tenth_of_a_second(
    build: Path,
) -> None:
    *clients, client, _, _ = waits(build, f"{NOTIFIED} 80", f"{NOTIFIED} 1")
    assert Counter(clients) == {5000: 16, 100: 64}
    assert client == 5000
