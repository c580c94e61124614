#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "../numeric_entries.h"
#include "harness.h"
#include "world.h"

static bool breaks;
static int sum;

/* In place of the C library's: fails as a file system does whose server is gone. */
struct dirent *readdir(DIR *directory)
{
    static struct dirent entries[] = {{.d_name = "."}, {.d_name = "12"}, {.d_name = "x3"}, {.d_name = "4x"},
                                      {.d_name = "5"}};
    static size_t next;

    (void)directory;
    if (next < sizeof(entries) / sizeof(entries[0]))
        return &entries[next++];
    if (breaks)
        errno = EIO;
    return NULL;
}

static int add(int number, int reading, void *stop)
{
    (void)reading;
    sum += number;
    return stop && number == *(int *)stop ? 7 : 0;
}

TEST(entries_that_are_numbers_are_seen)
{
    CHECK(numeric_entries_each("/proc", add, NULL) == 0);
    CHECK(sum == 17);
}

TEST(an_open_directory_is_read_and_closed)
{
    int directory = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    CHECK(numeric_entries_read(directory, add, NULL) == 0 && sum == 17);
    CHECK(fcntl(directory, F_GETFD) == -1 && errno == EBADF);
}

TEST(looking_ends_when_enough_is_seen)
{
    int enough = 12;

    CHECK(numeric_entries_each("/proc", add, &enough) == 7);
    CHECK(sum == 12);
}

TEST(a_directory_that_cannot_be_read_to_its_end_is_a_failure)
{
    breaks = true;
    CHECK(numeric_entries_each("/proc", add, NULL) == -1 && errno == EIO);
    CHECK(sum == 17);
}

TEST(a_directory_that_is_not_there_is_a_failure)
{
    CHECK(numeric_entries_each("/nothing", add, NULL) == -1 && errno == ENOENT);
}
