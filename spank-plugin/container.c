#include "container.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define REFUSED(...) fail_with(failure, FAILURE_JOB, __VA_ARGS__)
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

const struct container_word CONTAINER_WORDS[] = {
    {"container-image", "PYXIS_CONTAINER_IMAGE", "[USER@][REGISTRY#]IMAGE[:TAG]|PATH",
     "image of the container: of a registry, or a folder or archive (OCI, docker save) on a shared volume", CONTAINER_IMAGE},
    {"container-name", "PYXIS_CONTAINER_NAME", "NAME[:auto|create|exec|no_exec]",
     "container that keeps its files, made of the image if there is none of this name", CONTAINER_NAME},
    {"container-save", "PYXIS_CONTAINER_SAVE", "PATH",
     "file of squashfs into which the container is saved when the step's first task has ended", CONTAINER_SAVE},
    {"container-mounts", "PYXIS_CONTAINER_MOUNTS", "SRC:DST[:FLAGS][,SRC:DST...]",
     "files and folders to show in the container; flags: ro, rw", CONTAINER_MOUNTS},
    {"container-workdir", "PYXIS_CONTAINER_WORKDIR", "PATH", "working directory in the container", CONTAINER_WORKDIR},
    {"container-mount-home", "PYXIS_CONTAINER_MOUNT_HOME", NULL, "show the home directory in the container",
     CONTAINER_MOUNT_HOME},
    {"no-container-mount-home", NULL, NULL, "do not show the home directory (default)", CONTAINER_NO_MOUNT_HOME},
    {"container-writable", "PYXIS_CONTAINER_WRITABLE", NULL, "let the task change the container's files (default)",
     CONTAINER_WRITABLE},
    {"container-readonly", "PYXIS_CONTAINER_READONLY", NULL, "make the container's files read-only", CONTAINER_READONLY},
    {"container-env", "PYXIS_CONTAINER_ENV", "NAME[,NAME...]", "variables of the job that win over the image's",
     CONTAINER_ENV},
    {"container-remap-root", "PYXIS_CONTAINER_REMAP_ROOT", NULL,
     "be root in the container, without rights outside, if the cluster allows user namespaces", CONTAINER_REMAP_ROOT},
    {"no-container-remap-root", NULL, NULL, "stay the user in the container (default)", CONTAINER_NO_REMAP_ROOT},
    {"container-entrypoint", "PYXIS_CONTAINER_ENTRYPOINT", NULL,
     "run the image's entry point before the task, which gets the variables that it sets", CONTAINER_ENTRYPOINT},
    {"no-container-entrypoint", NULL, NULL, "do not run the image's entry point (default)", CONTAINER_NO_ENTRYPOINT},
    {"container-entrypoint-log", "PYXIS_CONTAINER_ENTRYPOINT_LOG", NULL, "show what the entry point prints",
     CONTAINER_ENTRYPOINT_LOG},
    {"container-unshare", "PYXIS_CONTAINER_UNSHARE", "NS[,NS...]",
     "not supported: a container has the namespaces of tasks in the jail", CONTAINER_REFUSED},
    {NULL, NULL, NULL, NULL, CONTAINER_REFUSED},
};

/* Take a text of one line; nothing is ever cut. */
static int take_text(char *target, size_t size, const char *name, const char *value, struct failure *failure)
{
    if (!value || value[0] == '\0')
        return REFUSED("--%s needs a value", name);
    for (const char *byte = value; *byte; byte++)
        if ((unsigned char)*byte < ' ' || *byte == 0x7f)
            return REFUSED("--%s has a control character", name);
    if (strlen(value) >= size)
        return REFUSED("--%s=%.40s... is longer than %zu bytes", name, value, size - 1);
    if (target[0] != '\0' && strcmp(target, value) != 0)
        return REFUSED("--%s is given twice: %.100s and %.100s", name, target, value);
    strcpy(target, value);
    return 0;
}

static int take_flags(struct container_mount *mount, char *flags, struct failure *failure)
{
    for (char *rest = flags, *flag; (flag = strsep(&rest, "+"));) {
        if (strcmp(flag, "ro") == 0)
            mount->read_only = true;
        else if (strcmp(flag, "rw") == 0)
            mount->read_only = false;
        else if (strcmp(flag, "rbind") != 0 && strcmp(flag, "bind") != 0)
            return REFUSED("--container-mounts: %.200s has the flag \"%.40s\": known are ro, rw, bind and rbind",
                           mount->source, flag);
    }
    return 0;
}

static int take_mount(struct container *container, char *text, struct failure *failure)
{
    struct container_mount *mount = &container->mounts[container->mount_count];

    if (container->mount_count == CONTAINER_MAX_MOUNTS)
        return REFUSED("--container-mounts has more than %d mounts", CONTAINER_MAX_MOUNTS);
    mount->source = strsep(&text, ":");
    mount->target = text ? strsep(&text, ":") : mount->source;
    if (mount->source[0] != '/' || mount->target[0] != '/')
        return REFUSED("--container-mounts: \"%.100s:%.100s\" is not SRC:DST[:FLAGS] with absolute paths", mount->source,
                       mount->target);
    container->mount_count++;
    return text ? take_flags(mount, text, failure) : 0;
}

static int take_mounts(struct container *container, const char *value, struct failure *failure)
{
    char *rest = container->written;
    char whole[CONTAINER_LIST_SIZE] = "";

    if (take_text(whole, sizeof(whole), "container-mounts", value, failure) < 0)
        return -1;
    memcpy(container->written, whole, sizeof(whole));
    container->mount_count = 0;
    container->has_mounts = true;
    for (char *mount; (mount = strsep(&rest, ","));)
        if (mount[0] != '\0' && take_mount(container, mount, failure) < 0)
            return -1;
    return 0;
}

/* The name of a folder, and of a file for locks. */
static bool is_name(const char *name)
{
    static const char ALLOWED[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";

    return name[0] != '\0' && !strchr(".-", name[0]) && strspn(name, ALLOWED) == strlen(name);
}

static int take_name(struct container *container, const char *value, struct failure *failure)
{
    static const char *const FLAGS[] = {"auto", "create", "exec", "no_exec"};
    char text[CONTAINER_NAME_SIZE + sizeof(container->name_flag)] = "";
    char *rest = text;
    const char *name, *flag;

    if (take_text(text, sizeof(text), "container-name", value, failure) < 0)
        return -1;
    name = strsep(&rest, ":");
    if (!is_name(name) || strlen(name) >= sizeof(container->name))
        return REFUSED("--container-name: \"%s\" is no name of up to %zu letters, digits, \"_\", \".\" and \"-\"", name,
                       sizeof(container->name) - 1);
    flag = rest && rest[0] != '\0' ? rest : FLAGS[0];
    for (size_t i = 0; i < LENGTH(FLAGS); i++) {
        if (strcmp(flag, FLAGS[i]) == 0) {
            strcpy(container->name_flag, flag);
            return take_text(container->name, sizeof(container->name), "container-name", name, failure);
        }
    }
    return REFUSED("--container-name has the flag \"%s\": known are auto, create, exec and no_exec", flag);
}

bool container_is_wanted(const struct container *container)
{
    return container->image[0] != '\0' || container->name[0] != '\0';
}

int container_take(struct container *container, const struct container_word *word, const char *argument,
                   struct failure *failure)
{
    switch (word->option) {
    case CONTAINER_IMAGE:
        return take_text(container->image, sizeof(container->image), word->name, argument, failure);
    case CONTAINER_NAME:
        return take_name(container, argument, failure);
    case CONTAINER_SAVE:
        return take_text(container->save, sizeof(container->save), word->name, argument, failure);
    case CONTAINER_MOUNTS:
        return take_mounts(container, argument, failure);
    case CONTAINER_WORKDIR:
        if (argument && argument[0] != '\0' && argument[0] != '/')
            return REFUSED("--container-workdir=%.200s is not an absolute path", argument);
        return take_text(container->workdir, sizeof(container->workdir), word->name, argument, failure);
    case CONTAINER_ENV:
        return take_text(container->names, sizeof(container->names), word->name, argument, failure);
    case CONTAINER_MOUNT_HOME:
    case CONTAINER_NO_MOUNT_HOME:
        container->has_home = true;
        container->mount_home = word->option == CONTAINER_MOUNT_HOME;
        return 0;
    case CONTAINER_WRITABLE:
    case CONTAINER_READONLY:
        container->has_writable = true;
        container->read_only = word->option == CONTAINER_READONLY;
        return 0;
    case CONTAINER_ENTRYPOINT:
    case CONTAINER_NO_ENTRYPOINT:
        container->has_entrypoint = true;
        container->entrypoint = word->option == CONTAINER_ENTRYPOINT;
        return 0;
    case CONTAINER_ENTRYPOINT_LOG:
        container->entrypoint_log = true;
        return 0;
    case CONTAINER_REMAP_ROOT:
    case CONTAINER_NO_REMAP_ROOT:
        container->has_remap = true;
        container->remap_root = word->option == CONTAINER_REMAP_ROOT;
        return 0;
    case CONTAINER_REFUSED:
        break;
    }
    return REFUSED("--%s is %s. Leave it out", word->name, word->usage);
}

/* Pyxis' words for yes and no; -1: another word. */
static int truth(const char *value)
{
    static const char *const YES[] = {"1", "true", "yes", "on", "enable", "enabled"};
    static const char *const NO[] = {"0", "false", "no", "off", "disable", "disabled"};

    for (size_t i = 0; i < LENGTH(YES); i++) {
        if (strcasecmp(value, YES[i]) == 0)
            return 1;
        if (strcasecmp(value, NO[i]) == 0)
            return 0;
    }
    return -1;
}

static bool is_decided(const struct container *container, enum container_option option)
{
    switch (option) {
    case CONTAINER_IMAGE:
        return container->image[0] != '\0';
    case CONTAINER_NAME:
        return container->name[0] != '\0';
    case CONTAINER_SAVE:
        return container->save[0] != '\0';
    case CONTAINER_MOUNTS:
        return container->has_mounts;
    case CONTAINER_WORKDIR:
        return container->workdir[0] != '\0';
    case CONTAINER_ENV:
        return container->names[0] != '\0';
    case CONTAINER_MOUNT_HOME:
        return container->has_home;
    case CONTAINER_WRITABLE:
    case CONTAINER_READONLY:
        return container->has_writable;
    case CONTAINER_ENTRYPOINT:
        return container->has_entrypoint;
    case CONTAINER_ENTRYPOINT_LOG:
        return container->entrypoint_log;
    case CONTAINER_REMAP_ROOT:
    case CONTAINER_NO_REMAP_ROOT:
        return container->has_remap;
    default:
        return false;
    }
}

static int take_switch(struct container *container, const struct container_word *word, const char *value,
                       struct failure *failure)
{
    int wanted = truth(value);

    if (wanted < 0)
        return REFUSED("%s=%.100s: known are yes and no", word->variable, value);
    if (word->option == CONTAINER_MOUNT_HOME)
        container->mount_home = wanted;
    else if (word->option == CONTAINER_ENTRYPOINT)
        container->entrypoint = wanted;
    else if (word->option == CONTAINER_ENTRYPOINT_LOG)
        container->entrypoint_log = wanted;
    else if (word->option == CONTAINER_REMAP_ROOT)
        container->remap_root = wanted;
    else
        container->read_only = wanted == (word->option == CONTAINER_READONLY);
    return 0;
}

int container_complete(struct container *container, const char *(*get)(void *job, const char *name), void *job,
                       struct failure *failure)
{
    for (const struct container_word *word = CONTAINER_WORDS; word->name; word++) {
        const char *value = word->variable && !is_decided(container, word->option) ? get(job, word->variable) : NULL;

        if (!value || (word->option != CONTAINER_IMAGE && word->option != CONTAINER_NAME && !container_is_wanted(container)))
            continue; /* a variable without an image or a name, which come first, asks for nothing */
        if ((word->argument ? container_take(container, word, value, failure)
                            : take_switch(container, word, value, failure)) < 0)
            return -1;
    }
    if (!container_is_wanted(container) &&
        (container->has_mounts || container->workdir[0] || container->names[0] || container->has_home ||
         container->has_writable || container->entrypoint || container->remap_root || container->save[0]))
        return REFUSED("options of a container need --container-image or --container-name");
    return 0;
}

static bool is_in(const char *names, const char *name)
{
    const size_t length = strlen(name);

    for (const char *found = names; (found = strstr(found, name)); found += length)
        if ((found == names || found[-1] == ',') && (found[length] == '\0' || found[length] == ','))
            return true;
    return false;
}

bool container_keeps(const struct container *container, const char *name)
{
    static const char *const OURS[] = {"SLURM_", "SLURMD_", "PMI_", "PMIX_", "CUDA_VISIBLE_DEVICES"};

    for (size_t i = 0; i < LENGTH(OURS); i++)
        if (strncmp(name, OURS[i], strlen(OURS[i])) == 0)
            return true;
    return is_in("_,OLDPWD,PWD,SHLVL", name) || is_in(container->names, name);
}
