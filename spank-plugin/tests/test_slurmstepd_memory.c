/* Files in a folder stand for cgroups here; the lab and the cluster tier have real ones. */
#include "../slurmstepd_memory.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "world.h"

#define JOB 7
#define MIB (1024 * 1024)

static char root[] = "/run/memory.XXXXXX";

static void put(const char *name, const char *text)
{
    char path[PATH_MAX];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    CHECK((file = fopen(path, "w")) != NULL);
    CHECK(fputs(text, file) >= 0 && fclose(file) == 0);
}

static const char *content(const char *name)
{
    static char text[64];
    char path[PATH_MAX];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", root, name);
    CHECK((file = fopen(path, "r")) != NULL);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return text;
}

static int reserve(void)
{
    struct failure failure = {FAILURE_NONE, ""};
    char own[PATH_MAX];

    snprintf(own, sizeof(own), "%s/own", root);
    return slurmstepd_memory_reserve(root, own, JOB, &failure);
}

/* A step with cgroup v2, and the limits of its job, of itself, and of its tasks. */
static void make_second(const char *job, const char *step, const char *tasks)
{
    world_make();
    CHECK(mkdtemp(root) != NULL);
    put("own", "0::/slice/job_7/step_0/slurm\n");
    put("slice/job_7/memory.max", job);
    put("slice/job_7/step_0/memory.max", step);
    put("slice/job_7/step_0/user/memory.max", tasks);
    put("slice/job_7/step_0/slurm/memory.max", "max\n");
}

TEST(with_v2_the_tasks_get_less_than_their_job_and_slurmstepd_stays_outside)
{
    make_second("209715200\n", "max\n", "max\n");
    CHECK(reserve() == 0);
    CHECK(atoi(content("slice/job_7/step_0/user/memory.max")) == 192 * MIB);
    CHECK(strcmp(content("slice/job_7/memory.max"), "209715200\n") == 0);
    CHECK(strcmp(content("slice/job_7/step_0/slurm/memory.max"), "max\n") == 0);
}

TEST(with_v2_a_step_that_asked_for_less_than_its_job_counts)
{
    make_second("209715200\n", "104857600\n", "max\n");
    CHECK(reserve() == 0);
    CHECK(atoi(content("slice/job_7/step_0/user/memory.max")) == 92 * MIB);
}

TEST(a_small_job_gives_an_eighth)
{
    make_second("16777216\n", "16777216\n", "max\n");
    CHECK(reserve() == 0);
    CHECK(atoi(content("slice/job_7/step_0/user/memory.max")) == 14 * MIB);
}

TEST(a_job_without_a_limit_gets_none)
{
    make_second("max\n", "max\n", "max\n");
    CHECK(reserve() == 0);
    CHECK(strcmp(content("slice/job_7/step_0/user/memory.max"), "max\n") == 0);
}

TEST(with_v1_the_step_gets_less_than_its_job_and_slurmstepd_moves_to_the_jobs)
{
    world_make();
    CHECK(mkdtemp(root) != NULL);
    put("own", "9:cpuset:/\n8:memory:/slurm/uid_1/job_7/step_0\n0::/\n");
    put("memory/slurm/uid_1/memory.limit_in_bytes", "9223372036854771712\n");
    put("memory/slurm/uid_1/job_7/memory.limit_in_bytes", "67108864\n");
    put("memory/slurm/uid_1/job_7/cgroup.procs", "");
    put("memory/slurm/uid_1/job_7/step_0/memory.limit_in_bytes", "67108864\n");
    CHECK(reserve() == 0);
    CHECK(atoi(content("memory/slurm/uid_1/job_7/step_0/memory.limit_in_bytes")) == 56 * MIB);
    CHECK(strcmp(content("memory/slurm/uid_1/job_7/cgroup.procs"), "0") == 0);
}

TEST(a_process_outside_of_its_jobs_cgroups_changes_none)
{
    make_second("209715200\n", "max\n", "max\n");
    put("own", "0::/slice/job_77/step_0/slurm\n");
    CHECK(reserve() == 0);
    CHECK(strcmp(content("slice/job_7/step_0/user/memory.max"), "max\n") == 0);
}

TEST(a_limit_that_cannot_be_set_is_told)
{
    char path[PATH_MAX];

    make_second("209715200\n", "max\n", "max\n");
    snprintf(path, sizeof(path), "%s/slice/job_7/step_0/user/memory.max", root);
    CHECK(unlink(path) == 0);
    CHECK(reserve() == -1);
}

/* What a task's score is, which Slurm has set to 0 if it may. */
static int offered(const char *of_slurmstepd, const char *of_task)
{
    struct failure failure = {FAILURE_NONE, ""};
    char slurmstepd[PATH_MAX], task[PATH_MAX];
    int score;

    world_make();
    CHECK(mkdtemp(root) != NULL);
    put("slurmstepd", of_slurmstepd);
    put("task", of_task);
    snprintf(slurmstepd, sizeof(slurmstepd), "%s/slurmstepd", root);
    snprintf(task, sizeof(task), "%s/task", root);
    CHECK(slurmstepd_memory_read_score(slurmstepd, &score, &failure) == 0);
    CHECK(slurmstepd_memory_offer_task(score, task, &failure) == 0);
    return atoi(content("task"));
}

TEST(a_task_has_a_higher_score_than_its_slurmstepd)
{
    CHECK(offered("500\n", "500\n") == 700);
}

TEST(a_task_that_has_one_already_keeps_it)
{
    CHECK(offered("-997\n", "0\n") == 0);
}

TEST(no_score_of_a_task_is_above_the_kernels)
{
    CHECK(offered("900\n", "900\n") == 1000);
}
