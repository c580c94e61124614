#include "leftovers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sweep.h"

#define NO_GROUP 65534
#define MAX_PLACES 16

/* Open the user's directory of notes and wait until nobody else works on it; closing it lets the next one in. */
static int lock_notes(uid_t user, struct failure *failure)
{
    char path[sizeof(LEFTOVERS_JOBS) + 16];
    int notes;

    snprintf(path, sizeof(path), LEFTOVERS_JOBS "/%u", user);
    if ((mkdir(LEFTOVERS_JOBS, 0700) < 0 && errno != EEXIST) || (mkdir(path, 0700) < 0 && errno != EEXIST))
        return fail(failure, "make", path);
    if ((notes = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
        return fail(failure, "open", path);
    while (flock(notes, LOCK_EX) < 0)
        if (errno != EINTR) {
            fail(failure, "lock", path);
            close(notes);
            return -1;
        }
    return notes;
}

int leftovers_note(uid_t user, uint32_t job_id, struct failure *failure)
{
    int notes = lock_notes(user, failure);
    char name[16];
    int note;

    if (notes < 0)
        return -1;
    snprintf(name, sizeof(name), "%u", job_id);
    note = openat(notes, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (note < 0)
        fail(failure, "note the job in " LEFTOVERS_JOBS, name);
    else
        close(note);
    close(notes);
    return note < 0 ? -1 : 0;
}

/* Tell whether no job is noted. Where that cannot be told, one is. */
static bool is_empty(int notes)
{
    int copy = openat(notes, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;
    bool empty;

    if (!listing) {
        if (copy >= 0)
            close(copy);
        return false;
    }
    errno = 0;
    while ((entry = readdir(listing)) && entry->d_name[0] == '.')
        ;
    empty = !entry && errno == 0;
    closedir(listing);
    return empty;
}

/* Open the node's own directories, while still root. Returns how many, or -1. */
static int open_places(int places[MAX_PLACES], struct failure *failure)
{
    FILE *list = fopen(LEFTOVERS_PLACES, "re");
    char path[PATH_MAX];
    int count = 0;

    if (!list)
        return errno == ENOENT ? 0 : fail(failure, "open", LEFTOVERS_PLACES);
    while (count < MAX_PLACES && fgets(path, sizeof(path), list)) {
        path[strcspn(path, "\n")] = '\0';
        if ((places[count] = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0) {
            fail(failure, "open", path);
            fclose(list);
            return -1;
        }
        count++;
    }
    fclose(list);
    return count;
}

/* In a child: become the user for good, and remove all that is the user's. */
static _Noreturn void sweep_as(uid_t user, const int places[], int count)
{
    if (setgroups(0, NULL) < 0 || setresgid(NO_GROUP, NO_GROUP, NO_GROUP) < 0 || setresuid(user, user, user) < 0)
        _exit(EXIT_FAILURE);
    sweep_processes();
    for (int i = 0; i < count; i++)
        sweep_directory(places[i], user);
    sweep_ipc(user);
    _exit(EXIT_SUCCESS);
}

static int await(pid_t child, struct failure *failure)
{
    const struct timespec pause = {.tv_nsec = 5 * 1000 * 1000};
    time_t end = time(NULL) + LEFTOVERS_SECONDS;
    int status;

    while (waitpid(child, &status, WNOHANG) == 0) {
        if (time(NULL) > end) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return fail_saying(failure, FAILURE_JOB, "remove what a user has left: not done after %d seconds",
                               LEFTOVERS_SECONDS);
        }
        nanosleep(&pause, NULL);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS)
        return 0;
    return fail_saying(failure, FAILURE_JOB, "remove what a user has left: ended with status %d", status);
}

static int sweep(uid_t user, struct failure *failure)
{
    int places[MAX_PLACES], count = open_places(places, failure);
    pid_t child;

    if (count < 0)
        return -1;
    if ((child = fork()) < 0)
        return fail(failure, "fork to remove", "what a user has left");
    if (child == 0)
        sweep_as(user, places, count);
    for (int i = 0; i < count; i++)
        close(places[i]);
    return await(child, failure);
}

int leftovers_remove(uid_t user, uint32_t job_id, struct failure *failure)
{
    char name[16];
    int notes, result = 0;

    if (user == 0)
        return 0; /* jobs of root are refused; nothing of the container's is to go */
    if ((notes = lock_notes(user, failure)) < 0)
        return -1;
    snprintf(name, sizeof(name), "%u", job_id);
    if (unlinkat(notes, name, 0) < 0 && errno != ENOENT)
        result = fail(failure, "remove the note in " LEFTOVERS_JOBS, name);
    else if (is_empty(notes))
        result = sweep(user, failure);
    close(notes);
    return result;
}
