/*
 * nvidia-smi for tests: recorded output with the version that NVML gives. It asks the C library for `write` and `_exit`
 * alone, in versions that every glibc of the last twenty years has.
 */
#include <unistd.h>

int nvmlInit_v2(void);
int nvmlSystemGetDriverVersion(char *version, unsigned int length);

static const char BEFORE[] =
    "+-----------------------------------------------------------------------------------------+\n"
    "| NVIDIA-SMI ";
static const char AFTER[] =
    "                                                                   |\n"
    "|-----------------------------------------+------------------------+----------------------|\n"
    "|   0  NVIDIA H200                    On  |   00000000:03:00.0 Off |                    0 |\n"
    "+-----------------------------------------+------------------------+----------------------+\n";

__attribute__((force_align_arg_pointer)) void _start(void)
{
    char version[80];
    unsigned int length = 0;

    if (nvmlInit_v2() != 0 || nvmlSystemGetDriverVersion(version, sizeof(version)) != 0)
        _exit(1);
    while (version[length])
        length++;
    _exit(write(1, BEFORE, sizeof(BEFORE) - 1) < 0 || write(1, version, length) < 0 ||
          write(1, AFTER, sizeof(AFTER) - 1) < 0);
}
