#include "step_peers.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "step_callers.h"

#define EXPORTED __attribute__((visibility("default")))
#define ESTABLISHED 1

static uid_t step_user;
static bool is_known;

EXPORTED void step_peers_are_of(uid_t user)
{
    step_user = user;
    is_known = true;
}

/* An end of a connection as the kernel lists it (proc_pid_net(5)): words of the address as numbers of the machine. */
static void print_end(char text[64], const struct sockaddr_storage *end)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)end;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)end;
    const uint32_t *words = six->sin6_addr.s6_addr32;

    if (end->ss_family == AF_INET)
        snprintf(text, 64, "%08X:%04X", four->sin_addr.s_addr, ntohs(four->sin_port));
    else
        snprintf(text, 64, "%08X%08X%08X%08X:%04X", words[0], words[1], words[2], words[3], ntohs(six->sin6_port));
}

static bool is_loopback(const struct sockaddr_storage *end)
{
    if (end->ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)end)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return end->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)end)->sin6_addr);
}

/* True if the other end is a socket of the user's that is still in use: one that nobody has any more counts as root's. */
static bool is_of_user(const struct sockaddr_storage *here, const struct sockaddr_storage *there)
{
    char wanted_local[64], wanted_remote[64], line[256], local[64], remote[64];
    FILE *list = fopen(here->ss_family == AF_INET ? "/proc/net/tcp" : "/proc/net/tcp6", "re");
    unsigned int state, user;
    bool found = false;

    if (!list)
        return false;
    print_end(wanted_local, there);
    print_end(wanted_remote, here);
    while (!found && fgets(line, sizeof(line), list))
        found = sscanf(line, "%*s %63s %63s %x %*s %*s %*s %u", local, remote, &state, &user) == 4 &&
                state == ESTABLISHED && user == step_user && strcmp(local, wanted_local) == 0 &&
                strcmp(remote, wanted_remote) == 0;
    fclose(list);
    return found;
}

/* Callers of PMIx on this machine are the step's tasks, and those from elsewhere slurmstepds of its other nodes. */
static bool is_let_in(int connection)
{
    struct sockaddr_storage here, there;
    socklen_t here_size = sizeof(here), there_size = sizeof(there);

    if (getsockname(connection, (struct sockaddr *)&here, &here_size) < 0)
        return false;
    if (is_loopback(&here))
        return getpeername(connection, (struct sockaddr *)&there, &there_size) == 0 && is_of_user(&here, &there);
    if (here.ss_family == AF_INET || here.ss_family == AF_INET6)
        step_callers_note(connection);
    return true;
}

static int admit(int connection)
{
    if (connection < 0 || !is_known || is_let_in(connection))
        return connection;
    close(connection);
    errno = EAGAIN; /* as if nobody had called: libpmix stops listening at other errors */
    return -1;
}

EXPORTED int accept4(int socket, struct sockaddr *address, socklen_t *size, int flags)
{
    static int (*_Atomic next)(int, struct sockaddr *, socklen_t *, int); /* that of slurmd, which bounds connections */

    if (!next)
        next = (int (*)(int, struct sockaddr *, socklen_t *, int))dlsym(RTLD_NEXT, "accept4");
    return admit(next(socket, address, size, flags));
}

EXPORTED int accept(int socket, struct sockaddr *address, socklen_t *size)
{
    return accept4(socket, address, size, 0);
}
