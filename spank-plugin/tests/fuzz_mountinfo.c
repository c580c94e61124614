/*
 * Fuzzing of the reader of mountinfo: mutated lines are read or refused, and paths of any bytes, written as the kernel
 * writes them (proc_pid_mountinfo(5)), are read as they are.
 *
 *   fuzz_mountinfo SECONDS SEED
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../mountinfo.h"
#include "fuzz.h"

#define LINE_SIZE 4096

static const char SEED_LINE[] = "36 35 98:0 /mnt1\\040x /mnt2\\134 rw,noatime master:1 - ext3 /dev/root rw";
static const char *const PIECES[] = {
    "\\040", "\\011", "\\012", "\\134", "\\", "\\777", "\\04", " ", "/", "-", "4294967295", "4294967296", "0", "\n", "\xff", "\r",
};

static char path[64], root[64];

static void pick_path(char *text)
{
    size_t length = fuzz_pick(sizeof(path) - 1) + 1;

    text[0] = '/';
    for (size_t i = 1; i < length; i++)
        text[i] = fuzz_pick(2) ? " \t\n\\04"[fuzz_pick(6)] : (char)(fuzz_pick(255) + 1);
    text[length] = '\0';
}

static char *write_path(char *to, const char *text)
{
    for (; *text; text++)
        to += sprintf(to, strchr(" \t\n\\", *text) ? "\\%03o" : "%c", (unsigned char)*text);
    return to + sprintf(to, " ");
}

static int see(const struct mountinfo_line *line, void *context)
{
    const char *genuine = context;

    fuzz_promise(line->point[0] == '/' || !genuine, "a mount point", line->point);
    fuzz_promise(!genuine || (strcmp(line->point, path) == 0 && strcmp(line->root, root) == 0), "as they are", genuine);
    return 0;
}

static int read_lines(const char *text, void *context)
{
    int file = memfd_create("mountinfo", MFD_CLOEXEC), result;
    size_t length = strlen(text);
    char name[64];

    fuzz_promise(file >= 0 && write(file, text, length) == (ssize_t)length, "a file", text);
    snprintf(name, sizeof(name), "/proc/self/fd/%d", file);
    result = mountinfo_each(name, see, context);
    close(file);
    return result;
}

int main(int count, char *arguments[])
{
    static char line[LINE_SIZE], genuine[LINE_SIZE];
    unsigned long runs = 0, accepted = 0;

    fuzz_begin(count, arguments);
    while (fuzz_goes_on()) {
        if (runs % 64 == 0)
            snprintf(line, sizeof(line), "%s", SEED_LINE);
        fuzz_mutate(line, sizeof(line), PIECES, FUZZ_LENGTH(PIECES));
        accepted += read_lines(line, NULL) == 0;

        pick_path(path);
        pick_path(root);
        snprintf(write_path(write_path(genuine + sprintf(genuine, "36 35 98:0 "), root), path), 64, "rw - ext3 /dev/root rw\n");
        fuzz_promise(read_lines(genuine, genuine) == 0, "a line of the kernel is read", genuine);
        runs++;
    }
    printf("%lu lines, %lu of them accepted, seed %s\n", runs, accepted, arguments[2]);
    return accepted == 0 || accepted == runs;
}
