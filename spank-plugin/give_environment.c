/*
 * A program of the worker's image that an image's entry point runs as its command: it writes its environment, a zero
 * byte after every variable and one more at the end, to the descriptor that its argument names (container_entrypoint.h).
 * It is linked statically: an image may have any C library, or none.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    if (count != 2) {
        fputs("give the environment to the task: name one descriptor\n", stderr);
        return 1;
    }
    const int descriptor = atoi(arguments[1]);

    for (char **variable = environ; *variable; variable++) {
        const size_t size = strlen(*variable) + 1;

        if (write(descriptor, *variable, size) != (ssize_t)size) {
            fprintf(stderr, "give the environment to the task: %s\n", strerror(errno));
            return 1;
        }
    }
    return write(descriptor, "", 1) == 1 ? 0 : 1;
}
