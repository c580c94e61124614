#include "user_cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "leftovers.h"

#define NO_GROUP 65534
#define MAX_PLACES 16

/*
 * Below what a process of the cleaner has as real and saved user id, its own number added: an id that no other process has.
 * Of a user's processes none may signal it then (kill(2)), and it none but theirs.
 */
#define NOBODYS_IDS 4200000000u

/* Open the user's file and lock it; it is free again when all who have it have closed it. */
static int lock_user(uid_t user, int operation, struct failure *failure)
{
    char path[sizeof(USER_CLEANUP_LOCKS) + 16];
    int lock;

    snprintf(path, sizeof(path), USER_CLEANUP_LOCKS "/%u", user);
    if (mkdir(USER_CLEANUP_LOCKS, 0700) < 0 && errno != EEXIST)
        return fail(failure, "make", USER_CLEANUP_LOCKS);
    if ((lock = open(path, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0)
        return fail(failure, "open", path);
    while (flock(lock, operation) < 0)
        if (errno != EINTR) {
            fail(failure, "lock", path);
            close(lock);
            return -1;
        }
    return lock;
}

int user_cleanup_await(uid_t user, struct failure *failure)
{
    int lock = lock_user(user, LOCK_SH, failure);

    if (lock < 0)
        return -1;
    close(lock);
    return 0;
}

/* Open the node's own directories, while still root. Returns how many, or -1. */
static int open_places(int places[MAX_PLACES], struct failure *failure)
{
    FILE *list = fopen(USER_CLEANUP_DIRECTORIES, "re");
    char path[PATH_MAX];
    int count = 0;

    if (!list)
        return errno == ENOENT ? 0 : fail(failure, "open", USER_CLEANUP_DIRECTORIES);
    while (count < MAX_PLACES && fgets(path, sizeof(path), list)) {
        path[strcspn(path, "\n")] = '\0';
        if ((places[count] = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) >= 0)
            count++; /* one that is not there keeps nothing */
    }
    fclose(list);
    return count;
}

/* Without the standard descriptors a lock would get the number of one, and be closed by detach_from_slurmd(). */
static int open_standard_descriptors(struct failure *failure)
{
    int nothing;

    do
        nothing = open("/dev/null", O_RDWR);
    while (nothing >= 0 && nothing <= STDERR_FILENO);
    return nothing < 0 ? fail(failure, "open", "/dev/null") : close(nothing);
}

/* Let nobody wait for this process: slurmd reads what it could print, and ends its process group. */
static int detach_from_slurmd(void)
{
    int nothing = open("/dev/null", O_RDWR);

    if (nothing < 0 || setsid() < 0)
        return -1;
    for (int i = 0; i < 3; i++)
        if (dup2(nothing, i) < 0)
            return -1;
    return 0;
}

/* In a child: get the rights of the user for good, and remove all that is the user's. */
static _Noreturn void clean_up_as(uid_t user, const int places[], int count)
{
    const uid_t own = NOBODYS_IDS + (uid_t)getpid();

    alarm(USER_CLEANUP_SECONDS);
    if (detach_from_slurmd() < 0 || setgroups(0, NULL) < 0 || setresgid(NO_GROUP, NO_GROUP, NO_GROUP) < 0 ||
        setresuid(own, user, own) < 0)
        _exit(EXIT_FAILURE);
    leftovers_kill();
    for (int i = 0; i < count; i++)
        leftovers_remove_files(places[i], user);
    leftovers_remove_ipc(user);
    _exit(EXIT_SUCCESS);
}

static int await(pid_t child, struct failure *failure)
{
    const struct timespec pause = {.tv_nsec = 5 * 1000 * 1000};
    int status, left = USER_CLEANUP_WAIT_SECONDS * 200;

    while (waitpid(child, &status, WNOHANG) == 0) {
        if (left-- == 0)
            return 0;
        nanosleep(&pause, NULL);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS)
        return 0;
    return fail_with(failure, FAILURE_JOB, "remove what a user has left: ended with status %d", status);
}

static int clean_up(uid_t user, const int places[], int count, struct failure *failure)
{
    pid_t child = fork();

    if (child < 0)
        return fail(failure, "fork to remove", "what a user has left");
    if (child == 0)
        clean_up_as(user, places, count);
    return await(child, failure);
}

int user_cleanup_run(uid_t user, bool (*is_last)(uid_t user, void *context), void *context, struct failure *failure)
{
    int places[MAX_PLACES], count, lock, result = 0;

    if (user == 0)
        return 0; /* jobs of root are refused; nothing of the container's is to go */
    if (open_standard_descriptors(failure) < 0)
        return -1;
    if ((lock = lock_user(user, LOCK_EX, failure)) < 0)
        return -1;
    if ((count = open_places(places, failure)) < 0)
        result = -1;
    else if (leftovers_exist(user, places, count) && is_last(user, context))
        result = clean_up(user, places, count, failure);
    for (int i = 0; i < count; i++)
        close(places[i]);
    close(lock);
    return result;
}
