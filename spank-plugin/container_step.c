#include "container_step.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <slurm/slurm.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "container.h"
#include "container_entrypoint.h"
#include "container_view.h"
#include "image_save.h"
#include "image_settings.h"
#include "remap_root.h"

static struct container container;
static struct failure refused; /* the first option that cannot be */
static struct person person;
static struct image_settings settings;
static bool ignored; /* a variable names an image on a cluster without containers */
static bool saved; /* this task's container is */
static char folder[PATH_MAX]; /* of the image, in the jail */

/* Slurm's callback of every option: `number` is its place among the words. */
static int take_option(int number, const char *argument, int remote)
{
    (void)remote;
    if (refused.scope == FAILURE_NONE)
        container_take(&container, &CONTAINER_WORDS[number], argument, &refused);
    return 0; /* Slurm's own words for a refusal name neither the option nor the reason: container_step_check does */
}

int container_step_register(spank_t spank, struct failure *failure)
{
    for (int i = 0; CONTAINER_WORDS[i].name; i++) {
        const struct container_word *word = &CONTAINER_WORDS[i];
        struct spank_option option = {
            .name = word->name,
            .arginfo = word->argument,
            .usage = word->usage,
            .has_arg = word->argument ? 1 : 0,
            .val = i,
            .cb = take_option,
        };

        if (spank_option_register(spank, &option) != ESPANK_SUCCESS)
            return fail_with(failure, FAILURE_NODE, "register the option --%s", word->name);
    }
    return 0;
}

static const char *own_variable(void *job, const char *name)
{
    (void)job;
    return getenv(name);
}

/* The value until the next call; NULL: none. A longer one is cut to what is still too long for every option. */
static const char *variable_of_job(void *job, const char *name)
{
    static char value[CONTAINER_LIST_SIZE + 1];
    spank_err_t result = spank_getenv(job, name, value, sizeof(value));

    return result == ESPANK_SUCCESS || result == ESPANK_NOSPACE ? value : NULL;
}

static int complete(const char *(*get)(void *job, const char *name), void *job, struct failure *failure)
{
    if (refused.scope == FAILURE_NONE)
        return container_complete(&container, get, job, failure);
    *failure = refused;
    return -1;
}

int container_step_check(struct failure *failure)
{
    return complete(own_variable, NULL, failure);
}

static int find_groups(spank_t spank, struct failure *failure)
{
    gid_t *groups = NULL;
    int count = 0;

    if (spank_get_item(spank, S_JOB_UID, &person.user) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_GID, &person.group) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_SUPPLEMENTARY_GIDS, &groups, &count) != ESPANK_SUCCESS)
        return fail_with(failure, FAILURE_JOB, "ask Slurm for the user of the container");
    if (count < 0 || count > PERSON_MAX_GROUPS)
        return fail_with(failure, FAILURE_JOB, "a user of a container may have %d groups, and has %d", PERSON_MAX_GROUPS,
                         count);
    if (count > 0) /* else Slurm may give no address */
        memcpy(person.groups, groups, (size_t)count * sizeof(*groups));
    person.group_count = count;
    return 0;
}

static int find_person(spank_t spank, struct failure *failure)
{
    struct passwd *found;

    if (find_groups(spank, failure) < 0)
        return -1;
    if (!(found = getpwuid(person.user)) || strlen(found->pw_name) >= sizeof(person.name) ||
        strlen(found->pw_dir) >= sizeof(person.home) || found->pw_dir[0] != '/')
        return fail_with(failure, FAILURE_JOB, "user %u has no entry with a name and a home", person.user);
    strcpy(person.name, found->pw_name);
    strcpy(person.home, found->pw_dir);
    return 0;
}

static const char *no_variable(void *job, const char *name)
{
    (void)job;
    (void)name;
    return NULL;
}

int container_step_prepare(spank_t spank, const struct jail_config *config, struct failure *failure)
{
    const bool allowed = config->containers_mib > 0;

    if (complete(allowed ? variable_of_job : no_variable, spank, failure) < 0)
        return -1;
    if (!container_step_wanted()) {
        ignored = !allowed && variable_of_job(spank, "PYXIS_CONTAINER_IMAGE");
        return 0;
    }
    if (!allowed)
        return fail_with(failure, FAILURE_JOB,
                         "--container-image and --container-name: this cluster has no containers. Whoever runs it gives "
                        "it the key `containers`");
    if (container.remap_root && !config->user_namespaces)
        return fail_with(failure, FAILURE_JOB,
                         "--container-remap-root: jobs of this cluster may make no user namespaces "
                         "(jail.isolation.user_namespaces), so a task is its user in the container, and not root. Leave it out");
    if (image_import_prepare() < 0 || (container.save[0] != '\0' && image_save_prepare() < 0))
        return fail_job(failure, "share with tasks", "memory for the import of images");
    return find_person(spank, failure);
}

void container_step_warn(spank_t spank)
{
    uint32_t task;

    if (ignored && spank_get_item(spank, S_TASK_GLOBAL_ID, &task) == ESPANK_SUCCESS && task == 0)
        slurm_spank_log("container: PYXIS_CONTAINER_IMAGE is ignored, as this cluster has no containers: unset it");
}

/* True in the step's first task, whose container is saved, and in slurmstepd when it has ended. */
static bool saves(spank_t spank)
{
    uint32_t task;

    return container.save[0] != '\0' && spank_get_item(spank, S_TASK_GLOBAL_ID, &task) == ESPANK_SUCCESS && task == 0;
}

int container_step_track(spank_t spank, struct failure *failure)
{
    return saves(spank) && image_save_track() < 0 ? fail_job(failure, "let the task start the program of", "--container-save")
                                                  : 0;
}

bool container_step_wanted(void)
{
    return container_is_wanted(&container);
}

static void say(const char *line)
{
    slurm_spank_log("container: %s", line);
}

int container_step_import(spank_t spank, const struct jail_config *config, const char *directory,
                          image_open_jail open_jail, void *job, struct failure *failure)
{
    static const char *const PASSED[] = {"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY",
                                         "NO_PROXY", "XDG_RUNTIME_DIR", "REGISTRY_AUTH_FILE", "DOCKER_CONFIG",
                                         "SLURM_CLUSTER_NAME", "SLURM_JOB_START_TIME", "SLURM_STEP_ID"};
    static char texts[sizeof(PASSED) / sizeof(PASSED[0])][1024];
    char *variables[sizeof(PASSED) / sizeof(PASSED[0]) + 1];
    size_t count = 0;
    struct image_import import = {.config = config, .person = &person, .image = container.image, .name = container.name,
                                  .name_flag = container.name_flag, .directory = directory,
                                  .variables = variables, .open_jail = open_jail, .job = job, .say = say};

    if (spank_get_item(spank, S_JOB_ID, &import.job_id) != ESPANK_SUCCESS)
        return fail_with(failure, FAILURE_JOB, "ask Slurm for the job's number");
    for (size_t i = 0; i < sizeof(PASSED) / sizeof(PASSED[0]); i++) {
        const char *value = variable_of_job(spank, PASSED[i]);

        if (value && snprintf(texts[count], sizeof(texts[0]), "%s=%s", PASSED[i], value) < (int)sizeof(texts[0])) {
            variables[count] = texts[count];
            count++;
        }
    }
    variables[count] = NULL;
    if (image_import(&import, folder, failure) < 0)
        return -1;
    saved = saves(spank);
    return saved ? image_save_start(&import, folder, container.save, failure) : 0;
}

int container_step_enter(const struct jail_config *config, const char *directory, struct failure *failure)
{
    char tree[PATH_MAX];
    struct container_view view = {
        .config = config, .container = &container, .person = &person, .tree = tree, .keep = container.name[0] != '\0',
        .directory = directory,
        .give = saved ? image_save_give : NULL};
    int result = -1;

    if (snprintf(tree, sizeof(tree), "%s/rootfs", folder) >= (int)sizeof(tree))
        return fail_with(failure, FAILURE_JOB, "the image's folder %.100s... has too long a path", folder);
    if (person_enter(&person, failure) == 0)
        result = image_settings_read(&settings, folder, container.entrypoint, failure);
    if (person_leave(failure) < 0)
        return -1;
    return result < 0 ? -1 : container_view_enter(&view, failure);
}

int container_step_confined(struct failure *failure)
{
    return container.remap_root ? remap_root_prepare(&person, failure) : 0;
}

int container_step_settle(int (*set)(void *job, const char *name, const char *value), void *job, char directory[PATH_MAX],
                          struct failure *failure)
{
    snprintf(directory, PATH_MAX, "%s", container.workdir[0] != '\0' ? container.workdir : settings.workdir);
    return image_settings_give(&settings, &container, set, job, failure);
}

static int run_entrypoint(spank_t spank, int (*set)(void *job, const char *name, const char *value), struct failure *failure)
{
    char **environment;

    if (spank_get_item(spank, S_JOB_ENV, &environment) != ESPANK_SUCCESS)
        return fail_with(failure, FAILURE_JOB, "ask Slurm for the variables of the job");
    if (container_entrypoint_run(&settings, (char *)GIVE_ENVIRONMENT, environment, container.entrypoint_log, failure) < 0)
        return -1;
    return image_settings_give(&settings, &container, set, spank, failure);
}

int container_step_begin(spank_t spank, int (*set)(void *job, const char *name, const char *value), struct failure *failure)
{
    if (container.remap_root && remap_root_enter(failure) < 0)
        return -1;
    if (container.entrypoint && run_entrypoint(spank, set, failure) < 0)
        return -1;
    if (saved)
        image_save_go();
    return 0;
}

void container_step_end_task(spank_t spank)
{
    if (saves(spank))
        image_save_await(say);
}
