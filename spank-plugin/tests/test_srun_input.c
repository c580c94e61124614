#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../srun_input.h"
#include "harness.h"
#include "world.h"

static struct failure failure;

#define GIVEN(...)                                                                                                     \
    srun_input((char *[]){(char *)"srun", __VA_ARGS__}, sizeof((char *[]){(char *)"srun", __VA_ARGS__}) / sizeof(char *), \
               "inherited")

TEST(the_last_input_option_counts)
{
    CHECK(strcmp(GIVEN((char *)"-N2"), "inherited") == 0);
    CHECK(strcmp(GIVEN((char *)"-i", (char *)"file"), "file") == 0);
    CHECK(strcmp(GIVEN((char *)"-ifile", (char *)"-N2"), "file") == 0);
    CHECK(strcmp(GIVEN((char *)"--input", (char *)"file"), "file") == 0);
    CHECK(strcmp(GIVEN((char *)"-i", (char *)"other", (char *)"--input=file"), "file") == 0);
    CHECK(strcmp(GIVEN((char *)"--immediate", (char *)"-i"), "inherited") == 0);
}

TEST(a_directory_is_refused)
{
    CHECK(srun_input_prepare("/", &failure) == -1 && failure.scope == FAILURE_JOB);
    CHECK_SAYS(failure.text, "standard input / is a directory");
    CHECK(srun_input_prepare("/nothing", &failure) == 0);
    CHECK(srun_input_prepare(NULL, &failure) == 0);
}

static bool is_idle(const char *input)
{
    struct pollfd polled = {.fd = STDIN_FILENO, .events = POLLIN};
    int null = open("/dev/null", O_RDONLY);

    CHECK(null >= 0 && dup2(null, STDIN_FILENO) == STDIN_FILENO);
    CHECK(srun_input_prepare(input, &failure) == 0);
    return poll(&polled, 1, 10) == 0;
}

TEST(beside_files_of_tasks_srun_has_an_input_in_which_nothing_comes)
{
    CHECK(is_idle("in.%t") && is_idle("%j-%3t.txt"));
    CHECK(!is_idle("in.%j") && !is_idle("t") && !is_idle("100%"));
    CHECK(close(STDIN_FILENO) == 0);
    CHECK(srun_input_prepare("in.%t", &failure) == 0 && fcntl(STDIN_FILENO, F_GETFD) >= 0);
}

TEST(a_processs_own_arguments_are_looked_at)
{
    CHECK(srun_input_prepare_own(0, &failure) == 0);
    CHECK(setenv("SLURM_STDINMODE", "/", 1) == 0);
    CHECK(srun_input_prepare_own(0, &failure) == -1);
}
