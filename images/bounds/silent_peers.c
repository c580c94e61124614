/*
 * connect for slurmctld and slurmdbd, by LD_PRELOAD: a connection whose peer has been silent for a minute ends.
 *
 * The peer of a machine that lost its power never says that it has ended. The kernel then takes 15 minutes to give up
 * what it has sent (tcp_retries2), and for ever if it has sent nothing. For as long, slurmctld waits for slurmdbd's answer
 * with a lock that its main thread needs, which looks after the nodes: new ones then get no jobs (measured with 24.11.5).
 * A peer that answers late is not silent, as its kernel acknowledges what it receives. A peer that doesn't read for a
 * minute counts as silent once its window is full: the kernel then ends the connection, too (TCP_USER_TIMEOUT, tcp(7)).
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

#define SILENT_MILLISECONDS 60000
#define IDLE_SECONDS 30 /* until the kernel asks a peer that has nothing to say */
#define ASKED_AGAIN_SECONDS 10

static void set(int descriptor, int level, int option, int value)
{
    (void)setsockopt(descriptor, level, option, &value, sizeof(value)); /* fails for what is not TCP */
}

/* The system call itself: other libraries may connect before a constructor has looked up libc's function. */
EXPORTED int connect(int descriptor, const struct sockaddr *address, socklen_t length)
{
    if (address && (address->sa_family == AF_INET || address->sa_family == AF_INET6)) {
        set(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
        set(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, IDLE_SECONDS);
        set(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, ASKED_AGAIN_SECONDS);
        set(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, SILENT_MILLISECONDS);
    }
    return (int)syscall(SYS_connect, descriptor, address, length);
}
