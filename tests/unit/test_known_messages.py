"""known_messages.so (images/bounds) in front of what stands for libslurm and slurmctld."""

import subprocess
from pathlib import Path

import pytest

from tests.unit.guarded_program import compiled

LIBRARY = """\
#include <slurm/slurm.h>
#include <stdlib.h>
#include <string.h>
slurm_conf_t slurm_conf = {.slurm_user_id = 64030, .tree_width = 16};
void *bit_alloc(long long count) { return calloc(count / 8 + 1, 1); }
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

struct crontab_line { unsigned flags; void *times[5]; };
_Bool valid_cron_entry(struct crontab_line *line) { return !line->flags; }
int is_valid(unsigned flags, unsigned times)
{
    struct crontab_line line = {flags};

    for (unsigned i = 0; i < times; i++)
        line.times[i] = &line;
    return valid_cron_entry(&line);
}

struct buffer { unsigned magic; char *bytes; unsigned size, read; };
static int freed;
static int skip(struct buffer *buffer, unsigned offset)
{
    buffer->read = offset;
    return 0;
}
int SWITCH(void **step, struct buffer *buffer, unsigned short offset) { return skip(buffer, offset); }
void slurm_free_launch_tasks_request_msg(void *tasks)
{
    unsigned het_nodes = ((unsigned *)tasks)[2];

    freed += het_nodes == NO_VAL || !het_nodes; /* its array is not there */
}
int freed_tasks(void) { return freed; }
int job_record_unpack(void **job, int resources, void *buffer, unsigned short version) { return 0; }
void *hostlist_create(const char *names) { return names[0] ? (void *)names : 0; }
int hostlist_count(void *names) { return strlen(names); } /* one letter each */
void hostlist_destroy(void *names) {}

struct message {
    unsigned short version, flags, type;
    unsigned sender, answers, strings, bits, offset, has_job, count;
    const char *names;
    void *body;
};
struct header { unsigned short start[28], count; const char *names; unsigned timeout; unsigned short width, rest[20]; };
struct received {
    void *body;
    char between[TYPE_AT - sizeof(void *)];
    unsigned short type;
    void *rest[20];
};
int unpack_msg(void *message, void *buffer)
{
    struct message *sent = buffer;
    void *strings = slurm_xcalloc(sent->strings, sizeof(char *), 1, 1, "", 0, ""), *bits = bit_alloc(sent->bits);
    int is_whole = strings && bits;

    free(strings);
    free(bits);
    is_whole &= !SWITCH(NULL, &(struct buffer){.size = 100, .read = 10}, sent->offset);
    is_whole &= !sent->has_job || !job_record_unpack(NULL, 0, NULL, 0);
    if (!is_whole)
        slurm_free_launch_tasks_request_msg((unsigned[]){0, 0, sent->strings});
    ((struct received *)message)->body = is_whole ? sent->body : 0;
    return is_whole ? 0 : -1;
}
int unpack_header(struct header *header, void *buffer)
{
    struct message *sent = buffer;
    struct received answer = {.type = sent->answers};

    memcpy(header, sent, 6);
    header->count = sent->count;
    header->names = sent->names;
    header->width = 60000;
    return answer.type ? unpack_msg(&answer, buffer) : 0;
}
void auth_g_get_ids(void *credential, unsigned *user, unsigned *group) { *user = *(unsigned *)credential; }
static int receive(void *message, void *buffer)
{
    struct message *sent = buffer;
    struct header header;
    unsigned user, group;

    if (unpack_header(&header, buffer) || (header.count && header.width != 16))
        return -1;
    ((struct received *)message)->type = header.start[2];
    if (!sent->flags)
        auth_g_get_ids(&sent->sender, &user, &group);
    return unpack_msg(message, buffer);
}
int slurm_unpack_received_msg(void *message, int descriptor, void *buffer) { return receive(message, buffer); }
int slurm_receive_msg(void *connection, void *message, int milliseconds)
{
    return slurm_unpack_received_msg(message, -1, connection);
}
int slurm_send_recv_rc_msg_only_one(void *request, int *code, int milliseconds)
{
    struct received received = {0};

    return slurm_receive_msg(request, &received, milliseconds);
}
static void *receive_answers(void *connection)
{
    static struct received received;
    void *whole = slurm_xcalloc(1, ((struct message *)connection)->strings, 0, 1, "", 0, "");

    return whole && !receive(&received, connection) ? &received : NULL;
}
void *slurm_receive_msgs(void *connection, int steps, int milliseconds) { return receive_answers(connection); }
void *slurm_receive_resp_msgs(void *connection, int steps, int milliseconds) { return receive_answers(connection); }
static struct message sent;
int slurm_receive_msg_and_forward(int descriptor, void *address, void *message)
{
    return receive(message, &sent);
}
int slurm_unpack_msg_and_forward(void *message, void *address, int descriptor, void *buffer)
{
    return receive(message, buffer);
}
int ask(const unsigned *numbers, void *body)
{
    struct received received = {0};

    sent = (struct message){1, !numbers[2], numbers[0], numbers[1], numbers[3], .body = body};
    sent.strings = numbers[5];
    sent.bits = numbers[6];
    sent.offset = numbers[7];
    sent.has_job = numbers[10];
    sent.count = numbers[12];
    sent.names = (const char *[]){"abc", "", NULL}[numbers[13]];
    switch (numbers[4]) {
    case 0:
        return slurm_unpack_received_msg(&received, -1, &sent);
    case 1:
        return slurm_receive_msg(&sent, &received, 0);
    case 2:
        return slurm_receive_msg_and_forward(-1, NULL, &received);
    case 3:
        return slurm_unpack_msg_and_forward(&received, NULL, -1, &sent);
    case 4:
        return slurm_send_recv_rc_msg_only_one(&sent, NULL, 0);
    case 5:
        return !slurm_receive_msgs(&sent, 0, 0);
    default:
        return !slurm_receive_resp_msgs(&sent, 0, 0);
    }
}
"""
"""What stands for libslurm, with the offsets of a version. A message without a signature has flags."""

PROGRAM = """\
#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int ask(const unsigned *numbers, void *body);
int freed_tasks(void);
int is_valid(unsigned flags, unsigned times);
int main(int count, char **words)
{
    unsigned numbers[14] = {0};
    job_desc_msg_t job, *jobs[] = {&job, NULL};
    job_step_kill_msg_t kill = {0};
    struct { const char *text; void *jobs; } crontab = {"", jobs}, removed = {""};
    char *text = NULL;
    char launch[1024] = {0};
    unsigned block[23] = {0};
    void *bodies[] = {NULL, words, &kill, &job, jobs, &crontab, &removed, &text, launch, block};
    int result;

    for (int i = 1; i < count && i <= 14; i++)
        numbers[i - 1] = atoi(words[i]);
    if (count == 3)
        return !is_valid(numbers[0], numbers[1]);
    memset(&job, numbers[9], sizeof(job));
    block[22] = numbers[9];
    memcpy(launch + NODES_AT, &numbers[11], sizeof(numbers[11]));
    memcpy(launch + NAMES_AT, &(const char *){"abc"}, sizeof(char *));
    result = ask(numbers, bodies[numbers[8]]);
    switch (numbers[8]) {
    case 2:
        puts(kill.sjob_id ? kill.sjob_id : "NULL");
        break;
    case 7:
        puts(text ? text : "NULL");
        break;
    case 9:
        printf("%u", block[22]);
        break;
    case 3:
    case 4:
    case 5:
        printf("%d %d ", job.fed_siblings_active != 0, job.fed_siblings_viable != 0);
        printf("%d %d %d %d\\n", job.contiguous, job.kill_on_node_fail, job.overcommit, job.requeue);
        break;
    default:
        printf("%s", freed_tasks() ? "freed" : "");
    }
    return result != 0;
}
"""
"""Its words are numbers: those of `told`. Print what is read of a job, or whether the tasks of a message were freed.

Two words are a crontab's line: whether Slurm refuses it, and how many of its five bitmaps it has.
"""


VERSIONS = {
    "24.11": {"SWITCH": "switch_g_unpack_stepinfo", "TYPE_AT": "212", "NODES_AT": "68", "NAMES_AT": "576"},
    "26.05": {"SWITCH": "switch_g_stepinfo_unpack", "TYPE_AT": "226", "NODES_AT": "76", "NAMES_AT": "592"},
}
"""Of Slurm: a function that one of them has, and the bytes before parts of its structures (gdb's `ptype /o`)."""


@pytest.fixture(scope="module", params=sorted(VERSIONS))
def build(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    return compiled(tmp_path_factory.mktemp("messages"), "known_messages.so", LIBRARY, PROGRAM, VERSIONS[request.param])


NAMES = THREE_HOSTS, NO_LIST_OF_HOSTS, NO_NAMES = range(3)
SLURMCTLDS, AN_ANSWER, SLURMDS_24, SLURMDS_26, A_RETURN_CODE, ANSWERS, PASSED_ON = range(7)
NO_BODY, A_BODY, A_CANCELLATION, A_JOB, A_LIST_OF_JOBS, A_CRONTAB, NO_CRONTAB, NO_TEXT, A_LAUNCH, A_BLOCK = range(10)


def told(
    build: Path,
    kind: int,
    sender: int,
    *,
    is_signed: bool = True,
    answers: int = 0,
    by: int = SLURMCTLDS,
    strings: int = 1,
    bits: int = 1,
    offset: int = 20,
    body: int | None = None,
    filled: int = 0,
    has_job: bool = False,
    nodes: int = 3,
    passed_on: int = 0,
    names: int = 0,
) -> tuple[bool, str]:
    """Return whether a message is read, and what the program prints of it.

    Args:
        build: the libraries and the program.
        kind: type of the message.
        sender: its user.
        is_signed: it has a signature.
        answers: type of an answer that its header brings, or 0 for none.
        by: how it is received.
        strings: their number.
        bits: those of its bitmap.
        offset: byte of 100 at which its reader goes on after the tenth, where a step's switch is.
        body: what it is about.
        filled: all bytes of a job's description, or the bytes of a block of a file.
        has_job: it brings a job's record.
        nodes: those of a launch on three.
        passed_on: number of nodes to which it is passed on. More than the 16 threads of the cluster's make no message.
        names: those nodes; NAMES has them.
    """
    if body is None:
        body = A_LAUNCH if kind == REQUEST_LAUNCH_TASKS else A_BODY
    numbers = (kind, sender, is_signed, answers, by, strings, bits, offset, body, filled, has_job, nodes)
    return run(build, *numbers, passed_on, names)


def run(build: Path, *words: int) -> tuple[bool, str]:
    """Return whether the program ends with 0, and what it prints."""
    environment = {"LD_PRELOAD": str(build / "known_messages.so")}
    command = [str(build / "program"), *(str(int(word)) for word in words)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode in (0, 1), done.returncode
    return done.returncode == 0, done.stdout.strip()


REQUEST_PING, REQUEST_SUBMIT_BATCH_JOB, RESPONSE_SLURM_RC = 1008, 4003, 8001
REQUEST_CONTROL_STATUS, RESPONSE_JOB_INFO, RESPONSE_TOPO_INFO, REQUEST_LAUNCH_TASKS = 2053, 2004, 2029, 6001
MESSAGE_NODE_REGISTRATION_STATUS = 1002
REQUEST_RESOURCE_ALLOCATION, REQUEST_JOB_WILL_RUN, REQUEST_UPDATE_JOB, REQUEST_CONFIG = 4001, 4012, 3001, 2015
REQUEST_HET_JOB_ALLOCATION, REQUEST_SUBMIT_BATCH_HET_JOB, REQUEST_KILL_JOB = 4025, 4028, 5032
REQUEST_UPDATE_CRONTAB = 2202
REQUEST_JOB_ID, REQUEST_DAEMON_STATUS, REQUEST_FORWARD_DATA, REQUEST_FILE_BCAST = 2013, 5024, 5029, 6014
REQUEST_BATCH_JOB_LAUNCH, REQUEST_TERMINATE_JOB, REQUEST_STEP_COMPLETE, RESPONSE_LAUNCH_TASKS = 4005, 6011, 5016, 6002
REQUEST_REATTACH_TASKS, REQUEST_SIGNAL_TASKS, REQUEST_TERMINATE_TASKS, REQUEST_JOB_STEP_STAT = 6007, 6004, 6006, 5019
RESPONSE_JOB_STEP_STAT, RESPONSE_PING_SLURMD, RESPONSE_FORWARD_FAILED = 5020, 1016, 9001
ROOT_ID, SLURM_ID, USER_ID = 0, 64030, 2001


@pytest.mark.parametrize(
    ("message", "read"),
    [
        ((REQUEST_SUBMIT_BATCH_JOB, USER_ID, True, 0, SLURMCTLDS), True),
        ((REQUEST_PING, USER_ID, True, 0, SLURMCTLDS), True),
        ((REQUEST_CONTROL_STATUS, USER_ID, True, 0, SLURMCTLDS), True),
        ((RESPONSE_SLURM_RC, USER_ID, True, 0, SLURMCTLDS), True),
        ((REQUEST_PING, USER_ID, False, 0, SLURMCTLDS), True),
        ((RESPONSE_JOB_INFO, USER_ID, True, 0, SLURMCTLDS), False),
        ((RESPONSE_TOPO_INFO, USER_ID, True, 0, SLURMCTLDS), False),
        ((REQUEST_LAUNCH_TASKS, USER_ID, True, 0, SLURMCTLDS), False),
        ((MESSAGE_NODE_REGISTRATION_STATUS, USER_ID, True, 0, SLURMCTLDS), False),
        ((REQUEST_LAUNCH_TASKS, ROOT_ID, False, 0, SLURMCTLDS), False),
        ((REQUEST_PING, USER_ID, True, RESPONSE_SLURM_RC, SLURMCTLDS), False),
        ((REQUEST_PING, ROOT_ID, True, RESPONSE_SLURM_RC, SLURMCTLDS), False),
        ((MESSAGE_NODE_REGISTRATION_STATUS, ROOT_ID, True, 0, SLURMCTLDS), True),
        ((MESSAGE_NODE_REGISTRATION_STATUS, SLURM_ID, True, 0, SLURMCTLDS), True),
        ((RESPONSE_JOB_INFO, ROOT_ID, True, 0, SLURMCTLDS), True),
        ((RESPONSE_JOB_INFO, USER_ID, False, 0, AN_ANSWER), True),
    ],
)
def test_of_users_only_messages_that_their_programs_send_are_read(
    build: Path, message: tuple[int, int, bool, int, int], read: bool
) -> None:
    """A message is a type and a sender, whether it is signed, an answer in its header, and what it is received as."""
    kind, sender, is_signed, answers, by = message
    assert told(build, kind, sender, is_signed=is_signed, answers=answers, by=by)[0] == read


@pytest.mark.parametrize("by", [SLURMDS_24, SLURMDS_26])
@pytest.mark.parametrize(
    ("kinds", "sender", "read"),
    [
        ([REQUEST_LAUNCH_TASKS, REQUEST_SIGNAL_TASKS, REQUEST_TERMINATE_TASKS], USER_ID, True),
        ([REQUEST_REATTACH_TASKS, REQUEST_FILE_BCAST, REQUEST_JOB_STEP_STAT], USER_ID, True),
        ([REQUEST_JOB_ID, REQUEST_DAEMON_STATUS, REQUEST_FORWARD_DATA], USER_ID, True),
        ([REQUEST_BATCH_JOB_LAUNCH, REQUEST_TERMINATE_JOB, REQUEST_STEP_COMPLETE], USER_ID, False),
        ([REQUEST_PING, REQUEST_SUBMIT_BATCH_JOB, RESPONSE_LAUNCH_TASKS, RESPONSE_SLURM_RC], USER_ID, False),
        ([REQUEST_BATCH_JOB_LAUNCH, REQUEST_TERMINATE_JOB, REQUEST_PING], SLURM_ID, True),
        ([REQUEST_STEP_COMPLETE, REQUEST_FORWARD_DATA], ROOT_ID, True),
    ],
)
def test_slurmd_reads_of_users_only_messages_that_their_programs_send_to_it(
    build: Path, kinds: list[int], sender: int, by: int, read: bool
) -> None:
    for kind in kinds:
        assert told(build, kind, sender, by=by)[0] == read


@pytest.mark.parametrize("by", [SLURMDS_24, SLURMDS_26])
def test_slurmd_reads_no_message_without_a_signature_of_the_daemons_types_and_no_answers_in_a_header(
    build: Path, by: int
) -> None:
    assert told(build, REQUEST_TERMINATE_JOB, ROOT_ID, is_signed=False, by=by) == (False, "")
    assert told(build, REQUEST_LAUNCH_TASKS, ROOT_ID, answers=RESPONSE_SLURM_RC, by=by) == (False, "")


@pytest.mark.parametrize(
    ("by", "kind", "answers", "read"),
    [
        (A_RETURN_CODE, RESPONSE_SLURM_RC, 0, True),
        (A_RETURN_CODE, RESPONSE_SLURM_RC, RESPONSE_SLURM_RC, False),
        (A_RETURN_CODE, RESPONSE_JOB_INFO, 0, False),
        (A_RETURN_CODE, RESPONSE_JOB_STEP_STAT, 0, False),
        (ANSWERS, RESPONSE_SLURM_RC, 0, True),
        (ANSWERS, RESPONSE_JOB_STEP_STAT, RESPONSE_SLURM_RC, True),
        (ANSWERS, RESPONSE_SLURM_RC, RESPONSE_FORWARD_FAILED, True),
        (ANSWERS, RESPONSE_SLURM_RC, RESPONSE_JOB_INFO, False),
        (ANSWERS, RESPONSE_JOB_INFO, 0, False),
        (ANSWERS, RESPONSE_JOB_INFO, RESPONSE_SLURM_RC, False),
        (ANSWERS, REQUEST_LAUNCH_TASKS, 0, False),
        (PASSED_ON, RESPONSE_PING_SLURMD, RESPONSE_PING_SLURMD, True),
        (PASSED_ON, RESPONSE_SLURM_RC, RESPONSE_TOPO_INFO, False),
        (PASSED_ON, RESPONSE_TOPO_INFO, 0, False),
    ],
)
def test_of_answers_that_a_user_may_give_only_what_slurmd_and_srun_answer_is_read(
    build: Path, by: int, kind: int, answers: int, read: bool
) -> None:
    """srun answers slurmstepd and slurmctld, and a user's program may listen in place of a slurmd that is down."""
    body = NO_BODY if kind == RESPONSE_FORWARD_FAILED else A_BODY
    assert told(build, kind, USER_ID, is_signed=False, by=by, answers=answers, body=body)[0] == read


@pytest.mark.parametrize(("size", "read"), [(8 << 20, True), (66 << 20, False)])
def test_an_answer_has_a_size(build: Path, size: int, read: bool) -> None:
    for by in ANSWERS, PASSED_ON:
        assert told(build, RESPONSE_SLURM_RC, ROOT_ID, by=by, strings=size)[0] == read


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
    assert told(build, kind, sender, body=NO_BODY) == (read, "")


@pytest.mark.parametrize(
    ("sender", "strings", "read"), [(USER_ID, 8 << 20, True), (USER_ID, 9 << 20, False), (ROOT_ID, 9 << 20, True)]
)
def test_a_users_message_of_too_many_strings_is_not_read(build: Path, sender: int, strings: int, read: bool) -> None:
    assert told(build, REQUEST_SUBMIT_BATCH_JOB, sender, strings=strings)[0] == read


@pytest.mark.parametrize("by", [SLURMCTLDS, SLURMDS_24, SLURMDS_26])
@pytest.mark.parametrize(
    ("sender", "bits", "read"), [(USER_ID, 16 << 20, True), (USER_ID, 17 << 20, False), (ROOT_ID, 17 << 20, True)]
)
def test_a_users_message_of_a_bitmap_that_no_cluster_needs_is_not_read(
    build: Path, sender: int, bits: int, by: int, read: bool
) -> None:
    kind = REQUEST_SUBMIT_BATCH_JOB if by == SLURMCTLDS else REQUEST_LAUNCH_TASKS
    assert told(build, kind, sender, by=by, bits=bits)[0] == read


@pytest.mark.parametrize(("offset", "read"), [(10, True), (100, True), (9, False), (101, False)])
def test_slurmd_reads_no_byte_that_a_users_message_does_not_have(build: Path, offset: int, read: bool) -> None:
    for by in SLURMDS_24, SLURMDS_26:
        assert told(build, REQUEST_LAUNCH_TASKS, USER_ID, by=by, offset=offset)[0] == read
        assert told(build, REQUEST_LAUNCH_TASKS, ROOT_ID, by=by, offset=offset)[0]


@pytest.mark.parametrize(
    ("passed_on", "names", "read"),
    [
        (3, THREE_HOSTS, True),
        (2, THREE_HOSTS, False),
        (3, NO_LIST_OF_HOSTS, False),
        (3, NO_NAMES, False),
        (0, NO_NAMES, True),
    ],
)
@pytest.mark.parametrize("is_signed", [True, False])
def test_a_message_that_slurmd_passes_on_is_for_hosts_and_takes_no_more_threads_than_the_cluster_sets(
    build: Path, passed_on: int, names: int, is_signed: bool, read: bool
) -> None:
    """slurmd passes it on before it asks for the sender, and would end without a list of hosts."""
    for by in SLURMDS_24, SLURMDS_26:
        kind = REQUEST_JOB_ID
        assert told(build, kind, USER_ID, by=by, is_signed=is_signed, passed_on=passed_on, names=names)[0] == read


@pytest.mark.parametrize(("strings", "offset"), [(9 << 20, 20), (1, 9)])
def test_a_users_tasks_that_are_refused_are_freed_without_an_array_that_was_not_allocated(
    build: Path, strings: int, offset: int
) -> None:
    """slurmd would read that array. A user could fill its memory with tasks that are not freed."""
    sent = told(build, REQUEST_LAUNCH_TASKS, USER_ID, by=SLURMDS_26, strings=strings, offset=offset)
    assert sent == (False, "freed" if strings > 1 else "")


@pytest.mark.parametrize(("sender", "read"), [(USER_ID, False), (SLURM_ID, True)])
def test_a_job_in_a_users_launch_is_not_read(build: Path, sender: int, read: bool) -> None:
    """slurmd would end, as its reader needs a bitmap that was refused."""
    assert told(build, REQUEST_LAUNCH_TASKS, sender, by=SLURMDS_26, has_job=True)[0] == read


@pytest.mark.parametrize(
    ("sender", "nodes", "read"), [(USER_ID, 3, True), (USER_ID, 2, False), (USER_ID, 0, False), (ROOT_ID, 0, True)]
)
def test_a_users_launch_on_fewer_nodes_than_it_names_is_not_read(
    build: Path, sender: int, nodes: int, read: bool
) -> None:
    """slurmd would look for its tasks beyond the nodes."""
    assert told(build, REQUEST_LAUNCH_TASKS, sender, by=SLURMDS_26, nodes=nodes)[0] == read


@pytest.mark.parametrize("body", [A_JOB, A_LIST_OF_JOBS, A_CRONTAB])
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
    build: Path, body: int, sender: int, filled: int, job: str
) -> None:
    """It has no other clusters, and its switches are on or off, or not set (0xfe)."""
    kinds = {
        A_JOB: (REQUEST_SUBMIT_BATCH_JOB, REQUEST_RESOURCE_ALLOCATION, REQUEST_JOB_WILL_RUN, REQUEST_UPDATE_JOB),
        A_LIST_OF_JOBS: (REQUEST_HET_JOB_ALLOCATION, REQUEST_SUBMIT_BATCH_HET_JOB),
        A_CRONTAB: (REQUEST_UPDATE_CRONTAB,),
    }
    for kind in kinds[body]:
        assert told(build, kind, sender, body=body, filled=filled) == (True, job)


@pytest.mark.parametrize(("refused", "times", "is_valid"), [(0, 5, True), (1, 5, False), (0, 4, False), (0, 0, False)])
def test_a_line_of_a_crontab_without_all_of_its_times_is_invalid(
    build: Path, refused: int, times: int, is_valid: bool
) -> None:
    """slurmctld would end."""
    assert run(build, refused, times) == (is_valid, "")


def test_a_crontab_without_jobs_is_read(build: Path) -> None:
    assert told(build, REQUEST_UPDATE_CRONTAB, USER_ID, body=NO_CRONTAB) == (True, "")


@pytest.mark.parametrize(("sender", "job"), [(USER_ID, ""), (ROOT_ID, "NULL")])
def test_a_users_cancellation_without_a_job_is_one_of_an_empty_name(build: Path, sender: int, job: str) -> None:
    assert told(build, REQUEST_KILL_JOB, sender, body=A_CANCELLATION) == (True, job)


@pytest.mark.parametrize("kind", [REQUEST_REATTACH_TASKS, REQUEST_FORWARD_DATA])
@pytest.mark.parametrize(("sender", "text"), [(USER_ID, ""), (ROOT_ID, "NULL")])
def test_a_user_who_names_no_key_of_a_step_and_no_socket_names_an_empty_one(
    build: Path, kind: int, sender: int, text: str
) -> None:
    """slurmd would end."""
    for by in SLURMDS_24, SLURMDS_26:
        assert told(build, kind, sender, by=by, body=NO_TEXT) == (True, text)


@pytest.mark.parametrize(
    ("sender", "size", "left"),
    [(USER_ID, 64 << 20, 64 << 20), (USER_ID, (64 << 20) + 1, 64 << 20), (ROOT_ID, 1 << 30, 1 << 30)],
)
def test_a_users_compressed_block_of_a_file_has_a_size(build: Path, sender: int, size: int, left: int) -> None:
    """slurmd takes as much memory as the block says that it has without compression."""
    for by in SLURMDS_24, SLURMDS_26:
        assert told(build, REQUEST_FILE_BCAST, sender, by=by, body=A_BLOCK, filled=size) == (True, str(left))
