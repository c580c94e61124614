/* The accept that these tests call is slurmstepd's. */
#include "../step_peers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "harness.h"
#include "world.h"

static const struct sockaddr_in FOUR = {.sin_family = AF_INET, .sin_addr = {.s_addr = 0x0100007f}};
static const struct sockaddr_in6 SIX = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};

static struct sockaddr_storage place;
static socklen_t size;

static int listen_on(const void *address, socklen_t length)
{
    int listener = socket(((const struct sockaddr *)address)->sa_family, SOCK_STREAM, 0);

    CHECK(listener >= 0 && bind(listener, address, length) == 0 && listen(listener, 8) == 0);
    size = sizeof(place);
    CHECK(getsockname(listener, (struct sockaddr *)&place, &size) == 0);
    return listener;
}

/* Connect as a user; the connection stays open. */
static int call_as(uid_t user)
{
    int caller;

    CHECK(seteuid(user) == 0);
    CHECK((caller = socket(place.ss_family, SOCK_STREAM, 0)) >= 0);
    CHECK(connect(caller, (struct sockaddr *)&place, size) == 0);
    CHECK(seteuid(0) == 0);
    return caller;
}

TEST(on_the_loopback_device_the_steps_user_is_let_in_and_nobody_else)
{
    const struct {
        const void *address;
        socklen_t size;
    } KINDS[] = {{&FOUR, sizeof(FOUR)}, {&SIX, sizeof(SIX)}};
    char byte;
    int listener, caller, accepted;

    step_peers_are_of(USER_ID);
    for (int i = 0; i < 2; i++) {
        listener = listen_on(KINDS[i].address, KINDS[i].size);
        caller = call_as(USER_ID);
        CHECK((accepted = accept(listener, NULL, NULL)) >= 0);
        close(accepted);
        close(caller);
        caller = call_as(USER_ID + 1);
        CHECK(accept(listener, NULL, NULL) == -1 && errno == EAGAIN);
        CHECK(read(caller, &byte, 1) <= 0);
        close(caller);
        close(listener);
    }
}

TEST(who_has_called_and_gone_is_not_taken_for_root_or_the_user)
{
    int listener = listen_on(&FOUR, sizeof(FOUR)), caller;

    step_peers_are_of(USER_ID);
    caller = call_as(USER_ID + 1);
    CHECK(write(caller, "x", 1) == 1 && close(caller) == 0);
    CHECK(accept(listener, NULL, NULL) == -1 && errno == EAGAIN);
    close(listener);
}

TEST(sockets_that_are_not_of_the_loopback_device_take_everybody)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    int listener = listen_on(&local, sizeof(local.sun_family)), caller, accepted;

    step_peers_are_of(USER_ID);
    caller = call_as(USER_ID + 1);
    CHECK((accepted = accept(listener, NULL, NULL)) >= 0);
    close(accepted);
    close(caller);
    close(listener);
}
