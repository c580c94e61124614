#include "numeric_entries.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_number(const char *name)
{
    return name[0] != '\0' && name[strspn(name, "0123456789")] == '\0' && strtoul(name, NULL, 10) <= INT_MAX;
}

static int read_all(DIR *directory, int (*see)(int number, int reading, void *context), void *context)
{
    struct dirent *entry;
    int result = 0, saved;

    while (result == 0) {
        errno = 0; /* unset at the end, set by a failure (readdir(3)) */
        if (!(entry = readdir(directory))) {
            result = errno ? -1 : 0;
            break;
        }
        if (is_number(entry->d_name))
            result = see(atoi(entry->d_name), dirfd(directory), context);
    }
    saved = errno;
    closedir(directory);
    errno = saved;
    return result;
}

int numeric_entries_each(const char *path, int (*see)(int number, int reading, void *context), void *context)
{
    DIR *directory = opendir(path);

    return directory ? read_all(directory, see, context) : -1;
}

int numeric_entries_read(int descriptor, int (*see)(int number, int reading, void *context), void *context)
{
    DIR *directory = fdopendir(descriptor);

    if (directory)
        return read_all(directory, see, context);
    close(descriptor);
    return -1;
}
