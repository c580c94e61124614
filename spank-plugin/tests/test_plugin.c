/*
 * The plugin between Slurm's calls: a slurmstepd made of the few functions that it needs, the hooks in Slurm's order.
 * The cluster's tests show that they run so in Slurm.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../image_import.h"
#include "../image_save.h"
#include "../step_callers.h"
#include "../step_peers.h"
#include "../view.h"
#include "harness.h"
#include "world.h"

int slurm_spank_init(spank_t spank, int count, char **arguments);
int slurm_spank_init_post_opt(spank_t spank, int count, char **arguments);
int slurm_spank_user_init(spank_t spank, int count, char **arguments);
int slurm_spank_task_init_privileged(spank_t spank, int count, char **arguments);
int slurm_spank_task_init(spank_t spank, int count, char **arguments);
int slurm_spank_task_post_fork(spank_t spank, int count, char **arguments);
int slurm_spank_task_exit(spank_t spank, int count, char **arguments);
int slurm_spank_exit(spank_t spank, int count, char **arguments);
int slurm_spank_job_epilog(spank_t spank, int count, char **arguments);

/* Calls of Slurm's functions; shared with the tasks. */
static struct {
    char error[512];
    char reason[512];
    char said[512]; /* to the user, without a failure */
    int updates;
} *reported;
/* The cluster as slurmctld knows it; the first node is this one. */
#define MAX_NODES 1000
static node_info_t nodes[MAX_NODES];
static uint32_t node_count = 1;
static uint32_t node_state = NODE_STATE_IDLE; /* of this node */
static uint32_t drain_beside;                 /* how many others drain for the volume while this one does */

void slurm_error(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reported->error, sizeof(reported->error), format, arguments);
    va_end(arguments);
}

spank_context_t spank_context(void)
{
    return S_CTX_REMOTE;
}

static uint32_t step_number;

spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...)
{
    va_list arguments;

    (void)spank;
    va_start(arguments, item);
    *va_arg(arguments, uint32_t *) = item == S_JOB_ID ? 12 : item == S_JOB_UID ? USER_ID : item == S_JOB_STEPID ? step_number : 0;
    va_end(arguments);
    return ESPANK_SUCCESS;
}

/* The environment of these tests is that of the step. */
spank_err_t spank_setenv(spank_t spank, const char *name, const char *value, int overwrite)
{
    (void)spank;
    return setenv(name, value, overwrite) == 0 ? ESPANK_SUCCESS : ESPANK_ERROR;
}

spank_err_t spank_unsetenv(spank_t spank, const char *name)
{
    (void)spank;
    return unsetenv(name) == 0 ? ESPANK_SUCCESS : ESPANK_ERROR;
}

spank_err_t spank_getenv(spank_t spank, const char *name, char *value, int size)
{
    const char *found = getenv(name);

    (void)spank;
    if (!found)
        return ESPANK_ENV_NOEXIST;
    return snprintf(value, (size_t)size, "%s", found) < size ? ESPANK_SUCCESS : ESPANK_NOSPACE;
}

/* What the user has asked for, as an option of the plugin. */
static struct {
    const char *name;
    const char *argument;
} given;

spank_err_t spank_option_register(spank_t spank, struct spank_option *option)
{
    (void)spank;
    return given.name && strcmp(option->name, given.name) == 0 && option->cb(option->val, given.argument, 1) != 0
               ? ESPANK_ERROR
               : ESPANK_SUCCESS;
}

void slurm_spank_log(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reported->said, sizeof(reported->said), format, arguments);
    va_end(arguments);
}

void step_peers_are_of(uid_t user)
{
    CHECK(user == USER_ID);
}

void step_callers_are_bounded(void)
{
}

void slurm_init_update_node_msg(update_node_msg_t *update)
{
    memset(update, 0, sizeof(*update));
}

static void drain_others(uint32_t count, const char *reason)
{
    for (uint32_t i = 1; i < node_count && count > 0; i++) {
        if (nodes[i].node_state & NODE_STATE_DRAIN)
            continue;
        nodes[i].node_state = NODE_STATE_IDLE | NODE_STATE_DRAIN;
        nodes[i].reason = strdup(reason);
        count--;
    }
    CHECK(count == 0);
}

int slurm_update_node(update_node_msg_t *update)
{
    if (update->node_state == NODE_STATE_DRAIN) {
        node_state |= NODE_STATE_DRAIN;
        nodes[0].reason = strdup(update->reason);
        snprintf(reported->reason, sizeof(reported->reason), "%s", update->reason);
        drain_others(drain_beside, update->reason);
    } else {
        CHECK(update->node_state == NODE_STATE_UNDRAIN);
        node_state &= ~NODE_STATE_DRAIN;
    }
    reported->updates++;
    return 0;
}

static void name_nodes(void)
{
    static char names[MAX_NODES][64];

    for (uint32_t i = 0; i < node_count; i++) {
        snprintf(names[i], sizeof(names[i]), "other-%u", i);
        nodes[i].name = names[i];
    }
    CHECK(gethostname(names[0], sizeof(names[0])) == 0);
    nodes[0].node_state = node_state;
}

int slurm_load_node(time_t since, node_info_msg_t **found, uint16_t flags)
{
    static node_info_msg_t message;

    (void)since;
    (void)flags;
    name_nodes();
    message.record_count = node_count;
    message.node_array = nodes;
    *found = &message;
    return 0;
}

int slurm_load_node_single(node_info_msg_t **found, char *name, uint16_t flags)
{
    (void)name;
    slurm_load_node(0, found, flags);
    (*found)->record_count = 1;
    return 0;
}

void slurm_free_node_info_msg(node_info_msg_t *found)
{
    (void)found;
}

/* The user's jobs in slurmctld besides the one that ends. */
static struct {
    bool answers;
    uint32_t state;
    const char *nodes;
} other_job = {.answers = true, .state = JOB_PENDING};

void slurm_init(const char *path)
{
    CHECK(path == NULL);
}

int slurm_load_job_user(job_info_msg_t **found, uint32_t user, uint16_t flags)
{
    static slurm_job_info_t jobs[2];
    static job_info_msg_t message = {.record_count = 2, .job_array = jobs};
    static char name[64];

    (void)flags;
    CHECK(user == USER_ID && gethostname(name, sizeof(name)) == 0);
    jobs[0] = (slurm_job_info_t){.job_id = 12, .job_state = JOB_RUNNING, .nodes = name};
    jobs[1] = (slurm_job_info_t){
        .job_id = 13, .job_state = other_job.state, .nodes = other_job.nodes ? strdup(other_job.nodes) : name};
    *found = &message;
    return other_job.answers ? 0 : -1;
}

void slurm_free_job_info_msg(job_info_msg_t *found)
{
    (void)found;
}

struct hostlist *slurm_hostlist_create(const char *list)
{
    return (struct hostlist *)(void *)strdup(list);
}

int slurm_hostlist_find(struct hostlist *list, const char *name)
{
    return strcmp((const char *)(void *)list, name) == 0 ? 0 : -1;
}

void slurm_hostlist_destroy(struct hostlist *list)
{
    free((void *)list);
}

char *slurm_strerror(int error)
{
    return strerror(error);
}

/* Path of the file that slurmstepd has opened for the job on the container's root; NULL: Slurm's own pipe. */
static struct {
    const char *path;
    int flags;
} files[3];

/* As slurmstepd does, as the user: any file, and close-on-exec of no use after dup2. */
static void open_files(int opened[3])
{
    int own[2];

    for (int i = 0; i < 3; i++) {
        CHECK(pipe(own) == 0);
        opened[i] = files[i].path ? open(files[i].path, files[i].flags | O_CLOEXEC, 0600) : own[i ? 1 : 0];
        CHECK(opened[i] >= 0);
        CHECK((opened[i] = fcntl(opened[i], F_DUPFD_CLOEXEC, 10)) >= 0);
    }
}

static char *ARGUMENTS[] = {(char *)"jail=" CLAIM, (char *)"bind=/home", NULL};
static int (*program)(void);

/* A task, up to where it would execute its program. */
static int task(void *unused)
{
    int opened[3];

    (void)unused;
    open_files(opened);
    if (slurm_spank_task_init_privileged(NULL, 0, NULL) != 0)
        return 11;
    world_become_user();
    for (int i = 0; i < 3; i++)
        CHECK(dup2(opened[i], i) == i);
    if (slurm_spank_task_init(NULL, 0, NULL) != 0)
        return 12;
    return program();
}

/* A step with one task; returns how it ended. */
static int step(char *arguments[], int (*function)(void))
{
    int count = 0, code;
    pid_t child;

    if (!reported)
        reported = mmap(NULL, sizeof(*reported), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(reported != MAP_FAILED);
    program = function;
    while (arguments[count])
        count++;
    CHECK(slurm_spank_init(NULL, count, arguments) == 0);
    CHECK(slurm_spank_init_post_opt(NULL, count, arguments) == 0);
    CHECK(seteuid(USER_ID) == 0);
    CHECK(slurm_spank_user_init(NULL, count, arguments) == 0);
    CHECK((child = fork()) >= 0);
    if (child == 0)
        _exit(seteuid(0) < 0 ? 99 : task(NULL));
    CHECK(seteuid(0) == 0);
    CHECK(slurm_spank_task_post_fork(NULL, count, arguments) == 0);
    code = test_await(child);
    CHECK(slurm_spank_task_exit(NULL, count, arguments) == 0);
    CHECK(slurm_spank_exit(NULL, count, arguments) == 0);
    return code;
}

TEST(a_step_without_tasks_is_not_waited_for)
{
    struct timespec before, after;

    step_number = SLURM_EXTERN_CONT;
    CHECK(slurm_spank_init(NULL, 2, ARGUMENTS) == 0);
    CHECK(slurm_spank_init_post_opt(NULL, 2, ARGUMENTS) == 0);
    clock_gettime(CLOCK_MONOTONIC, &before);
    CHECK(slurm_spank_task_post_fork(NULL, 2, ARGUMENTS) == 0);
    clock_gettime(CLOCK_MONOTONIC, &after);
    CHECK((double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9 < 1);
}

static void go_home(mode_t mode)
{
    CHECK(mkdir("/home/user", mode) == 0);
    CHECK(chown("/home/user", USER_ID, USER_ID) == 0);
    CHECK(chdir("/home/user") == 0);
}

static int is_in_the_jail(void)
{
    char directory[64];

    CHECK(world_holds("/etc/name", TREE));
    CHECK(getcwd(directory, sizeof(directory)) && strcmp(directory, "/home/user") == 0);
    CHECK(getuid() == USER_ID && mount("x", "/home", "tmpfs", 0, NULL) == -1 && errno == EPERM);
    return 7;
}

TEST(a_task_starts_in_the_jail_in_its_own_directory)
{
    world_make();
    go_home(0700);
    CHECK(step(ARGUMENTS, is_in_the_jail) == 7);
    CHECK(reported->updates == 0 && reported->error[0] == '\0');
}

static int has_what_slurmstepd_shall_use(void)
{
    CHECK(strcmp(getenv("SLURM_PMIX_TMPDIR"), PMIX_DIRECTORY) == 0);
    CHECK(!getenv("PMIX_DEBUG") && !getenv("SLURM_PMIX_SAMEARCH"));
    return 7;
}

static int starts_no_program(void)
{
    CHECK(false);
    return 1;
}

TEST(a_container_is_refused_where_the_cluster_has_none)
{
    world_make();
    go_home(0700);
    given.name = "container-image";
    given.argument = "ubuntu:24.04";
    CHECK(step(ARGUMENTS, starts_no_program) == 11);
    CHECK_SAYS(reported->error, "--container-image and --container-name: this cluster has no containers");
    CHECK(reported->updates == 0);
}

TEST(a_variable_that_names_an_image_where_the_cluster_has_no_containers_is_ignored_in_words)
{
    world_make();
    go_home(0700);
    CHECK(setenv("PYXIS_CONTAINER_IMAGE", "ubuntu:24.04", 1) == 0);
    CHECK(setenv("PYXIS_CONTAINER_ENTRYPOINT", "yes", 1) == 0);
    CHECK(step(ARGUMENTS, is_in_the_jail) == 7);
    CHECK_SAYS(reported->said, "PYXIS_CONTAINER_IMAGE is ignored, as this cluster has no containers");
}

static char *WITH_CONTAINERS[] = {(char *)"jail=" CLAIM, (char *)"bind=/home", (char *)"containers=16", NULL};

static void is_too_long(const char *name, const char *says)
{
    static char value[10000];

    memset(value, '/', sizeof(value) - 1);
    CHECK(setenv(name, value, 1) == 0);
    reported = NULL;
    CHECK(step(WITH_CONTAINERS, starts_no_program) == 11);
    CHECK_SAYS(reported->error, says);
    CHECK(reported->updates == 0);
}

TEST(an_image_in_a_variable_that_is_too_long_ends_the_step_and_no_job_runs_in_the_jail)
{
    world_make();
    go_home(0700);
    is_too_long("PYXIS_CONTAINER_IMAGE", "--container-image=/");
}

TEST(mounts_in_a_variable_that_is_too_long_end_the_step)
{
    world_make();
    go_home(0700);
    CHECK(setenv("PYXIS_CONTAINER_IMAGE", "ubuntu:24.04", 1) == 0);
    is_too_long("PYXIS_CONTAINER_MOUNTS", "is longer than 8191 bytes");
}

/* Programs that bring an image, and save a container: the second one prints what the task tells it. */
static void make_container(void)
{
    static struct jail_config config;

    world_make_program(&config, IMPORTER, "#!/bin/sh\nmkdir -p /home/user/image/rootfs\n"
                                          "touch /home/user/image/workdir /home/user/image/environment\n"
                                          "echo image=/home/user/image\n");
    world_write(SAVER, "#!/usr/bin/python3 -IS\nimport socket\ntask = socket.socket(fileno=0)\ntask.send(b'ready')\n"
                       "socket.recv_fds(task, 1, 2)\nprint('told', task.recv(1))\n");
    world_write("/run/passwd", "user:x:4711:4711::/home/user:/bin/sh\n");
    CHECK(mount("/run/passwd", "/etc/passwd", NULL, MS_BIND, NULL) == 0);
    CHECK(chdir("/home/user") == 0);
    CHECK(setenv("PYXIS_CONTAINER_IMAGE", "ubuntu:24.04", 1) == 0 && setenv("PYXIS_CONTAINER_SAVE", "it.sqsh", 1) == 0);
}

static int is_in_the_container(void)
{
    CHECK(access("/home/user/image", F_OK) == -1 && getuid() == USER_ID);
    return 7;
}

/* Returns how the task ended. As slurmstepd, it leaves no child, which other tests would find among the user's processes. */
static int step_in_a_container(int (*function)(void))
{
    int code = step(WITH_CONTAINERS, function);

    while (waitpid(-1, NULL, 0) > 0)
        ;
    return code;
}

TEST(a_container_whose_task_starts_is_saved)
{
    make_container();
    CHECK(step_in_a_container(is_in_the_container) == 7);
    CHECK_SAYS(reported->said, "container: told b'g'");
}

static int is_root_in_the_container(void)
{
    CHECK(getuid() == 0 && access("/home/user/image", F_OK) == -1 && errno == ENOENT);
    return 7;
}

TEST(a_task_is_root_in_its_container_if_the_cluster_allows_user_namespaces)
{
    char *arguments[] = {ARGUMENTS[0], ARGUMENTS[1], WITH_CONTAINERS[2], (char *)"user_namespaces", NULL};

    make_container();
    CHECK(unsetenv("PYXIS_CONTAINER_SAVE") == 0);
    given.name = "container-remap-root";
    CHECK(step(arguments, is_root_in_the_container) == 7);
}

TEST(a_task_that_wants_to_be_root_is_refused_with_the_reason)
{
    make_container();
    given.name = "container-remap-root";
    CHECK(step(WITH_CONTAINERS, starts_no_program) == 11);
    CHECK_SAYS(reported->error, "--container-remap-root: jobs of this cluster may make no user namespaces");
    CHECK(reported->updates == 0);
}

TEST(a_container_whose_task_does_not_start_is_not_saved)
{
    make_container();
    CHECK(setenv("PYXIS_CONTAINER_WORKDIR", "/missing", 1) == 0);
    CHECK(step_in_a_container(starts_no_program) == 12);
    CHECK_SAYS(reported->error, "chdir to /missing");
    CHECK_SAYS(reported->said, "container: told b''");
}

static void do_nothing(int signal)
{
    (void)signal;
}

/* As slurmstepd does, for itself alone, and without SA_RESTART. */
static void handle(int signal)
{
    const struct sigaction action = {.sa_handler = do_nothing};

    CHECK(sigaction(signal, &action, NULL) == 0);
}

static void read_line(const char *path, char line[64])
{
    FILE *file = fopen(path, "re");

    line[0] = '\0';
    if (file && !fgets(line, 64, file))
        line[0] = '\0';
    if (file)
        fclose(file);
}

/* As proctrack/linuxproc, which passes over processes of slurmstepd's name, send a signal to a process of a step. */
static void send_signal(pid_t process, int signal)
{
    char path[64], name[64], own[64];

    snprintf(path, sizeof(path), "/proc/%d/comm", (int)process);
    read_line(path, name);
    read_line("/proc/self/comm", own);
    if (strcmp(name, own) != 0)
        kill(process, signal);
}

/* Start a step whose task, and its importer, get a signal while the image comes. Returns how the task ended, after all. */
static int step_with_signal(int signal, int (*function)(void))
{
    char line[64] = "";
    int task, importer;
    pid_t sender;

    make_container();
    CHECK(unsetenv("PYXIS_CONTAINER_SAVE") == 0);
    world_write(IMPORTER, "#!/bin/sh\nmkdir -p /home/user/image/rootfs\n"
                          "touch /home/user/image/workdir /home/user/image/environment\n"
                          "echo $PPID $$ > /home/user/new\nmv /home/user/new /home/user/processes\n"
                          "for try in $(seq 500); do test -e /home/user/sent && break; sleep 0.02; done\n"
                          "echo image=/home/user/image\n");
    if (signal != SIGKILL)
        handle(signal);
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0); /* of an importer whose task has ended */
    CHECK((sender = fork()) >= 0);
    if (sender == 0) {
        for (int i = 0; i < 2000 && line[0] == '\0'; i++) {
            usleep(5000);
            read_line("/home/user/processes", line);
        }
        CHECK(sscanf(line, "%d %d", &task, &importer) == 2);
        send_signal(task, signal);
        send_signal(importer, signal);
        world_write("/home/user/sent", "");
        _exit(0);
    }
    return step_in_a_container(function);
}

TEST(a_task_whose_image_comes_ends_by_the_signals_that_end_programs)
{
    CHECK(step_with_signal(SIGTERM, starts_no_program) == 128 + SIGTERM);
}

TEST(a_task_whose_image_comes_ends_by_ctrl_c)
{
    CHECK(step_with_signal(SIGINT, starts_no_program) == 128 + SIGINT);
}

TEST(a_task_whose_image_comes_is_killed)
{
    CHECK(step_with_signal(SIGKILL, starts_no_program) == 128 + SIGKILL);
}

TEST(a_warning_for_the_program_of_a_task_ends_no_import)
{
    CHECK(step_with_signal(SIGUSR1, is_in_the_container) == 7);
}

TEST(an_option_that_is_not_supported_ends_the_step_with_its_name)
{
    world_make();
    go_home(0700);
    given.name = "container-unshare";
    given.argument = "net";
    CHECK(step(ARGUMENTS, starts_no_program) == 11);
    CHECK_SAYS(reported->error, "--container-unshare is not supported");
    CHECK(reported->updates == 0);
}

TEST(variables_of_a_user_lead_slurmstepd_into_no_folder_for_pmix)
{
    world_make();
    go_home(0700);
    CHECK(setenv("SLURM_PMIX_TMPDIR", "/home/user", 1) == 0 && setenv("PMIX_DEBUG", "1", 1) == 0);
    CHECK(setenv("SLURM_PMIX_SAMEARCH", "1", 1) == 0);
    CHECK(step(ARGUMENTS, has_what_slurmstepd_shall_use) == 7);
}

/* True if a file of the user's is there after the epilog of the user's job 12. */
static bool stays_after_the_end(void)
{
    struct stat status;

    CHECK(mkdir("/run/own", 01777) == 0 || errno == EEXIST);
    world_write("/run/slurm/jail-own", "/run/own\n");
    world_write("/run/own/left", "x");
    CHECK(chown("/run/own", USER_ID, USER_ID) == 0 && chown("/run/own/left", USER_ID, USER_ID) == 0);
    CHECK(slurm_spank_job_epilog(NULL, 0, NULL) == 0);
    CHECK(reported->error[0] == '\0');
    return stat("/run/own/left", &status) == 0;
}

TEST(what_is_left_goes_with_the_users_last_job_on_this_node)
{
    world_make();
    go_home(0700);
    CHECK(step(ARGUMENTS, is_in_the_jail) == 7);
    CHECK(!stays_after_the_end());
    other_job.state = JOB_COMPLETE | JOB_COMPLETING;
    CHECK(!stays_after_the_end());
    other_job.state = JOB_RUNNING;
    other_job.nodes = "another";
    CHECK(!stays_after_the_end());
}

TEST(what_is_left_stays_while_the_user_has_another_job_here_or_nobody_can_tell)
{
    world_make();
    go_home(0700);
    CHECK(step(ARGUMENTS, is_in_the_jail) == 7);
    other_job.state = JOB_RUNNING;
    CHECK(stays_after_the_end());
    other_job.state = JOB_SUSPENDED;
    CHECK(stays_after_the_end());
    other_job.state = JOB_PENDING;
    other_job.answers = false;
    CHECK(stays_after_the_end());
}

/* Start a process with a title, as root or as the user. */
static pid_t start_titled(const char *title, uid_t user)
{
    pid_t child = fork();

    if (child == 0 && setresuid(user, user, user) == 0)
        execl("/bin/sleep", title, "60", (char *)NULL);
    if (child == 0)
        _exit(1);
    for (char path[32], found[64] = ""; strcmp(found, title) != 0;) {
        int file;

        snprintf(path, sizeof(path), "/proc/%d/cmdline", child);
        CHECK((file = open(path, O_RDONLY | O_CLOEXEC)) >= 0);
        memset(found, 0, sizeof(found));
        CHECK(read(file, found, sizeof(found) - 1) >= 0);
        close(file);
    }
    return child;
}

static void end(pid_t child)
{
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
}

TEST(what_is_left_stays_while_another_job_that_is_over_has_a_step_that_saves_its_work)
{
    pid_t step_of_13 = start_titled("slurmstepd: [13.batch]", 0);

    world_make();
    go_home(0700);
    CHECK(step(ARGUMENTS, is_in_the_jail) == 7);
    other_job.state = JOB_TIMEOUT | JOB_COMPLETING;
    CHECK(stays_after_the_end());
    end(step_of_13);
    CHECK(!stays_after_the_end());
}

TEST(what_is_left_goes_though_steps_of_other_jobs_and_titles_of_users_are_there)
{
    pid_t step_of_130 = start_titled("slurmstepd: [130.batch]", 0);
    pid_t of_another_user = start_titled("slurmstepd: [13.batch]", USER_ID + 1);

    world_make();
    go_home(0700);
    CHECK(step(ARGUMENTS, is_in_the_jail) == 7);
    other_job.state = JOB_CANCELLED | JOB_COMPLETING;
    CHECK(!stays_after_the_end());
    end(step_of_130);
    end(of_another_user);
}

static int is_alone_in_the_jail(void)
{
    return getpid() == 2 ? is_in_the_jail() : 1;
}

TEST(a_task_may_have_namespaces_of_its_own)
{
    char *arguments[] = {ARGUMENTS[0], ARGUMENTS[1], (char *)"isolation=pid,ipc", NULL};

    world_make();
    go_home(0700);
    CHECK(step(arguments, is_alone_in_the_jail) == 7);
    CHECK(reported->updates == 0 && reported->error[0] == '\0');
}

static int never(void)
{
    return 0;
}

#define AWAY "jail: shared volume: open the jail's volume /run/nothing: "

/* A step that does not find the volume on a node of a cluster of `count`. */
static void lose_the_volume(uint32_t count, uint32_t drained_before, const char *for_what, uint32_t beside)
{
    world_make();
    node_count = count;
    drain_others(drained_before, for_what);
    drain_beside = beside;
    CHECK(step((char *[]){(char *)"jail=/run/nothing", NULL}, never) == 11);
}

static bool is_drained(void)
{
    return (node_state & NODE_STATE_DRAIN) != 0;
}

TEST(a_node_that_alone_has_lost_the_volume_is_drained)
{
    lose_the_volume(3, 0, "", 0);
    CHECK(is_drained() && reported->updates == 1);
    CHECK(strncmp(reported->reason, AWAY, strlen(AWAY)) == 0);
}

TEST(an_outage_of_the_volume_drains_one_node_in_fifty)
{
    lose_the_volume(1000, 19, AWAY "Stale file handle", 0);
    CHECK(is_drained());
}

TEST(an_outage_of_the_volume_drains_no_more_than_one_node_in_fifty)
{
    lose_the_volume(1000, 20, AWAY "Stale file handle", 0);
    CHECK(!is_drained() && reported->updates == 0);
    CHECK_SAYS(reported->error, "not drained: 20 of 1000");
}

TEST(nodes_that_lose_the_volume_at_the_same_moment_take_their_drains_back)
{
    lose_the_volume(1000, 0, "", 999);
    CHECK(!is_drained() && reported->updates == 2);
}

TEST(drains_for_other_reasons_do_not_count_against_the_volumes)
{
    lose_the_volume(100, 50, "jail: mount /data: No such device", 0);
    CHECK(is_drained() && reported->updates == 1);
}

TEST(a_full_volume_refuses_the_task_and_drains_nothing)
{
    world_make();
    go_home(0700);
    CHECK(mount("full", CLAIM "/jobs", "tmpfs", 0, "nr_inodes=1") == 0);
    CHECK(step(ARGUMENTS, never) == 11);
    CHECK_SAYS(reported->error, "jail: record the job's tree jobs/12: No space left on device");
    CHECK(reported->updates == 0);
}

static void is_refused_and_drains(char *arguments[], const char *says)
{
    CHECK(step(arguments, never) == 11);
    CHECK_SAYS(reported->error, says);
    CHECK_SAYS(reported->reason, says);
    CHECK(strncmp(reported->reason, "jail: ", 6) == 0);
    CHECK(reported->updates == 1);
}

TEST(a_broken_configuration_refuses_the_task_and_drains_the_node)
{
    world_make();
    is_refused_and_drains((char *[]){(char *)"jail=" CLAIM, (char *)"bnd=/home", NULL}, "unknown argument \"bnd=/home\"");
}

TEST(an_empty_configuration_refuses_the_task_and_drains_the_node)
{
    world_make();
    is_refused_and_drains((char *[]){NULL}, "jail=PATH is missing");
}

TEST(a_claim_that_is_not_there_refuses_the_task_and_drains_the_node)
{
    world_make();
    is_refused_and_drains((char *[]){(char *)"jail=/run/nothing", NULL}, "/run/nothing: No such file or directory");
}

TEST(a_bind_that_is_not_there_refuses_the_task_and_drains_the_node)
{
    world_make();
    is_refused_and_drains((char *[]){ARGUMENTS[0], (char *)"bind=/home/nothing", NULL},
                          "/home/nothing: No such file or directory");
}

TEST(a_node_is_drained_once_a_step)
{
    world_make();
    is_refused_and_drains((char *[]){(char *)"jail=/run/nothing", NULL}, "/run/nothing");
    CHECK(slurm_spank_task_exit(NULL, 0, NULL) == 0);
    CHECK(reported->updates == 1);
}

TEST(a_drain_of_someone_else_keeps_its_reason)
{
    world_make();
    node_state = NODE_STATE_IDLE | NODE_STATE_DRAIN;
    CHECK(step((char *[]){(char *)"jail=/run/nothing", NULL}, never) == 11);
    CHECK(reported->updates == 0);
}

TEST(a_record_that_only_this_job_has_drains_nothing)
{
    world_make();
    go_home(0700);
    CHECK(symlink("elsewhere", CLAIM "/jobs/12") == 0);
    CHECK(step(ARGUMENTS, never) == 11);
    CHECK_SAYS(reported->error, "jail: read the job's record jobs/12");
    CHECK(reported->updates == 0);
}

TEST(a_directory_that_the_user_cannot_enter_drains_nothing)
{
    world_make();
    CHECK(mkdir("/home/closed", 0700) == 0 && chdir("/home/closed") == 0);
    CHECK(step(ARGUMENTS, never) == 12);
    CHECK_SAYS(reported->error, "jail: chdir to /home/closed: Permission denied");
    CHECK(reported->updates == 0);
}

TEST(a_directory_that_the_jail_has_not_got_drains_nothing)
{
    world_make();
    CHECK(chdir("/usr/lib") == 0);
    CHECK(step(ARGUMENTS, never) == 12);
    CHECK_SAYS(reported->error, "/lib: No such file or directory");
    CHECK(reported->updates == 0);
}

TEST(files_of_a_bind_are_a_jobs_own)
{
    world_make();
    go_home(0777);
    world_write("/home/user/in", "text");
    files[0].path = "/home/user/in";
    files[1].path = "/home/user/out";
    files[1].flags = O_WRONLY | O_CREAT;
    files[2].path = "/dev/null";
    CHECK(step(ARGUMENTS, is_in_the_jail) == 7);
    CHECK(reported->updates == 0 && reported->error[0] == '\0');
}

static void is_refused(int descriptor, const char *path, int flags, const char *says)
{
    files[descriptor].path = path;
    files[descriptor].flags = flags;
    reported = NULL;
    CHECK(step(ARGUMENTS, never) == 12);
    CHECK_SAYS(reported->error, says);
    CHECK(reported->updates == 0);
    files[descriptor].path = NULL;
}

TEST(a_file_outside_of_the_jail_is_refused_and_drains_nothing)
{
    world_make();
    go_home(0700);
    world_write("/run/secret", "of the container");
    CHECK(symlink("/run/secret", "/home/user/link") == 0);
    CHECK(mkfifo("/home/user/pipe", 0600) == 0);
    is_refused(0, "/home/user/link", O_RDONLY, "standard input is a file outside of the jail");
    is_refused(1, "/home/user/link", O_WRONLY, "standard output is a file outside of the jail");
    is_refused(2, "/home/user/link", O_WRONLY, "standard error is a file outside of the jail");
    is_refused(0, "/proc/self/maps", O_RDONLY, "standard input is a file outside of the jail");
    is_refused(0, CLAIM "/trees/" TREE "/etc/name", O_RDONLY, "standard input is a file outside of the jail");
    is_refused(0, "/home", O_RDONLY, "standard input is a directory");
    is_refused(2, "/run", O_RDONLY, "standard error is a directory");
    is_refused(0, "/dev/zero", O_RDONLY, "standard input is a device");
    is_refused(0, "/home/user/pipe", O_RDWR, "standard input is a named pipe");
    CHECK(world_holds("/run/secret", "of the container"));
}

static int has_no_directory(void)
{
    CHECK(fcntl(60, F_GETFD) == -1);
    return 7;
}

TEST(a_limit_of_open_files_leaves_no_directory_of_the_container_open_and_drains_nothing)
{
    const struct rlimit few = {40, 40};
    int directory;

    world_make();
    go_home(0700);
    CHECK((directory = open("/run", O_RDONLY | O_DIRECTORY)) >= 0 && dup2(directory, 60) == 60);
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    CHECK(step(ARGUMENTS, has_no_directory) == 7);
    CHECK(reported->updates == 0);
}

static int inherits_nothing_of_the_container(void)
{
    CHECK(fcntl(50, F_GETFD) == -1 && fcntl(51, F_GETFD) >= 0 && fcntl(52, F_GETFD) >= 0);
    return 7;
}

TEST(other_files_that_are_open_are_inherited_where_a_job_may_have_them)
{
    int own[2], outside, inside;

    world_make();
    go_home(0700);
    world_write("/run/secret", "of the container");
    world_write("/home/user/file", "of the user");
    CHECK((outside = open("/run/secret", O_RDONLY)) >= 0 && dup2(outside, 50) == 50);
    CHECK((inside = open("/home/user/file", O_RDONLY)) >= 0 && dup2(inside, 51) == 51);
    CHECK(pipe(own) == 0 && dup2(own[0], 52) == 52);
    CHECK(step(ARGUMENTS, inherits_nothing_of_the_container) == 7);
}
