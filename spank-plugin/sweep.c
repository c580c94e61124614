#include "sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "numbers.h"

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

static int may_be_signalled(int process, int reading, void *unused)
{
    (void)reading;
    (void)unused;
    return process != getpid() && kill(process, 0) == 0;
}

void sweep_processes(void)
{
    const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};

    /* Each round reaches what was forked during the one before. Linux says nothing of whether it has reached any. */
    for (int i = 0; i < KILL_ROUNDS; i++) {
        kill(-1, SIGKILL);
        if (numbers_each("/proc", may_be_signalled, NULL) == 0)
            return;
        nanosleep(&pause, NULL);
    }
}

struct place {
    int top;
    dev_t device;
    uid_t user;
    unsigned long moved; /* directories that were too deep, and now lie at the top */
};

static void sweep_level(struct place *place, int directory, int depth);

/* A directory below MAX_DEPTH is moved to the top, where the next round finds it. */
static void move_up(struct place *place, int directory, const char *name)
{
    char new_name[64];

    snprintf(new_name, sizeof(new_name), ".leftover-%d-%lu", (int)getpid(), place->moved);
    if (renameat(directory, name, place->top, new_name) == 0)
        place->moved++;
}

static void sweep_entry(struct place *place, int directory, const char *name, int depth)
{
    struct stat status;
    int inner;

    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) < 0 || (depth == 0 && status.st_uid != place->user))
        return;
    if (!S_ISDIR(status.st_mode)) {
        unlinkat(directory, name, 0);
        return;
    }
    if (unlinkat(directory, name, AT_REMOVEDIR) == 0)
        return;
    if (fchmodat(directory, name, 0700, 0) < 0 && errno != EPERM) /* EPERM: of another user, perhaps open all the same */
        return;
    if (depth >= MAX_DEPTH) {
        move_up(place, directory, name);
        return;
    }
    if ((inner = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
        return;
    if (fstat(inner, &status) == 0 && status.st_dev == place->device)
        sweep_level(place, inner, depth + 1);
    close(inner);
    unlinkat(directory, name, AT_REMOVEDIR);
}

static void sweep_level(struct place *place, int directory, int depth)
{
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;

    if (!listing) {
        if (copy >= 0)
            close(copy);
        return;
    }
    while ((entry = readdir(listing)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            sweep_entry(place, directory, entry->d_name, depth);
    closedir(listing);
}

void sweep_directory(int directory, uid_t user)
{
    struct place place = {.top = directory, .user = user};
    struct stat status;
    unsigned long before;

    if (fstat(directory, &status) < 0)
        return;
    place.device = status.st_dev;
    for (int i = 0; i < MAX_ROUNDS; i++) {
        before = place.moved;
        sweep_level(&place, directory, 0);
        if (place.moved == before)
            return;
    }
}

static bool is_of(const struct ipc_perm *owner, uid_t user)
{
    return owner->uid == user || owner->cuid == user;
}

/* The index of the last object in use, of each kind, is what the *_INFO calls return (shmctl(2), semctl(2), msgctl(2)). */
void sweep_ipc(uid_t user)
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
    int id, last;

    last = shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&shared);
    for (int i = 0; i <= last; i++)
        if ((id = shmctl(i, SHM_STAT_ANY, &segment)) >= 0 && is_of(&segment.shm_perm, user))
            shmctl(id, IPC_RMID, NULL);
    argument.info = &semaphores;
    last = semctl(0, 0, SEM_INFO, argument);
    argument.status = &set;
    for (int i = 0; i <= last; i++)
        if ((id = semctl(i, 0, SEM_STAT_ANY, argument)) >= 0 && is_of(&set.sem_perm, user))
            semctl(id, 0, IPC_RMID);
    last = msgctl(0, MSG_INFO, (struct msqid_ds *)(void *)&messages);
    for (int i = 0; i <= last; i++)
        if ((id = msgctl(i, MSG_STAT_ANY, &queue)) >= 0 && is_of(&queue.msg_perm, user))
            msgctl(id, IPC_RMID, NULL);
}
