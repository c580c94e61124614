#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../leftovers.h"
#include "../user_cleanup.h"
#include "harness.h"
#include "world.h"

#define OWN "/run/own"
#define SEGMENT_BYTES 4096
#define DEEP 500

static struct failure failure;
static bool last = true;

static bool is_last(uid_t user, void *unused)
{
    (void)user;
    CHECK(unused == NULL);
    return last;
}

static int remove_of(uid_t user)
{
    return user_cleanup_run(user, is_last, NULL, &failure);
}

/* A node with one directory of its own. */
static void make_node(void)
{
    world_make();
    CHECK(mkdir(OWN, 0777) == 0 && chmod(OWN, 01777) == 0);
    world_write(USER_CLEANUP_DIRECTORIES, OWN "\n");
}

static int as_user(int (*function)(void *), void *argument)
{
    pid_t child = fork();

    CHECK(child >= 0);
    if (child == 0) {
        world_become_user();
        _exit(function(argument));
    }
    return test_await(child);
}

/* As in a container: its processes are those that it can signal. */
static void see_own_processes(void)
{
    CHECK(mount("proc", "/proc", "proc", 0, NULL) == 0);
}

static int leave(void *unused)
{
    (void)unused;
    CHECK(mkdir(OWN "/folder", 0700) == 0);
    world_write(OWN "/folder/file", "x");
    CHECK(chmod(OWN "/folder", 0) == 0);
    world_write(OWN "/file", "x");
    CHECK(symlink("/home", OWN "/link") == 0);
    CHECK(shmget(1, SEGMENT_BYTES, IPC_CREAT) >= 0);
    CHECK(semget(2, 1, IPC_CREAT) >= 0);
    CHECK(msgget(3, IPC_CREAT) >= 0);
    return 0;
}

static bool has_left(void)
{
    struct stat status;
    bool file = lstat(OWN "/file", &status) == 0, link = lstat(OWN "/link", &status) == 0,
         folder = lstat(OWN "/folder", &status) == 0, segment = shmget(1, 0, 0) >= 0, set = semget(2, 0, 0) >= 0,
         queue = msgget(3, 0) >= 0;

    CHECK(file == link && file == folder && file == segment && file == set && file == queue);
    return file;
}

struct scene {
    int (*play)(void *);
};

static int in_namespaces(void *scene)
{
    CHECK(unshare(CLONE_NEWIPC | CLONE_NEWPID) == 0);
    make_node();
    return test_in_child(((struct scene *)scene)->play, NULL);
}

/* The first child of a new namespace of processes is its first process, and the others end with it. */
static int in_node(int (*function)(void *))
{
    struct scene scene = {function};

    return test_in_child(in_namespaces, &scene);
}

static int end_the_last_job(void *unused)
{
    (void)unused;
    CHECK(user_cleanup_await(USER_ID, &failure) == 0);
    CHECK(as_user(leave, NULL) == 0);
    CHECK(has_left());
    CHECK(remove_of(USER_ID) == 0);
    CHECK(!has_left());
    return 0;
}

TEST(a_users_leftovers_go_with_the_last_job)
{
    CHECK(in_node(end_the_last_job) == 0);
}

static int end_one_of_two_jobs(void *unused)
{
    (void)unused;
    CHECK(as_user(leave, NULL) == 0);
    last = false;
    CHECK(remove_of(USER_ID) == 0);
    CHECK(has_left());
    last = true;
    CHECK(remove_of(USER_ID + 1) == 0);
    CHECK(has_left());
    CHECK(remove_of(USER_ID) == 0);
    CHECK(!has_left());
    return 0;
}

TEST(they_stay_while_the_user_has_another_job_and_when_others_have_not)
{
    CHECK(in_node(end_one_of_two_jobs) == 0);
}

static int keep_what_others_have(void *unused)
{
    struct stat status;

    (void)unused;
    world_write(OWN "/of-root", "x");
    world_write("/home/kept", "x");
    CHECK(mkdir(OWN "/of-root-too", 0777) == 0 && chmod(OWN "/of-root-too", 0777) == 0);
    CHECK(chown("/home/kept", USER_ID, USER_ID) == 0);
    CHECK(shmget(11, SEGMENT_BYTES, IPC_CREAT) >= 0);
    CHECK(as_user(leave, NULL) == 0);
    CHECK(remove_of(USER_ID) == 0);
    CHECK(!has_left());
    CHECK(stat(OWN "/of-root", &status) == 0 && stat(OWN "/of-root-too", &status) == 0);
    CHECK(stat("/home/kept", &status) == 0 && shmget(11, 0, 0) >= 0);
    return 0;
}

TEST(what_is_of_others_and_what_links_lead_to_stays)
{
    CHECK(in_node(keep_what_others_have) == 0);
}

static int leave_in_each_others_directories(void *unused)
{
    (void)unused;
    CHECK(mkdir(OWN "/own", 0777) == 0 && chmod(OWN "/own", 01777) == 0);
    world_write(OWN "/own/own-file", "x");
    world_write(OWN "/others/own-file", "x");
    CHECK(mkdir(OWN "/others/own", 0700) == 0);
    return 0;
}

static int keep_what_others_have_in_its_directories(void *unused)
{
    struct stat status;

    (void)unused;
    CHECK(mkdir(OWN "/others", 0777) == 0 && chmod(OWN "/others", 01777) == 0);
    CHECK(chown(OWN "/others", USER_ID + 1, USER_ID + 1) == 0);
    CHECK(as_user(leave_in_each_others_directories, NULL) == 0);
    world_write(OWN "/own/others", "x");
    CHECK(chown(OWN "/own/others", USER_ID + 1, USER_ID + 1) == 0);
    CHECK(remove_of(USER_ID) == 0);
    CHECK(stat(OWN "/own/others", &status) == 0 && stat(OWN "/others", &status) == 0);
    CHECK(stat(OWN "/own/own-file", &status) == -1 && stat(OWN "/others/own-file", &status) == -1);
    CHECK(stat(OWN "/others/own", &status) == -1);
    return 0;
}

TEST(users_who_share_a_directory_keep_what_is_theirs_and_no_more)
{
    CHECK(in_node(keep_what_others_have_in_its_directories) == 0);
}

static int leave_a_volume(void *unused)
{
    (void)unused;
    CHECK(mkdir(OWN "/volume", 0777) == 0);
    return 0;
}

static int keep_what_is_mounted(void *unused)
{
    struct stat status;

    (void)unused;
    CHECK(as_user(leave_a_volume, NULL) == 0);
    CHECK(mkdir("/run/kept", 0777) == 0 && chown("/run/kept", USER_ID, USER_ID) == 0);
    world_write("/run/kept/file", "x");
    CHECK(chown("/run/kept/file", USER_ID, USER_ID) == 0);
    CHECK(mount("/run/kept", OWN "/volume", NULL, MS_BIND, NULL) == 0);
    CHECK(remove_of(USER_ID) == 0);
    CHECK(stat("/run/kept/file", &status) == 0);
    return 0;
}

TEST(what_is_mounted_in_a_directory_stays_though_it_is_of_the_same_file_system)
{
    CHECK(in_node(keep_what_is_mounted) == 0);
}

static bool is_not_to_be_asked(uid_t user, void *unused)
{
    (void)user;
    (void)unused;
    CHECK(false);
    return true;
}

static int end_a_job_that_leaves_nothing(void *unused)
{
    (void)unused;
    see_own_processes();
    CHECK(user_cleanup_run(USER_ID, is_not_to_be_asked, NULL, &failure) == 0);
    return 0;
}

TEST(slurmctld_is_not_asked_where_nothing_is_left)
{
    CHECK(in_node(end_a_job_that_leaves_nothing) == 0);
}

static int nest(void *unused)
{
    (void)unused;
    CHECK(chdir(OWN) == 0);
    for (int i = 0; i < DEEP; i++)
        CHECK(mkdir("a-name-of-some-length", 0700) == 0 && chdir("a-name-of-some-length") == 0);
    return 0;
}

static int remove_a_deep_tree(void *unused)
{
    (void)unused;
    CHECK(as_user(nest, NULL) == 0);
    CHECK(remove_of(USER_ID) == 0);
    CHECK(rmdir(OWN) == 0);
    return 0;
}

TEST(a_tree_deeper_than_a_path_can_be_is_removed)
{
    CHECK(in_node(remove_a_deep_tree) == 0);
}

static int run_away(void *unused)
{
    pid_t child = fork();

    (void)unused;
    if (child == 0) {
        setsid();
        while (true)
            pause();
    }
    return 0;
}

static int kill_what_ran_away(void *unused)
{
    (void)unused;
    see_own_processes();
    CHECK(as_user(run_away, NULL) == 0);
    CHECK(remove_of(USER_ID) == 0);
    /* it is this process's child now, as the first one of the namespace */
    CHECK(waitpid(-1, NULL, 0) > 0);
    return 0;
}

TEST(a_process_that_got_away_from_its_step_is_killed)
{
    CHECK(in_node(kill_what_ran_away) == 0);
}

static int pauses;

int nanosleep(const struct timespec *duration, struct timespec *left)
{
    pauses++;
    return clock_nanosleep(CLOCK_REALTIME, 0, duration, left);
}

static int pauses_of_a_kill(void *unused)
{
    (void)unused;
    leftovers_kill();
    return pauses;
}

static int kill_beside_processes_of_root(void *unused)
{
    pid_t other;

    (void)unused;
    see_own_processes();
    CHECK((other = fork()) >= 0);
    if (other == 0) {
        pause();
        _exit(0);
    }
    CHECK(as_user(pauses_of_a_kill, NULL) == 0);
    CHECK(kill(other, 0) == 0);
    return 0;
}

/* Until killed, stop whatever of the next processes can be. */
static _Noreturn void stop_the_cleaner(void)
{
    for (;;) {
        for (pid_t process = 2; process < 64; process++)
            if (process != getpid())
                kill(process, SIGSTOP);
    }
}

static int clean_beside_who_stops_it(void *unused)
{
    const time_t deadline = time(NULL) + USER_CLEANUP_SECONDS / 3;
    pid_t attacker;
    int ready[2];
    char byte;

    (void)unused;
    see_own_processes();
    CHECK(as_user(leave, NULL) == 0);
    CHECK(pipe(ready) == 0);
    CHECK((attacker = fork()) >= 0);
    if (attacker == 0) {
        world_become_user();
        CHECK(write(ready[1], "", 1) == 1);
        stop_the_cleaner();
    }
    CHECK(read(ready[0], &byte, 1) == 1); /* before, it is root's process, which the cleaner leaves alone */
    CHECK(remove_of(USER_ID) == 0);
    CHECK(user_cleanup_await(USER_ID, &failure) == 0 && time(NULL) < deadline);
    CHECK(!has_left());
    CHECK(waitpid(attacker, NULL, 0) == attacker);
    return 0;
}

TEST(a_process_that_stops_others_of_the_user_does_not_stop_the_cleaner)
{
    CHECK(in_node(clean_beside_who_stops_it) == 0);
}

/* As in an epilog that slurmd starts. */
static int clean_without_standard_descriptors(void *unused)
{
    int lock;

    (void)unused;
    see_own_processes();
    CHECK(as_user(leave, NULL) == 0);
    for (int i = 0; i < 3; i++)
        close(i);
    CHECK(remove_of(USER_ID) == 0);
    CHECK((lock = open("/dev/null", O_RDONLY)) > STDERR_FILENO);
    CHECK(user_cleanup_await(USER_ID, &failure) == 0 && !has_left());
    return 0;
}

TEST(without_standard_descriptors_steps_wait_for_the_cleaner_all_the_same)
{
    CHECK(in_node(clean_without_standard_descriptors) == 0);
}

TEST(a_user_without_processes_is_not_waited_for)
{
    CHECK(in_node(kill_beside_processes_of_root) == 0);
}

static int remove_without_a_list(void *unused)
{
    struct stat status;

    (void)unused;
    CHECK(unlink(USER_CLEANUP_DIRECTORIES) == 0);
    world_write(OWN "/file", "x");
    CHECK(chown(OWN "/file", USER_ID, USER_ID) == 0);
    CHECK(remove_of(USER_ID) == 0);
    CHECK(stat(OWN "/file", &status) == 0);
    return 0;
}

TEST(without_a_list_of_own_directories_no_file_is_removed)
{
    CHECK(in_node(remove_without_a_list) == 0);
}

static int end_a_job_of_root(void *unused)
{
    struct stat status;

    (void)unused;
    world_write(OWN "/file", "x");
    CHECK(remove_of(0) == 0);
    CHECK(stat(OWN "/file", &status) == 0);
    return 0;
}

TEST(nothing_of_root_is_ever_removed)
{
    CHECK(in_node(end_a_job_of_root) == 0);
}
