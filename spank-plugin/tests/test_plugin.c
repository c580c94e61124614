/*
 * The plugin between Slurm's calls: a slurmstepd made of the few functions that it needs, the hooks in Slurm's order.
 * That they run so in Slurm is what the cluster's tests show.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* What Slurm was told; shared with the tasks. */
static struct {
    char error[512];
    char reason[512];
    int updates;
} *told;
static uint32_t node_state = NODE_STATE_IDLE;
static node_info_t node;

void slurm_error(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(told->error, sizeof(told->error), format, arguments);
    va_end(arguments);
}

spank_context_t spank_context(void)
{
    return S_CTX_REMOTE;
}

spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...)
{
    va_list arguments;

    (void)spank;
    va_start(arguments, item);
    *va_arg(arguments, uint32_t *) = item == S_JOB_ID ? 12 : 0;
    va_end(arguments);
    return ESPANK_SUCCESS;
}

void slurm_init_update_node_msg(update_node_msg_t *update)
{
    memset(update, 0, sizeof(*update));
}

int slurm_update_node(update_node_msg_t *update)
{
    CHECK(update->node_state == NODE_STATE_DRAIN);
    snprintf(told->reason, sizeof(told->reason), "%s", update->reason);
    told->updates++;
    return 0;
}

int slurm_load_node_single(node_info_msg_t **found, char *name, uint16_t flags)
{
    static node_info_msg_t message;

    (void)name;
    (void)flags;
    node.node_state = node_state;
    message.record_count = 1;
    message.node_array = &node;
    *found = &message;
    return 0;
}

void slurm_free_node_info_msg(node_info_msg_t *found)
{
    (void)found;
}

char *slurm_strerror(int error)
{
    return strerror(error);
}

/* What slurmstepd has opened for the job on the container's root, by its path; NULL: Slurm's own pipe. */
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

    if (!told)
        told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(told != MAP_FAILED);
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
    CHECK(told->updates == 0 && told->error[0] == '\0');
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
    CHECK(told->updates == 0 && told->error[0] == '\0');
}

static int never(void)
{
    return 0;
}

static void is_refused_and_drains(char *arguments[], const char *says)
{
    CHECK(step(arguments, never) == 11);
    CHECK_SAYS(told->error, says);
    CHECK_SAYS(told->reason, says);
    CHECK(strncmp(told->reason, "jail: ", 6) == 0);
    CHECK(told->updates == 1);
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
    CHECK(told->updates == 1);
}

TEST(a_drain_of_someone_else_keeps_its_reason)
{
    world_make();
    node_state = NODE_STATE_IDLE | NODE_STATE_DRAIN;
    CHECK(step((char *[]){(char *)"jail=/run/nothing", NULL}, never) == 11);
    CHECK(told->updates == 0);
}

TEST(a_record_that_only_this_job_has_drains_nothing)
{
    world_make();
    go_home(0700);
    CHECK(symlink("elsewhere", CLAIM "/jobs/12") == 0);
    CHECK(step(ARGUMENTS, never) == 11);
    CHECK_SAYS(told->error, "jail: read the job's record jobs/12");
    CHECK(told->updates == 0);
}

TEST(a_directory_that_the_user_cannot_enter_drains_nothing)
{
    world_make();
    CHECK(mkdir("/home/closed", 0700) == 0 && chdir("/home/closed") == 0);
    CHECK(step(ARGUMENTS, never) == 12);
    CHECK_SAYS(told->error, "jail: chdir to /home/closed: Permission denied");
    CHECK(told->updates == 0);
}

TEST(a_directory_that_the_jail_has_not_got_drains_nothing)
{
    world_make();
    CHECK(chdir("/usr/lib") == 0);
    CHECK(step(ARGUMENTS, never) == 12);
    CHECK_SAYS(told->error, "/lib: No such file or directory");
    CHECK(told->updates == 0);
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
    CHECK(told->updates == 0 && told->error[0] == '\0');
}

static void is_refused(int descriptor, const char *path, int flags, const char *says)
{
    files[descriptor].path = path;
    files[descriptor].flags = flags;
    told = NULL;
    CHECK(step(ARGUMENTS, never) == 12);
    CHECK_SAYS(told->error, says);
    CHECK(told->updates == 0);
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
