#include <stdio.h>
#include <string.h>

#include "../container.h"
#include "harness.h"

static struct container container;
static struct failure failure;

static int take(const char *name, const char *argument)
{
    for (const struct container_word *word = CONTAINER_WORDS; word->name; word++)
        if (strcmp(word->name, name) == 0)
            return container_take(&container, word, argument, &failure);
    CHECK(false);
    return -1;
}

/* Variables of the job: name, value, ..., NULL. */
static const char *of_job(void *job, const char *name)
{
    for (const char *const *variable = job; *variable; variable += 2)
        if (strcmp(variable[0], name) == 0)
            return variable[1];
    return NULL;
}

static int complete(const char *const variables[])
{
    return container_complete(&container, of_job, (void *)variables, &failure);
}

static const char *const NONE[] = {NULL};

TEST(a_job_without_options_wants_no_container)
{
    static const char *const VARIABLES[] = {"PYXIS_CONTAINER_WRITABLE", "yes", NULL};

    CHECK(complete(VARIABLES) == 0);
    CHECK(container.image[0] == '\0');
}

TEST(mounts_have_a_source_a_target_and_flags)
{
    CHECK(take("container-image", "ubuntu:24.04") == 0);
    CHECK(take("container-mounts", "/data,/a:/b,/c:/d:ro,/e:/f:rbind+ro,/g:/h:rw,") == 0);
    CHECK(complete(NONE) == 0 && container.mount_count == 5);
    CHECK(strcmp(container.mounts[0].source, "/data") == 0 && strcmp(container.mounts[0].target, "/data") == 0);
    CHECK(strcmp(container.mounts[1].source, "/a") == 0 && strcmp(container.mounts[1].target, "/b") == 0);
    CHECK(!container.mounts[1].read_only && container.mounts[2].read_only && container.mounts[3].read_only);
    CHECK(strcmp(container.mounts[3].target, "/f") == 0 && !container.mounts[4].read_only);
}

TEST(a_mount_of_another_form_is_refused)
{
    static const char *const WRONG[] = {"data:/data", "/data:", ":/data", "/a:/b:suid", "/a:/b:ro+dev", "/a:/b:", "tmpfs:/x"};

    for (size_t i = 0; i < sizeof(WRONG) / sizeof(WRONG[0]); i++) {
        container = (struct container){.mount_count = 0};
        CHECK(take("container-mounts", WRONG[i]) == -1);
        CHECK_SAYS(failure.text, "--container-mounts");
        CHECK(failure.scope == FAILURE_JOB);
    }
}

TEST(more_mounts_than_fit_are_refused)
{
    char text[CONTAINER_LIST_SIZE] = "";

    for (int i = 0; i <= CONTAINER_MAX_MOUNTS; i++)
        strcat(text, "/a,");
    CHECK(take("container-mounts", text) == -1);
    CHECK_SAYS(failure.text, "more than 64 mounts");
}

TEST(the_same_option_twice_is_one_and_another_value_is_refused)
{
    CHECK(take("container-image", "a") == 0 && take("container-image", "a") == 0);
    CHECK(take("container-image", "b") == -1);
    CHECK_SAYS(failure.text, "--container-image is given twice: a and b");
}

TEST(a_value_that_is_too_long_or_has_control_characters_is_refused)
{
    static char text[PATH_MAX + 1];

    memset(text, 'x', PATH_MAX);
    CHECK(take("container-image", text) == -1);
    CHECK_SAYS(failure.text, "is longer than 4095 bytes");
    text[0] = '\x1b';
    CHECK(take("container-image", text) == -1);
    CHECK_SAYS(failure.text, "has a control character");
    CHECK(take("container-image", "a\nb") == -1);
    CHECK_SAYS(failure.text, "has a control character");
    CHECK(take("container-image", "") == -1);
    CHECK_SAYS(failure.text, "needs a value");
    CHECK(container.image[0] == '\0');
}

TEST(a_variable_can_name_the_image)
{
    static const char *const VARIABLES[] = {"PYXIS_CONTAINER_IMAGE", "ubuntu", "PYXIS_CONTAINER_WRITABLE", "no",
                                            "PYXIS_CONTAINER_ENTRYPOINT", "0", NULL};

    CHECK(complete(VARIABLES) == 0);
    CHECK(strcmp(container.image, "ubuntu") == 0 && container.read_only);
}

TEST(options_win_over_variables)
{
    static const char *const VARIABLES[] = {"PYXIS_CONTAINER_IMAGE", "other", "PYXIS_CONTAINER_MOUNTS", "/data",
                                            "PYXIS_CONTAINER_READONLY", "1", "PYXIS_CONTAINER_MOUNT_HOME", "yes",
                                            "PYXIS_CONTAINER_WORKDIR", "/work", NULL};

    CHECK(take("container-image", "mine") == 0 && take("no-container-mount-home", NULL) == 0);
    CHECK(complete(VARIABLES) == 0);
    CHECK(strcmp(container.image, "mine") == 0 && !container.mount_home);
    CHECK(container.read_only && container.mount_count == 1 && strcmp(container.workdir, "/work") == 0);
}

TEST(a_variable_with_another_word_than_yes_or_no_is_refused)
{
    static const char *const VARIABLES[] = {"PYXIS_CONTAINER_WRITABLE", "perhaps", NULL};

    CHECK(take("container-image", "mine") == 0);
    CHECK(complete(VARIABLES) == -1);
    CHECK_SAYS(failure.text, "PYXIS_CONTAINER_WRITABLE=perhaps: known are yes and no");
}

TEST(options_without_an_image_are_refused)
{
    CHECK(take("container-mounts", "/data") == 0);
    CHECK(complete(NONE) == -1);
    CHECK_SAYS(failure.text, "need --container-image");
}

TEST(what_pyxis_has_and_this_plugin_has_not_is_refused_by_its_name_with_the_reason)
{
    CHECK(take("container-unshare", "x") == -1);
    CHECK_SAYS(failure.text, "--container-unshare is not supported: a container has the");
    CHECK_SAYS(failure.text, "Leave it out");
}

TEST(a_task_can_be_root_and_an_option_wins_over_the_variable)
{
    static const char *const VARIABLES[] = {"PYXIS_CONTAINER_IMAGE", "x", "PYXIS_CONTAINER_REMAP_ROOT", "yes", NULL};

    CHECK(complete(VARIABLES) == 0 && container.remap_root);
    container = (struct container){.mount_count = 0};
    CHECK(take("no-container-remap-root", NULL) == 0 && complete(VARIABLES) == 0 && !container.remap_root);
    container = (struct container){.mount_count = 0};
    CHECK(take("container-remap-root", NULL) == 0 && complete(NONE) == -1);
    CHECK_SAYS(failure.text, "need --container-image");
}

TEST(a_name_stands_in_for_an_image_and_has_a_flag)
{
    CHECK(take("container-name", "my.tools_2-b") == 0 && take("container-mounts", "/data") == 0 && complete(NONE) == 0);
    CHECK(strcmp(container.name, "my.tools_2-b") == 0 && strcmp(container.name_flag, "auto") == 0);
    CHECK(container_is_wanted(&container));
    container = (struct container){.mount_count = 0};
    CHECK(take("container-name", "a:no_exec") == 0 && take("container-name", "a:no_exec") == 0);
    CHECK(strcmp(container.name, "a") == 0 && strcmp(container.name_flag, "no_exec") == 0);
    CHECK(take("container-name", "b") == -1);
    CHECK_SAYS(failure.text, "--container-name is given twice: a and b");
}

TEST(a_container_is_saved_at_a_path_that_needs_an_image_or_a_name)
{
    CHECK(take("container-save", "./it.sqsh") == 0 && complete(NONE) == -1);
    CHECK_SAYS(failure.text, "need --container-image");
    CHECK(take("container-name", "a") == 0 && complete(NONE) == 0 && strcmp(container.save, "./it.sqsh") == 0);
}

TEST(a_variable_can_name_the_container)
{
    static const char *const VARIABLES[] = {"PYXIS_CONTAINER_NAME", "a:create", "PYXIS_CONTAINER_MOUNTS", "/data", NULL};

    CHECK(complete(VARIABLES) == 0);
    CHECK(strcmp(container.name, "a") == 0 && strcmp(container.name_flag, "create") == 0 && container.mount_count == 1);
}

TEST(a_name_that_is_no_name_of_a_file_or_has_another_flag_is_refused)
{
    static const char *const WRONG[] = {"..", ".", "a/b", "../a", "-a", ".a", ":create", "a b", "a:b", "a:exec:x",
                                        "0123456789012345678901234567890123456789012345678901234567890123x"};

    for (size_t i = 0; i < sizeof(WRONG) / sizeof(WRONG[0]); i++) {
        container = (struct container){.mount_count = 0};
        CHECK(take("container-name", WRONG[i]) == -1);
        CHECK_SAYS(failure.text, "--container-name");
        CHECK(!container_is_wanted(&container));
    }
}

TEST(an_entry_point_runs_if_an_option_or_a_variable_says_so)
{
    static const char *const VARIABLES[] = {"PYXIS_CONTAINER_IMAGE", "ubuntu", "PYXIS_CONTAINER_ENTRYPOINT", "1",
                                            "PYXIS_CONTAINER_ENTRYPOINT_LOG", "1", NULL};

    CHECK(complete(VARIABLES) == 0 && container.entrypoint && container.entrypoint_log);
    container = (struct container){.mount_count = 0};
    CHECK(take("no-container-entrypoint", NULL) == 0 && complete(VARIABLES) == 0 && !container.entrypoint);
    container = (struct container){.mount_count = 0};
    CHECK(take("container-image", "ubuntu") == 0 && complete(NONE) == 0 && !container.entrypoint);
    container = (struct container){.mount_count = 0};
    CHECK(take("container-entrypoint", NULL) == 0 && complete(NONE) == -1);
    CHECK_SAYS(failure.text, "need --container-image");
}

TEST(variables_of_slurm_and_of_the_option_win_over_the_images)
{
    CHECK(take("container-env", "PATH,LD_LIBRARY_PATH") == 0);
    CHECK(container_keeps(&container, "PATH") && container_keeps(&container, "LD_LIBRARY_PATH"));
    CHECK(container_keeps(&container, "SLURM_JOB_ID") && container_keeps(&container, "PMIX_RANK"));
    CHECK(!container_keeps(&container, "LD_LIBRARY") && !container_keeps(&container, "LIBRARY_PATH"));
    CHECK(container_keeps(&container, "_") && container_keeps(&container, "SHLVL"));
    CHECK(!container_keeps(&container, "HOME") && !container_keeps(&container, "_X") && !container_keeps(&container, "WD"));
}
