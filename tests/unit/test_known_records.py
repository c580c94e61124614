"""known_records.so (images/bounds) in front of what stands for libslurm and slurmdbd."""

import subprocess
from pathlib import Path

import pytest

from tests.unit.guarded_program import compiled

LIBRARY = """\
#include <slurm/slurm.h>
#include <stdlib.h>
slurm_conf_t slurm_conf = {.slurm_user_id = 64030};
void *bit_alloc(long long count) { return calloc(count / 8 + 1, 1); }
void *slurm_xcalloc(size_t count, size_t size, _Bool clear, _Bool may_fail, const char *file, int line, const char *by)
{
    return calloc(count, size);
}

struct message { unsigned type, user, is_signed, answers; };
struct buffer {
    unsigned magic;
    unsigned char *bytes;
    unsigned size, read;
    struct message *begins;
    unsigned strings, bits;
};
int unpack_msg(void *unpacked, void *buffer) { return 0; }
int unpack_header(unsigned short *header, struct message *message)
{
    header[2] = message->type;
    return message->answers ? unpack_msg(NULL, message) : 0;
}
void auth_g_get_ids(void *credential, unsigned *user, unsigned *group) { *user = *(unsigned *)credential; }
static int receive(struct message *message)
{
    unsigned short header[3];
    unsigned user, group;

    if (unpack_header(header, message))
        return -1;
    if (message->is_signed)
        auth_g_get_ids(&message->user, &user, &group);
    return unpack_msg(NULL, message);
}
int unpack_slurmdbd_msg(void *record, unsigned short version, struct buffer *buffer)
{
    if (buffer->begins)
        return receive(buffer->begins);
    return slurm_xcalloc(buffer->strings, sizeof(char *), 1, 1, "", 0, "") && bit_alloc(buffer->bits) ? 0 : -1;
}
static _Bool has_memory(size_t size, const char *by) { return slurm_xcalloc(1, size, 1, 0, "", 0, by); }
int begin(const unsigned *numbers)
{
    unsigned char bytes[] = {6500 >> 8, 6500 & 255};
    struct message message = {numbers[0], numbers[1], numbers[2], numbers[3]};
    struct buffer buffer = {.bytes = bytes, .size = sizeof(bytes), .begins = &message};

    return unpack_slurmdbd_msg(NULL, 1, &buffer);
}
int _process_service_connection(const unsigned *numbers)
{
    unsigned char bytes[] = {9, 9, numbers[0] >> 8, numbers[0]};
    struct buffer buffer = {.bytes = bytes, .size = numbers[0] ? 4 : 3, .read = 2};

    buffer.strings = numbers[2];
    buffer.bits = numbers[3];
    return has_memory(numbers[1], "others") && has_memory(numbers[1], __func__) ?
        unpack_slurmdbd_msg(NULL, 1, &buffer) : -1;
}
"""
"""What stands for libslurm."""

PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
int begin(const unsigned *numbers);
int _process_service_connection(const unsigned *numbers);
int main(int count, char **words)
{
    unsigned numbers[8] = {0};

    for (int i = 1; i < count && i <= 8; i++)
        numbers[i - 1] = atoi(words[i]);
    printf("%d", numbers[0] ? begin(numbers) : -1);
    printf(" %d", _process_service_connection(numbers + 4));
    return 0;
}
"""
"""Begin a connection, unless the first word is 0, and read a record. Its words are numbers: those of `told`."""

BEGINNING, PING, JOB_INFO = 6500, 1008, 2004
FINI, GET_USERS, ADD_USERS, GET_JOBS, SHUTDOWN, GET_CONFIG = 1401, 1415, 1406, 1444, 1492, 1466
CLUSTER_TRES, GOT_JOBS, JOB_START, RETURN_CODE, REGISTER, MANY, ADD_TRES = 1407, 1421, 1425, 1433, 1434, 1474, 1485
ROOT_ID, SLURM_ID, USER_ID = 0, 64030, 2001
MIB = 1 << 20


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("records"), "known_records.so", LIBRARY, PROGRAM)


def told(
    build: Path,
    user: int,
    record: int = GET_USERS,
    *,
    first: int = BEGINNING,
    is_signed: bool = True,
    answers: bool = False,
    size: int = 100,
    strings: int = 1,
    bits: int = 1,
) -> tuple[bool, bool]:
    """Return whether the first message of a connection is read, and whether a record is.

    Args:
        build: the libraries and the program.
        user: who begins the connection.
        record: type of the record, or 0 for one without a type.
        first: type of the first message, or 0 for none.
        is_signed: the first message has a signature.
        answers: its header brings answers.
        size: bytes of the record.
        strings: their number in the record.
        bits: those of a bitmap in the record.

    """
    numbers = [first, user, is_signed, answers, record, size, strings, bits]
    command = [str(build / "program"), *(str(int(number)) for number in numbers)]
    environment = {"LD_PRELOAD": str(build / "known_records.so")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    begun, read = done.stdout.split()
    return begun == "0", read == "0"


@pytest.mark.parametrize("is_signed", [True, False])
@pytest.mark.parametrize("user", [USER_ID, ROOT_ID])
@pytest.mark.parametrize("first", [PING, JOB_INFO])
def test_no_other_message_is_taken_for_the_one_that_begins_a_connection(
    build: Path, first: int, user: int, is_signed: bool
) -> None:
    """slurmdbd would end of one without a body, or without a signature."""
    assert told(build, user, first=first, is_signed=is_signed) == (False, False)


def test_answers_in_the_header_of_the_message_that_begins_a_connection_are_not_read(build: Path) -> None:
    assert told(build, USER_ID, answers=True) == (False, False)


@pytest.mark.parametrize("record", [FINI, GET_USERS, ADD_USERS, GET_JOBS, SHUTDOWN, GET_CONFIG])
def test_records_that_users_programs_send_are_read_of_everyone_who_is_known(build: Path, record: int) -> None:
    assert told(build, USER_ID, record) == (True, True)
    assert told(build, SLURM_ID, record) == (True, True)
    assert told(build, USER_ID, record, is_signed=False) == (False, False)
    assert told(build, USER_ID, record, first=0) == (False, False)


@pytest.mark.parametrize(
    "record", [CLUSTER_TRES, GOT_JOBS, JOB_START, RETURN_CODE, REGISTER, MANY, ADD_TRES, BEGINNING + 1, 0]
)
def test_records_of_daemons_and_answers_are_read_of_root_and_slurm_alone(build: Path, record: int) -> None:
    assert told(build, USER_ID, record) == (True, False)
    assert told(build, ROOT_ID, record) == (True, True)
    assert told(build, SLURM_ID, record) == (True, True)


@pytest.mark.parametrize(
    ("size", "strings", "bits", "read"),
    [
        (2 * MIB, 1, 1, True),
        (2 * MIB + 1, 1, 1, False),
        (100, MIB // 4, 1, True),
        (100, MIB, 1, False),
        (100, 1, 16 * MIB, True),
        (100, 1, 17 * MIB, False),
    ],
)
def test_a_users_record_has_a_size(build: Path, size: int, strings: int, bits: int, read: bool) -> None:
    assert told(build, USER_ID, size=size, strings=strings, bits=bits) == (True, read)
    assert told(build, SLURM_ID, size=size, strings=strings, bits=bits) == (True, True)
