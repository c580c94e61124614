"""known_messages.so (images/bounds) in front of what stands for libslurm and slurmctld."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.spank_plugin.compiler import toolchain
from tools.paths import ROOT

LIBRARY = """\
#include <stdlib.h>
#include <string.h>
void *slurm_xcalloc(size_t count, size_t size, _Bool clear, _Bool may_fail, const char *file, int line, const char *by)
{
    return calloc(count, size);
}
char *slurm_xstrdup(const char *text) { return strdup(text); }
int slurm_list_for_each(void *list, int (*call)(void *item, void *argument), void *argument)
{
    for (void **item = list; *item; item++)
        call(*item, argument);
    return 0;
}

struct message { unsigned short version, flags, type; unsigned sender; int answers; size_t strings; void *body; };
struct received { unsigned short version, flags, type; void *other[20], *body, *rest[20]; };
int unpack_msg(void *message, void *buffer)
{
    struct message *sent = buffer;
    void *strings = slurm_xcalloc(sent->strings, sizeof(char *), 1, 1, "", 0, "");

    free(strings);
    ((struct received *)message)->body = strings ? sent->body : 0;
    return strings ? 0 : -1;
}
int unpack_header(void *header, void *buffer)
{
    struct message *sent = buffer;

    memcpy(header, sent, 6);
    return sent->answers ? unpack_msg(header, buffer) : 0;
}
void auth_g_get_ids(void *credential, unsigned *user, unsigned *group) { *user = *(unsigned *)credential; }
int slurm_unpack_received_msg(void *message, int descriptor, void *buffer)
{
    struct message *sent = buffer;
    unsigned user, group;

    if (unpack_header(message, buffer))
        return -1;
    if (!sent->flags)
        auth_g_get_ids(&sent->sender, &user, &group);
    return unpack_msg(message, buffer);
}
int slurm_receive_msg(void *connection, void *message, int milliseconds)
{
    return slurm_unpack_received_msg(message, -1, connection);
}
int ask(unsigned type, unsigned sender, int is_signed, int answers, int asked_for, size_t strings, void *body)
{
    struct message sent = {1, !is_signed, type, sender, answers, strings, body};
    struct received received = {0};

    if (asked_for)
        return slurm_receive_msg(&sent, &received, 0);
    return slurm_unpack_received_msg(&received, -1, &sent);
}
"""
"""What stands for libslurm. A message without a signature has flags."""

PROGRAM = """\
#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int ask(unsigned type, unsigned sender, int is_signed, int answers, int asked_for, size_t strings, void *body);
int main(int count, char **words)
{
    unsigned numbers[7] = {0};

    for (int i = 1; i < count && i <= 7; i++)
        numbers[i - 1] = atoi(words[i]);
    if (count == 3) {
        job_step_kill_msg_t kill = {0};
        int result = ask(numbers[0], numbers[1], 1, 0, 0, 1, &kill);

        puts(kill.sjob_id ? kill.sjob_id : "NULL");
        return result != 0;
    }
    if (count == 5) {
        job_desc_msg_t job, *jobs[] = {&job, NULL};
        int result;

        memset(&job, numbers[2], sizeof(job));
        result = ask(numbers[0], numbers[1], 1, 0, 0, 1, numbers[3] ? (void *)jobs : &job);
        printf("%d %d ", job.fed_siblings_active != 0, job.fed_siblings_viable != 0);
        printf("%d %d %d %d\\n", job.contiguous, job.kill_on_node_fail, job.overcommit, job.requeue);
        return result != 0;
    }
    return ask(numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6] ? words : NULL) != 0;
}
"""
"""Seven words are a message: its type, its sender, whether it is signed, brings answers, and is one, its number of
strings, and whether it has a body. Return 0 if it is read.

Two words are the type and the sender of a cancellation without a job: print what is read as the job. Four are those of
a job: all bytes of its description are the third word, and it is in a list if the fourth is 1. Print what is read."""


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tools, build = toolchain(), tmp_path_factory.mktemp("messages") / "build"
    shutil.copytree(ROOT / "images" / "bounds", build)
    (build / "library.c").write_text(LIBRARY)
    (build / "program.c").write_text(PROGRAM)
    slurm = tools.slurm.removeprefix("SLURM_CFLAGS=").split()
    compiled = [
        [str(tools.make), "--silent", *tools.variables, "known_messages.so"],
        [*tools.compiler, "-fPIC", "-shared", "-o", "libmessages.so", "library.c"],
        [*tools.compiler, *slurm, "-o", "program", "program.c", "-L.", "-lmessages", f"-Wl,-rpath,{build}"],
    ]
    for command in compiled:
        subprocess.run(command, cwd=build, env={**os.environ, **tools.environment}, check=True, timeout=300)
    return build


def told(build: Path, *words: int) -> tuple[bool, str]:
    """Return whether a message is read, and what the program prints of it."""
    environment = {"LD_PRELOAD": str(build / "known_messages.so")}
    command = [str(build / "program"), *map(str, words)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode in (0, 1), done.returncode
    return done.returncode == 0, done.stdout.strip()


REQUEST_PING, REQUEST_SUBMIT_BATCH_JOB, RESPONSE_SLURM_RC = 1008, 4003, 8001
REQUEST_CONTROL_STATUS, RESPONSE_JOB_INFO, RESPONSE_TOPO_INFO, REQUEST_LAUNCH_TASKS = 2053, 2004, 2029, 6001
MESSAGE_NODE_REGISTRATION_STATUS = 1002
REQUEST_RESOURCE_ALLOCATION, REQUEST_JOB_WILL_RUN, REQUEST_UPDATE_JOB, REQUEST_CONFIG = 4001, 4012, 3001, 2015
REQUEST_HET_JOB_ALLOCATION, REQUEST_SUBMIT_BATCH_HET_JOB, REQUEST_KILL_JOB = 4025, 4028, 5032
ROOT_ID, USER_ID = 0, 2001


@pytest.mark.parametrize(
    ("message", "read"),
    [
        ((REQUEST_SUBMIT_BATCH_JOB, USER_ID, True, False, False), True),
        ((REQUEST_PING, USER_ID, True, False, False), True),
        ((REQUEST_CONTROL_STATUS, USER_ID, True, False, False), True),
        ((RESPONSE_SLURM_RC, USER_ID, True, False, False), True),
        ((REQUEST_PING, USER_ID, False, False, False), True),
        ((RESPONSE_JOB_INFO, USER_ID, True, False, False), False),
        ((RESPONSE_TOPO_INFO, USER_ID, True, False, False), False),
        ((REQUEST_LAUNCH_TASKS, USER_ID, True, False, False), False),
        ((MESSAGE_NODE_REGISTRATION_STATUS, USER_ID, True, False, False), False),
        ((REQUEST_LAUNCH_TASKS, ROOT_ID, False, False, False), False),
        ((REQUEST_PING, USER_ID, True, True, False), False),
        ((REQUEST_PING, ROOT_ID, True, True, False), False),
        ((MESSAGE_NODE_REGISTRATION_STATUS, ROOT_ID, True, False, False), True),
        ((RESPONSE_JOB_INFO, ROOT_ID, True, False, False), True),
        ((RESPONSE_JOB_INFO, USER_ID, False, False, True), True),
    ],
)
def test_of_users_only_messages_that_their_programs_send_are_read(
    build: Path, message: tuple[int, int, bool, bool, bool], read: bool
) -> None:
    """A message is a type and a sender, and whether it is signed, brings answers, and is one to slurmctld."""
    assert told(build, *map(int, message), 1, 1) == (read, "")


@pytest.mark.parametrize(
    ("kind", "sender", "read"),
    [
        (REQUEST_CONFIG, USER_ID, False),
        (REQUEST_SUBMIT_BATCH_JOB, USER_ID, False),
        (REQUEST_PING, USER_ID, True),
        (REQUEST_CONTROL_STATUS, USER_ID, True),
        (REQUEST_CONFIG, ROOT_ID, True),
    ],
)
def test_a_users_message_without_its_body_is_not_read(build: Path, kind: int, sender: int, read: bool) -> None:
    assert told(build, kind, sender, 1, 0, 0, 1, 0) == (read, "")


@pytest.mark.parametrize(
    ("sender", "strings", "read"), [(USER_ID, 8 << 20, True), (USER_ID, 9 << 20, False), (ROOT_ID, 9 << 20, True)]
)
def test_a_users_message_of_too_many_strings_is_not_read(build: Path, sender: int, strings: int, read: bool) -> None:
    assert told(build, REQUEST_SUBMIT_BATCH_JOB, sender, 1, 0, 0, strings, 1) == (read, "")


@pytest.mark.parametrize("is_list", [False, True])
@pytest.mark.parametrize(
    ("sender", "filled", "job"),
    [
        (USER_ID, 0xAA, f"0 0 1 1 1 {0xAAAA}"),
        (USER_ID, 0x00, "0 0 0 0 0 0"),
        (USER_ID, 0xFE, f"0 0 1 1 {0xFE} {0xFEFE}"),
        (ROOT_ID, 0xAA, f"1 1 {0xAAAA} {0xAAAA} {0xAA} {0xAAAA}"),
    ],
)
def test_of_a_users_job_what_clients_never_send_is_changed(
    build: Path, is_list: bool, sender: int, filled: int, job: str
) -> None:
    """It has no other clusters, and its switches are on or off, or not set (0xfe)."""
    lists, jobs = (
        (REQUEST_HET_JOB_ALLOCATION, REQUEST_SUBMIT_BATCH_HET_JOB),
        (REQUEST_SUBMIT_BATCH_JOB, REQUEST_RESOURCE_ALLOCATION, REQUEST_JOB_WILL_RUN, REQUEST_UPDATE_JOB),
    )
    for kind in lists if is_list else jobs:
        assert told(build, kind, sender, filled, int(is_list)) == (True, job)


@pytest.mark.parametrize(("sender", "job"), [(USER_ID, ""), (ROOT_ID, "NULL")])
def test_a_users_cancellation_without_a_job_is_one_of_an_empty_name(build: Path, sender: int, job: str) -> None:
    assert told(build, REQUEST_KILL_JOB, sender) == (True, job)
