/*
 * jail-login: prepares the jail for sessions, and runs sshd without the capability that this takes.
 *
 *   jail-login jail=/jail bind=/home ... -- /usr/sbin/sshd -D -e -f FILE      (arguments: config.h)
 *   jail-login --in-use         prints the trees that sessions of this container are in, or will be; one a line
 *
 * The sshd_config says `ChrootDirectory /run/jail/active`. When another tree becomes the active one, new sessions
 * enter that; open ones stay where they are. The command starts with a bounding set without SYS_ADMIN and SETPCAP, with
 * no_new_privs and the jobs' seccomp filter. TERM, INT, HUP and the user signals go to it, and its exit code comes back.
 */
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "confine.h"
#include "session_views.h"
#include "view_usage.h"

#define EXIT_USAGE 64
#define WAIT_SECONDS 60 /* for a tree to become active; then the container restarts and waits again */
#define TIDY_SECONDS 60 /* after a switch: a session that was just being opened has surely entered its view then */

static const int FORWARDED[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

static int complain(const struct failure *failure)
{
    fprintf(stderr, "jail-login: %s\n", failure->text);
    return EXIT_FAILURE;
}

static int print_in_use(void)
{
    struct view_usage views[VIEW_USAGE_MAX];
    struct failure failure = {FAILURE_NONE, ""};
    char active[TREE_NAME_SIZE] = "";
    int count = view_usage_find(views, &failure);
    ssize_t length = readlink(VIEWS "/active", active, sizeof(active) - 1);

    if (count < 0)
        return complain(&failure);
    active[length < 0 ? 0 : length] = '\0';
    for (int i = 0; i < count; i++)
        if (views[i].used || strcmp(views[i].tree, active) == 0)
            puts(views[i].tree);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Try until it succeeds; the last failure counts. */
static int wait_for_tree(const struct jail_config *config, struct failure *failure)
{
    const struct timespec pause = {.tv_nsec = 200 * 1000 * 1000};

    for (time_t end = time(NULL) + WAIT_SECONDS; time(NULL) < end; nanosleep(&pause, NULL))
        if (session_views_follow(config, failure) >= 0)
            return 0;
    return -1;
}

static pid_t start(char *const command[], const sigset_t *mask)
{
    struct failure failure = {FAILURE_NONE, ""};
    pid_t child = fork();

    if (child != 0)
        return child;
    sigprocmask(SIG_SETMASK, mask, NULL);
    if (confine(CAPABILITY(CAP_SYS_ADMIN) | CAPABILITY(CAP_SETPCAP), false, &failure) == 0) {
        execvp(command[0], command);
        fail(&failure, "execute", command[0]);
    }
    complain(&failure);
    _exit(127);
}

/* Reap what has ended. Returns the command's exit code when it is among that, else -1. */
static int reap(pid_t command)
{
    int status, code = -1;
    pid_t ended;

    while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
        if (ended == command)
            code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return code;
}

/* Keep the views in step with the claim; report a problem once, not every second. */
static void follow(const struct jail_config *config)
{
    static char reported[sizeof(((struct failure *)0)->text)];
    static unsigned int seconds; /* since the last switch, or the last time that all was tidy */
    struct failure failure = {FAILURE_NONE, ""};
    int switched = session_views_follow(config, &failure);

    seconds = switched > 0 ? 0 : seconds + 1;
    if (switched == 0 && seconds >= TIDY_SECONDS && session_views_tidy(&failure) == 0)
        seconds = 0;
    if (failure.scope != FAILURE_NONE && strcmp(reported, failure.text) != 0)
        complain(&failure);
    memcpy(reported, failure.text, sizeof(reported));
}

static int run(const struct jail_config *config, char *const command[])
{
    const struct timespec second = {.tv_sec = 1};
    sigset_t awaited, before;
    pid_t child;
    int code = -1;

    sigemptyset(&awaited);
    sigaddset(&awaited, SIGCHLD);
    for (size_t i = 0; i < sizeof(FORWARDED) / sizeof(FORWARDED[0]); i++)
        sigaddset(&awaited, FORWARDED[i]);
    sigprocmask(SIG_BLOCK, &awaited, &before);
    if ((child = start(command, &before)) < 0) {
        perror("jail-login: fork");
        return EXIT_FAILURE;
    }
    while (code < 0) {
        int signal = sigtimedwait(&awaited, NULL, &second);

        if (signal == SIGCHLD)
            code = reap(child);
        else if (signal > 0)
            kill(child, signal);
        else if (errno == EAGAIN)
            follow(config);
    }
    return code;
}

int main(int count, char *arguments[])
{
    static struct jail_config config;
    struct failure failure = {FAILURE_NONE, ""};
    int end = 1;

    if (count == 2 && strcmp(arguments[1], "--in-use") == 0)
        return print_in_use();
    while (end < count && strcmp(arguments[end], "--") != 0)
        end++;
    if (end >= count - 1) {
        fprintf(stderr, "usage: jail-login jail=PATH [bind=PATH[:ro]]... -- COMMAND [ARGUMENT]...\n"
                        "       jail-login --in-use\n");
        return EXIT_USAGE;
    }
    if (config_load(&config, end - 1, arguments + 1, &failure) < 0) {
        complain(&failure);
        return EXIT_USAGE;
    }
    if (session_views_prepare(&failure) < 0 || wait_for_tree(&config, &failure) < 0)
        return complain(&failure);
    return run(&config, arguments + end + 1);
}
