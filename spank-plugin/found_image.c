#include "found_image.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bounded_lines.h"

#define MOST_BYTES 8192 /* of a job: the files of all share the pod's memory */
#define MOST_PATH sizeof(FOUND_IMAGES "/4294967295")

static void path_of(char path[MOST_PATH], uint32_t job_id)
{
    snprintf(path, MOST_PATH, FOUND_IMAGES "/%u", job_id);
}

/* Take a field that ends with a character, and go on after it. */
static bool take(char **rest, char end, char *field, size_t size)
{
    char *stop = strchr(*rest, end);

    if (!stop || (size_t)(stop - *rest) >= size)
        return false;
    *stop = '\0';
    strcpy(field, *rest);
    *rest = stop + 1;
    return true;
}

bool found_image_read(uint32_t job_id, const char *asked, struct found_image *found)
{
    const size_t length = strlen(asked);
    char path[MOST_PATH], *line = NULL, *rest;
    size_t size = 0;
    bool is_found = false;
    FILE *file;

    path_of(path, job_id);
    if (!(file = fopen(path, "re")))
        return false;
    while (getline(&line, &size, file) > 0) {
        if (strncmp(line, asked, length) != 0 || line[length] != '\t')
            continue;
        rest = line + length + 1;
        is_found = take(&rest, '\t', found->version, sizeof(found->version)) &&
                   take(&rest, '\t', found->lock, sizeof(found->lock)) &&
                   take(&rest, '\n', found->folder, sizeof(found->folder));
    }
    free(line);
    fclose(file);
    return is_found;
}

static bool is_one_field(const char *text)
{
    return !strpbrk(text, "\t\n");
}

void found_image_note(uint32_t job_id, const char *asked, const struct found_image *found)
{
    char path[MOST_PATH], *line = NULL;

    path_of(path, job_id);
    if (found->lock[0] == '\0' || strchr(asked, '\n') || !is_one_field(found->version) || !is_one_field(found->lock) ||
        !is_one_field(found->folder) ||
        asprintf(&line, "%s\t%s\t%s\t%s\n", asked, found->version, found->lock, found->folder) < 0)
        return;
    mkdir(FOUND_IMAGES, 0700);
    bounded_lines_append(path, line, MOST_BYTES);
    free(line);
}

void found_image_forget(uint32_t job_id)
{
    char path[MOST_PATH];

    path_of(path, job_id);
    unlink(path);
}

/* True if the path that the user has written still leads to the file of that version, or to a folder with it. */
static bool is_current(const char *version, const char *image)
{
    char meant[PATH_MAX], *now = NULL;
    const char *path = version;
    struct stat status;
    size_t length;
    bool is;

    for (int i = 0; i < 3; i++)
        if (!(path = strchr(path, ' ')) || !*++path)
            return false;
    if (!realpath(image, meant) || strncmp(path, meant, length = strlen(meant)) != 0 ||
        (path[length] != '\0' && path[length] != '/') || access(path, R_OK) < 0 || stat(path, &status) < 0 ||
        asprintf(&now, "%ju %jd %jd %s", (uintmax_t)status.st_ino, (intmax_t)status.st_size,
                 (intmax_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec, path) < 0)
        return false;
    is = strcmp(now, version) == 0;
    free(now);
    return is;
}

int found_image_hold(const struct found_image *found, const char *image)
{
    struct stat locked, folder;
    int lock;

    if ((image[0] == '/' || image[0] == '.') && !is_current(found->version, image))
        return -1;
    if ((lock = open(found->lock, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) < 0)
        return -1;
    /* Only then the folder: what takes the lock alone may have removed the image before. */
    if (flock(lock, LOCK_SH | LOCK_NB) == 0 && fstat(lock, &locked) == 0 && S_ISREG(locked.st_mode) &&
        locked.st_nlink > 0 && stat(found->folder, &folder) == 0 && S_ISDIR(folder.st_mode)) {
        utimensat(AT_FDCWD, found->folder, NULL, 0); /* the time of the last start, if the folder is the user's */
        return lock;
    }
    close(lock);
    return -1;
}
