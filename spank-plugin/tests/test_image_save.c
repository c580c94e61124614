#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../image_save.h"
#include "harness.h"
#include "world.h"

static struct jail_config config;
static struct failure failure;
static char said[1024];

static void say(const char *line)
{
    strncat(said, line, sizeof(said) - strlen(said) - 2);
    strcat(said, ";");
}

/* Leave no child, which other tests would find among the user's processes. */
static void await_children(void)
{
    while (waitpid(-1, NULL, 0) > 0)
        ;
}

static void await_saver(void)
{
    image_save_await(say);
    await_children();
}

static void make(const char *script)
{
    world_make_program(&config, SAVER, script);
}

#define PYTHON                                                                                                         \
    "#!/usr/bin/python3 -IS\nimport os, select, socket, sys\ntask = socket.socket(fileno=0)\n"                          \
    "def end(process):\n    poll = select.poll()\n    poll.register(process, select.POLLIN)\n    poll.poll()\n"

static int start(void)
{
    static char *VARIABLES[] = {NULL};
    static const struct person PERSON = {.user = USER_ID, .group = USER_ID, .name = "user", .home = "/home/user"};
    const struct image_import import = {.config = &config, .person = &PERSON, .image = "", .name = "", .name_flag = "",
                                        .directory = "/home/user", .job_id = 12, .variables = VARIABLES,
                                        .open_jail = world_open_jail, .job = &config, .say = say};

    return image_save_start(&import, "/home/user/image", "it.sqsh", &failure);
}

static bool fails; /* the task, after it has entered its container */

/* A task with a mount in its root, which does not end before the program has waited for a moment. */
static int run_task(void *unused)
{
    int root;

    (void)unused;
    CHECK(mkdir("/run/root", 0755) == 0);
    CHECK(mount("root", "/run/root", "tmpfs", 0, NULL) == 0);
    CHECK(mkdir("/run/root/mounted", 0755) == 0);
    CHECK(mount("mounted", "/run/root/mounted", "tmpfs", 0, NULL) == 0);
    world_write("/run/root/mounted/file", "x");
    CHECK(start() == 0);
    CHECK((root = open("/run/root", O_PATH | O_DIRECTORY)) >= 0);
    CHECK(image_save_give(root, &failure) == 0);
    if (!fails)
        image_save_go();
    CHECK(waitpid(-1, NULL, WNOHANG) == -1); /* no child that the task's program would find */
    world_write("/run/root/late", "x");
    _exit(0);
}

TEST(the_program_has_the_containers_own_files_when_the_task_has_ended)
{
    make(PYTHON "task.send(b'ready')\n_, (tree, process), _, _ = socket.recv_fds(task, 1, 2)\nend(process)\n"
                "print(*sys.argv[1:], os.getcwd(), os.getuid())\nos.fchdir(tree)\n"
                "print(sorted(os.listdir()), os.listdir('mounted'))\n");
    CHECK(image_save_prepare() == 0 && image_save_track() == 0);
    CHECK(test_in_child(run_task, NULL) == 0);
    await_saver();
    CHECK_SAYS(said, "/home/user/image it.sqsh /home/user 4711;['late', 'mounted'] [];");
}

TEST(a_task_that_slurmstepd_does_not_track_starts_no_program)
{
    make(PYTHON "print('started')\ntask.send(b'ready')\n");
    CHECK(image_save_prepare() == 0);
    CHECK(start() == -1 && failure.scope == FAILURE_JOB);
    CHECK_SAYS(failure.text, "--container-save: slurmstepd has not tracked the task");
    await_saver();
    CHECK(said[0] == '\0');
}

TEST(a_program_that_cannot_save_fails_the_task_with_its_answer)
{
    make(PYTHON "task.send(b'no such folder')\n");
    CHECK(image_save_prepare() == 0 && image_save_track() == 0);
    CHECK(start() == -1 && failure.scope == FAILURE_JOB);
    CHECK_SAYS(failure.text, "--container-save: no such folder");
    await_saver();
    CHECK(said[0] == '\0');
}

TEST(an_answer_reaches_the_log_without_control_characters)
{
    make(PYTHON "task.send(b'no folder a\\x1b[31m')\n");
    CHECK(image_save_prepare() == 0 && image_save_track() == 0);
    CHECK(start() == -1);
    CHECK(strcmp(failure.text, "--container-save: no folder a?[31m") == 0);
}

TEST(a_program_that_ends_without_an_answer_fails_the_task)
{
    make("#!/bin/sh\necho 'it has failed'; exit 1\n");
    CHECK(image_save_prepare() == 0 && image_save_track() == 0);
    CHECK(start() == -1 && failure.scope == FAILURE_JOB);
    CHECK_SAYS(failure.text, "--container-save: its program has ended");
    await_saver();
    CHECK_SAYS(said, "it has failed;");
}

TEST(a_program_that_is_not_there_fails_the_task)
{
    make("x");
    CHECK(unlink(SAVER) == 0);
    CHECK(image_save_prepare() == 0 && image_save_track() == 0);
    CHECK(start() == -1 && failure.scope == FAILURE_JOB);
    CHECK_SAYS(failure.text, "--container-save: start " SAVER);
    await_saver();
}

TEST(a_program_that_is_killed_holds_up_no_step)
{
    make(PYTHON "task.send(b'ready')\nsocket.recv_fds(task, 1, 2)\nprint('begins', flush=True)\nos.kill(os.getpid(), 9)\n");
    CHECK(image_save_prepare() == 0 && image_save_track() == 0);
    CHECK(test_in_child(run_task, NULL) == 0);
    await_saver();
    CHECK(strcmp(said, "begins;the container was not saved: its program was ended by signal 9 (memory of the job?);") == 0);
}

/* What slurmstepd does while the task runs. */
static void ask_for_the_end_of_any_child(void)
{
    CHECK(test_in_child(run_task, NULL) == 0);
    CHECK(waitpid(-1, NULL, 0) > 0);
    CHECK(waitpid(-1, NULL, 0) == -1);
}

TEST(a_program_that_is_killed_while_the_task_runs_is_told)
{
    make(PYTHON "task.send(b'ready')\nsocket.recv_fds(task, 1, 2)\nos.kill(os.getpid(), 9)\n");
    CHECK(image_save_prepare() == 0 && image_save_track() == 0);
    ask_for_the_end_of_any_child();
    await_saver();
    CHECK(strcmp(said, "the container was not saved: its program ended before the task;") == 0);
}

TEST(a_program_that_has_said_how_it_ended_is_told_of_once)
{
    make(PYTHON "task.send(b'ready')\nsocket.recv_fds(task, 1, 2)\nprint('has saved')\n");
    CHECK(image_save_prepare() == 0 && image_save_track() == 0);
    ask_for_the_end_of_any_child();
    await_saver();
    CHECK(strcmp(said, "has saved;") == 0);
}

TEST(a_program_that_had_nothing_to_save_ends_in_silence)
{
    make(PYTHON "task.send(b'ready')\nsocket.recv_fds(task, 1, 2)\ntask.recv(1)\n");
    fails = true;
    CHECK(image_save_prepare() == 0 && image_save_track() == 0);
    ask_for_the_end_of_any_child();
    await_saver();
    CHECK(said[0] == '\0');
}

TEST(a_process_that_keeps_the_programs_output_open_holds_up_no_step)
{
    make(PYTHON "task.send(b'ready')\nsocket.recv_fds(task, 1, 2)\nchild = os.fork()\n"
                "if child == 0:\n    os.execv('/usr/bin/sleep', ['sleep', '600'])\nprint(child)\n");
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    CHECK(image_save_prepare() == 0 && image_save_track() == 0);
    CHECK(test_in_child(run_task, NULL) == 0);
    image_save_await(say);
    CHECK(atoi(said) > 0 && kill(atoi(said), SIGKILL) == 0);
    await_children();
}

TEST(a_line_without_an_end_takes_no_memory_of_slurmstepd)
{
    make(PYTHON "task.send(b'ready')\nsocket.recv_fds(task, 1, 2)\nprint('x' * 600, end='')\n");
    CHECK(image_save_prepare() == 0 && image_save_track() == 0);
    CHECK(test_in_child(run_task, NULL) == 0);
    await_saver();
    CHECK(strlen(said) == 602 && said[511] == ';' && said[601] == ';');
}

TEST(a_task_that_has_not_started_the_program_is_not_waited_for)
{
    make("x");
    CHECK(image_save_prepare() == 0 && image_save_track() == 0);
    await_saver();
    CHECK(said[0] == '\0');
}

static int end_without_a_container(void *unused)
{
    (void)unused;
    return start() == 0 ? 0 : 1;
}

TEST(a_task_that_does_not_come_to_its_container_ends_the_program)
{
    make(PYTHON "task.send(b'ready')\nprint(socket.recv_fds(task, 1, 2)[1])\n");
    CHECK(image_save_prepare() == 0 && image_save_track() == 0);
    CHECK(test_in_child(end_without_a_container, NULL) == 0);
    await_saver();
    CHECK(strcmp(said, "[];") == 0);
}

TEST(a_program_hears_that_the_task_starts)
{
    make(PYTHON "task.send(b'ready')\nsocket.recv_fds(task, 1, 2)\nprint(task.recv(1), task.recv(1))\n");
    CHECK(image_save_prepare() == 0 && image_save_track() == 0);
    CHECK(test_in_child(run_task, NULL) == 0);
    await_saver();
    CHECK_SAYS(said, "b'g' b'';");
}

TEST(a_program_hears_nothing_from_a_task_that_fails_before_it_starts)
{
    make(PYTHON "task.send(b'ready')\nsocket.recv_fds(task, 1, 2)\nprint(task.recv(1))\n");
    fails = true;
    CHECK(image_save_prepare() == 0 && image_save_track() == 0);
    CHECK(test_in_child(run_task, NULL) == 0);
    await_saver();
    CHECK_SAYS(said, "b'';");
}

TEST(words_of_the_program_reach_the_terminal_without_control_characters)
{
    make(PYTHON "task.send(b'ready')\nprint('a\\x1b[31m')\n");
    CHECK(image_save_prepare() == 0 && image_save_track() == 0);
    CHECK(test_in_child(end_without_a_container, NULL) == 0);
    await_saver();
    CHECK(strcmp(said, "a?[31m;") == 0);
}
