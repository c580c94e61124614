#include "image_import.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "confine.h"
#include "descriptor_message.h"
#include "enter_view.h"
#include "found_image.h"
#include "image_count.h"
#include "mounts.h"
#include "resolve_in_root.h"
#include "view_attach.h"

/* Lines of the importer that are not for the user. */
#define FOLDER "image="     /* and the image's folder */
#define BROUGHT "brought="  /* and the bytes, if it was not there */
#define LOCK "lock="        /* and the file whose lock keeps the image, if later steps of the job may start it as well */
#define VERSION "version="  /* and that of the image's file (struct found_image) */

#define ROOT "/run/importer" /* in the jail's view, which only the importer's process has */
#define MAX_VARIABLES 64
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define READ_ONLY (HARMLESS | MOUNT_ATTR_RDONLY)

/* Of the worker's root, folders of the image alone (/usr itself is closed to users: images/worker), and the settings. */
static const char *const OF_WORKER[] = {"/usr/bin",   "/usr/lib",           "/usr/lib64",
                                        "/usr/share", "/etc/nsswitch.conf", IMPORTER_SETTINGS};

/* Certificates: those of the jail, or else of the worker's image. */
static const char *const CERTIFICATES[] = {"/etc/ssl", "/etc/pki"};

/* Of the jail, where it has them. */
static const char *const OF_JAIL[] = {"/proc", "/dev", "/etc/hosts", "/etc/resolv.conf", "/var/lib/extrausers"};

static struct {
    pthread_mutex_t lock;
    bool ended;
    char folder[PATH_MAX];
    struct failure failure;
} *shared;

/*
 * A socket from the importer to slurmstepd, which never reads: a lock that is sent stays held in it, out of reach of the
 * user, until the step has ended.
 */
static int locks[2];

int image_import_prepare(void)
{
    pthread_mutexattr_t attributes;
    void *memory = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED || socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, locks) < 0)
        return -1;
    shared = memory;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    errno = pthread_mutex_init(&shared->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return errno == 0 ? 0 : -1;
}

static int add_of_worker(int root, struct failure *failure)
{
    for (size_t i = 0; i < LENGTH(OF_WORKER); i++) {
        int mount = mounts_clone(AT_FDCWD, OF_WORKER[i], false, READ_ONLY, CLOSED);

        if (mount < 0 && errno == ENOENT)
            continue; /* lib64 is not on every architecture */
        if (view_attach(root, mount, OF_WORKER[i], failure) < 0)
            return -1;
    }
    return 0;
}

/* Add what the jail has at a path. Returns 1 where it has nothing there, 0, or -1. */
static int add_of_jail(int root, int jail, const char *path, struct failure *failure)
{
    int found = open_in_root(jail, path), result;

    if (found < 0)
        return errno == ENOENT || errno == ENOTDIR ? 1 : fail(failure, "open in the jail", path);
    result = view_attach(root, mounts_clone(found, "", true, 0, 0), path, failure);
    close(found);
    return result;
}

static int add_certificates(int root, int jail, struct failure *failure)
{
    for (size_t i = 0; i < LENGTH(CERTIFICATES); i++) {
        int result = add_of_jail(root, jail, CERTIFICATES[i], failure);

        if (result < 0)
            return -1;
        if (result == 1 && access(CERTIFICATES[i], F_OK) == 0 &&
            view_attach(root, mounts_clone(AT_FDCWD, CERTIFICATES[i], false, READ_ONLY, CLOSED), CERTIFICATES[i],
                        failure) < 0)
            return -1;
    }
    return 0;
}

static int link_folders(int root, struct failure *failure)
{
    static const char *const LINKED[] = {"bin", "lib", "lib64"};
    char target[16];

    for (size_t i = 0; i < LENGTH(LINKED); i++) {
        snprintf(target, sizeof(target), "usr/%s", LINKED[i]);
        if (symlinkat(target, root, LINKED[i]) < 0)
            return fail(failure, "link for the importer", LINKED[i]);
    }
    return 0;
}

/* The importer's root in the jail's view. Returns a descriptor of it, or -1. */
static int build_root(int jail, const struct jail_config *config, struct failure *failure)
{
    static const char *const OPTIONS[] = {"size", "4m", "mode", "0755", NULL};
    int root = mounts_new("tmpfs", OPTIONS, HARMLESS), place, result;

    if (root < 0)
        return fail(failure, "mount", "the importer's root");
    place = make_in_root(jail, ROOT, true);
    result = place < 0 || mounts_attach(root, place) < 0 ? fail(failure, "mount", "the importer's root") : 0;
    if (place >= 0)
        close(place);
    if (result == 0 && (link_folders(root, failure) < 0 || add_of_worker(root, failure) < 0 ||
                        add_certificates(root, jail, failure) < 0))
        result = -1;
    for (size_t i = 0; i < LENGTH(OF_JAIL) && result == 0; i++)
        if (add_of_jail(root, jail, OF_JAIL[i], failure) < 0)
            result = -1;
    for (size_t i = 0; i < config->bind_count && result == 0; i++)
        if (add_of_jail(root, jail, config->binds[i].path, failure) < 0)
            result = -1;
    if (result == 0)
        return root;
    close(root);
    return -1;
}

static int enter_importer(const struct image_import *import, int jail, struct failure *failure)
{
    mode_t umask_before = umask(0022);
    int root = build_root(jail, import->config, failure);

    umask(umask_before);
    if (root >= 0 && enter_root(root, failure) == 0 && confine(~UINT64_C(0), false, failure) == 0 &&
        person_become(import->person, failure) == 0)
        return 0;
    failure->scope = FAILURE_JOB;
    return -1;
}

static void list_variables(const struct image_import *import, char *all[MAX_VARIABLES + 3], char home[600])
{
    size_t count = 0;

    snprintf(home, 600, "HOME=%s", import->person->home);
    all[count++] = home;
    all[count++] = (char *)"PATH=/usr/bin";
    for (size_t i = 0; import->variables[i] && i < MAX_VARIABLES; i++)
        all[count++] = import->variables[i];
    all[count] = NULL;
}

/* Let the calling process be killed when its parent ends. Becoming a user undoes it. */
static void end_with(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent)
        raise(SIGKILL); /* it has ended before */
}

int image_program_become(const struct image_import *import, char *const program[], int input, int output, pid_t parent,
                         struct failure *failure)
{
    char *variables[MAX_VARIABLES + 3], home[600];
    int jail;

    if (parent != 0)
        end_with(parent);
    list_variables(import, variables, home);
    if ((jail = import->open_jail(import->job, failure)) < 0 || enter_importer(import, jail, failure) < 0)
        return -1;
    if ((chdir(import->directory) < 0 && chdir("/") < 0) || dup2(input, STDIN_FILENO) < 0 ||
        dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0 ||
        close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
        return fail_job(failure, "prepare the start of", program[0]);
    if (parent != 0)
        end_with(parent);
    execve(program[0], program, variables);
    return fail_job(failure, "start", program[0]);
}

/*
 * In a process of its own: never returns. All that it prints goes to the task, as lines. A failure before the program
 * starts goes through shared memory, with its scope: a program of the user's could forge an exit code, and drain nodes.
 */
static void run_importer(const struct image_import *import, int output, pid_t parent)
{
    char job_id[16];
    char *const program[] = {(char *)IMPORTER, job_id, import->image, import->name, import->name_flag, NULL};
    struct failure failure = {FAILURE_NONE, ""};

    snprintf(job_id, sizeof(job_id), "%u", import->job_id);
    /* Warnings for the program of the task, such as those of `sbatch --signal`, end no import. */
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, SIG_IGN);
    image_program_become(import, program, locks[1], output, parent, &failure);
    shared->failure = failure;
    _exit(1);
}

/* A registry's words come to a terminal. U+0080 to U+009F are C2 80 to C2 9F. */
void image_program_blot(char *line)
{
    for (unsigned char *byte = (unsigned char *)line; *byte; byte++) {
        if (byte[0] == 0xc2 && byte[1] >= 0x80 && byte[1] <= 0x9f)
            byte[0] = byte[1] = '?';
        else if (*byte < ' ' || *byte == 0x7f)
            *byte = '?';
    }
}

struct result {
    struct found_image found;
    bool brought;
    uint64_t bytes;     /* that it has brought */
    char last[256];     /* of its other lines */
};

/* Take what follows the words in front of a line of the result; false for another line. */
static bool take_result(const char *line, const char *words, char *result, size_t size)
{
    const size_t length = strlen(words);

    return strncmp(line, words, length) == 0 && snprintf(result, size, "%s", line + length) >= 0;
}

/* Pass its lines on, except those of the result. */
static void pass_on_lines(FILE *output, const struct image_import *import, struct result *result)
{
    struct found_image *found = &result->found;
    char *line = NULL, bytes[32];
    size_t size = 0;

    while (getline(&line, &size, output) > 0) {
        line[strcspn(line, "\n")] = '\0';
        if (take_result(line, FOLDER, found->folder, sizeof(found->folder)) ||
            take_result(line, LOCK, found->lock, sizeof(found->lock)) ||
            take_result(line, VERSION, found->version, sizeof(found->version)))
            continue;
        if (take_result(line, BROUGHT, bytes, sizeof(bytes))) {
            result->brought = true;
            result->bytes = strtoull(bytes, NULL, 10);
            continue;
        }
        image_program_blot(line);
        if (line[0] != '\0')
            snprintf(result->last, sizeof(result->last), "%s", line);
        import->say(line);
    }
    free(line);
}

static int await(pid_t child, const struct image_import *import, const struct result *result)
{
    const char *kind = import->image[0] != '\0' ? "image" : "container";
    const char *wanted = import->image[0] != '\0' ? import->image : import->name;
    struct failure *failure = &shared->failure;
    int status;

    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return fail_job(failure, "wait for", "the importer of images");
    if (failure->scope != FAILURE_NONE)
        return -1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && result->found.folder[0] == '/')
        return 0;
    if (WIFSIGNALED(status))
        return fail_with(failure, FAILURE_JOB, "%s %.200s: its import was ended by signal %d%s", kind, wanted,
                         WTERMSIG(status), WTERMSIG(status) == SIGKILL ? " (memory of the job?)" : "");
    return fail_with(failure, FAILURE_JOB, "%s %.200s: %s", kind, wanted, result->last);
}

static uint64_t milliseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Run the importer. A failure is in the shared memory afterwards. */
static int run(const struct image_import *import, struct result *result)
{
    const pid_t task = getpid();
    int ends[2];
    FILE *output;
    pid_t child;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return fail_job(&shared->failure, "make a pipe to", "the importer of images");
    if ((child = fork()) == 0)
        run_importer(import, ends[1], task);
    close(ends[1]);
    if (child < 0 || !(output = fdopen(ends[0], "r"))) {
        close(ends[0]);
        return fail_job(&shared->failure, "start", "the importer of images");
    }
    pass_on_lines(output, import, result);
    fclose(output);
    return await(child, import, result);
}

/*
 * What is asked for, on this node: another user, another run of the job, other settings of the admin, or another folder
 * get another image. Returns false if an earlier step's image is not to be started again.
 */
static bool describe(const struct image_import *import, char asked[2 * PATH_MAX + 128])
{
    static const char TIME[] = "SLURM_JOB_START_TIME=";
    struct stat settings = {.st_ino = 0};
    const char *began = ""; /* Slurm tells it to steps of a batch job; the epilog is there for all */

    for (size_t i = 0; import->variables[i]; i++)
        if (strncmp(import->variables[i], TIME, strlen(TIME)) == 0)
            began = import->variables[i] + strlen(TIME);
    if (import->name[0] != '\0' || (stat(IMPORTER_SETTINGS, &settings) < 0 && errno != ENOENT))
        return false;
    return snprintf(asked, 2 * PATH_MAX + 128, "%u\t%s\t%ju.%jd.%ld\t%s\t%s", import->person->user, began,
                    (uintmax_t)settings.st_ino, (intmax_t)settings.st_mtim.tv_sec, settings.st_mtim.tv_nsec,
                    import->image[0] == '.' ? import->directory : "", import->image) < 2 * PATH_MAX + 128;
}

/* In a process of its own: never returns. Hold what an earlier step has found, in the jail and with the user's rights. */
static void hold(const struct image_import *import, const struct found_image *found, pid_t parent)
{
    struct failure failure = {FAILURE_NONE, ""};
    int jail, lock;

    end_with(parent);
    if ((jail = import->open_jail(import->job, &failure)) < 0 || enter_root(jail, &failure) < 0 ||
        confine(~UINT64_C(0), false, &failure) < 0 || person_become(import->person, &failure) < 0)
        _exit(1);
    end_with(parent);
    if ((chdir(import->directory) < 0 && chdir("/") < 0) || (lock = found_image_hold(found, import->image)) < 0)
        _exit(1);
    _exit(descriptor_message_send(locks[1], &lock, 1) == 0 ? 0 : 1);
}

/* True if slurmstepd holds what an earlier step has found. Otherwise the importer finds out why, and says it. */
static bool is_held(const struct image_import *import, const struct found_image *found)
{
    const pid_t task = getpid();
    pid_t child = fork();
    int status;

    if (child == 0)
        hold(import, found, task);
    if (child < 0)
        return false;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The image's folder, or a failure, is in the shared memory afterwards. */
static void find(const struct image_import *import)
{
    struct result result = {.last = "the importer has said nothing"};
    char asked[2 * PATH_MAX + 128];
    const bool again = describe(import, asked);
    const uint64_t began = milliseconds();
    int done = 0;

    shared->failure.scope = FAILURE_NONE;
    shared->folder[0] = '\0';
    if (!again || !found_image_read(import->job_id, asked, &result.found) || !is_held(import, &result.found)) {
        memset(&result.found, 0, sizeof(result.found));
        done = run(import, &result);
        if (done == 0 && again)
            found_image_note(import->job_id, asked, &result.found);
    }
    if (done == 0)
        memcpy(shared->folder, result.found.folder, PATH_MAX);
    image_count(done < 0 ? "failed" : result.brought ? "brought" : "present", result.bytes, milliseconds() - began);
}

int image_import(const struct image_import *import, char folder[PATH_MAX], struct failure *failure)
{
    int locked;

    if (!shared)
        return fail_with(failure, FAILURE_JOB, "no memory to share with the step's other tasks");
    if ((locked = pthread_mutex_lock(&shared->lock)) == EOWNERDEAD)
        locked = pthread_mutex_consistent(&shared->lock); /* its task was killed: this one goes on */
    if (locked != 0) {
        errno = locked;
        return fail_job(failure, "wait for", "another task that imports the image");
    }
    if (!shared->ended) {
        find(import);
        shared->ended = true;
    }
    memcpy(folder, shared->folder, PATH_MAX);
    *failure = shared->failure;
    pthread_mutex_unlock(&shared->lock);
    return failure->scope == FAILURE_NONE ? 0 : -1;
}
