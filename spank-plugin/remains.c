#include "remains.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "numeric_entries.h"
#include "leftovers.h"

#define FOUND 1

static int is_of(int process, int reading, void *user)
{
    char path[sizeof("/proc/4294967295/status")], line[256];
    const uid_t wanted = *(const uid_t *)user;
    uid_t real, effective, saved;
    bool found = false;
    FILE *status;

    (void)reading;
    snprintf(path, sizeof(path), "/proc/%d/status", process);
    if (!(status = fopen(path, "re")))
        return errno == ENOENT || errno == ESRCH ? 0 : -1;
    while (!found && fgets(line, sizeof(line), status))
        found = sscanf(line, "Uid: %u %u %u", &real, &effective, &saved) == 3 &&
                (real == wanted || effective == wanted || saved == wanted);
    fclose(status);
    return found ? FOUND : 0;
}

static bool may_hold(uid_t user, const struct stat *entry)
{
    return entry->st_uid == user ||
           (S_ISDIR(entry->st_mode) && entry->st_uid != 0 && (entry->st_mode & (S_IWGRP | S_IWOTH)));
}

static bool is_in(uid_t user, int place)
{
    DIR *listing = leftovers_list(place);
    struct dirent *entry = NULL;
    struct stat status;
    bool found = false;

    if (!listing)
        return true;
    while (!found && (errno = 0, entry = readdir(listing)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            found = fstatat(place, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && may_hold(user, &status);
    found |= !entry && errno != 0;
    closedir(listing);
    return found;
}

bool remains_any(uid_t user, const int places[], int count)
{
    if (numeric_entries_each("/proc", is_of, &user) != 0 || leftovers_ipc(user, false))
        return true;
    for (int i = 0; i < count; i++)
        if (is_in(user, places[i]))
            return true;
    return false;
}
