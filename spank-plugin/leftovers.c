#include "leftovers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "numeric_entries.h"

#ifndef SHM_STAT_ANY /* Linux 4.17 */
#define SHM_STAT_ANY 15
#endif
#ifndef SEM_STAT_ANY
#define SEM_STAT_ANY 20
#endif
#ifndef MSG_STAT_ANY
#define MSG_STAT_ANY 13
#endif

#define MAX_DEPTH 32  /* of directories that are open at once */
#define MAX_ROUNDS 4096 /* through a directory: each takes off MAX_DEPTH levels of the deepest tree */
#define KILL_ROUNDS 200
#define FOUND 1

/* List an open directory, from its beginning; NULL where it cannot be. */
static DIR *list(int directory)
{
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = copy < 0 ? NULL : fdopendir(copy);

    if (!listing && copy >= 0)
        close(copy);
    return listing;
}

static int may_be_signalled(int process, int reading, void *unused)
{
    (void)reading;
    (void)unused;
    return process != getpid() && kill(process, 0) == 0;
}

void leftovers_kill(void)
{
    const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};

    /* Each round reaches what was forked during the one before. kill(2) does not report which it has reached. */
    for (int i = 0; i < KILL_ROUNDS; i++) {
        kill(-1, SIGKILL);
        if (numeric_entries_each("/proc", may_be_signalled, NULL) == 0)
            return;
        nanosleep(&pause, NULL);
    }
}

struct place {
    int top;
    uid_t user;
    bool moved; /* directories that were too deep, and now lie at the top */
};

static void remove_level(struct place *place, int directory, int depth);

/* A directory below MAX_DEPTH is moved to the top, where the next round finds it. Nobody knows its name beforehand. */
static void move_up(struct place *place, int directory, const char *name)
{
    char new_name[64];
    uint64_t random;

    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        return;
    snprintf(new_name, sizeof(new_name), ".leftover-%016" PRIx64, random);
    place->moved |= renameat(directory, name, place->top, new_name) == 0;
}

/* Open a directory on the same mount: what is mounted in it may be a volume of its own. */
static int open_inner(int directory, const char *name)
{
    struct open_how how = {
        .flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
    };

    return (int)syscall(SYS_openat2, directory, name, &how, sizeof(how));
}

static void remove_entry(struct place *place, int directory, const char *name, int depth)
{
    struct stat status;
    bool own;
    int inner;

    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    own = status.st_uid == place->user;
    if (own && unlinkat(directory, name, S_ISDIR(status.st_mode) ? AT_REMOVEDIR : 0) == 0)
        return;
    if (!S_ISDIR(status.st_mode) || (own && fchmodat(directory, name, 0700, 0) < 0))
        return;
    if (depth >= MAX_DEPTH) {
        if (own)
            move_up(place, directory, name);
        return;
    }
    if ((inner = open_inner(directory, name)) < 0)
        return;
    remove_level(place, inner, depth + 1);
    close(inner);
    if (own)
        unlinkat(directory, name, AT_REMOVEDIR);
}

static void remove_level(struct place *place, int directory, int depth)
{
    DIR *listing = list(directory);
    struct dirent *entry;

    if (!listing)
        return;
    while ((entry = readdir(listing)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            remove_entry(place, directory, entry->d_name, depth);
    closedir(listing);
}

void leftovers_remove_files(int directory, uid_t user)
{
    struct place place = {.top = directory, .user = user};

    for (int i = 0; i < MAX_ROUNDS; i++) {
        place.moved = false;
        remove_level(&place, directory, 0);
        if (!place.moved)
            return;
    }
}

static bool is_of(const struct ipc_perm *owner, uid_t user)
{
    return owner->uid == user || owner->cuid == user;
}

/*
 * Find what `user` owns or has made, in the own namespace, and remove it where `remove` is set.
 *
 * The index of the last object in use, of each kind, is what the *_INFO calls return (shmctl(2), semctl(2), msgctl(2)).
 */
static bool find_ipc(uid_t user, bool remove)
{
    union {
        struct semid_ds *status;
        struct seminfo *info;
    } argument;
    struct shm_info shared;
    struct shmid_ds segment;
    struct seminfo semaphores;
    struct semid_ds set;
    struct msginfo messages;
    struct msqid_ds queue;
    bool found = false;
    int id, last;

    last = shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&shared);
    for (int i = 0; i <= last; i++)
        if ((id = shmctl(i, SHM_STAT_ANY, &segment)) >= 0 && is_of(&segment.shm_perm, user)) {
            found = true;
            if (remove)
                shmctl(id, IPC_RMID, NULL);
        }
    argument.info = &semaphores;
    last = semctl(0, 0, SEM_INFO, argument);
    argument.status = &set;
    for (int i = 0; i <= last; i++)
        if ((id = semctl(i, 0, SEM_STAT_ANY, argument)) >= 0 && is_of(&set.sem_perm, user)) {
            found = true;
            if (remove)
                semctl(id, 0, IPC_RMID);
        }
    last = msgctl(0, MSG_INFO, (struct msqid_ds *)(void *)&messages);
    for (int i = 0; i <= last; i++)
        if ((id = msgctl(i, MSG_STAT_ANY, &queue)) >= 0 && is_of(&queue.msg_perm, user)) {
            found = true;
            if (remove)
                msgctl(id, IPC_RMID, NULL);
        }
    return found;
}

void leftovers_remove_ipc(uid_t user)
{
    find_ipc(user, true);
}

static int runs_as(int process, int reading, void *user)
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
    DIR *listing = list(place);
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

bool leftovers_exist(uid_t user, const int places[], int count)
{
    if (numeric_entries_each("/proc", runs_as, &user) != 0 || find_ipc(user, false))
        return true;
    for (int i = 0; i < count; i++)
        if (is_in(user, places[i]))
            return true;
    return false;
}
