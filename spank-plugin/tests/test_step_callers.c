/* The accept and the read that these tests call are slurmstepd's. */
#include "../step_callers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../step_peers.h"
#include "harness.h"
#include "world.h"

#define MAGIC 0xCAFECA11
#define HEADER_BYTES 21

static struct sockaddr_in place;

/* In a network of its own: give it an address that is not of the loopback device's network. */
static void make_address(void)
{
    struct ifreq request = {.ifr_name = "lo"};
    struct sockaddr_in *address = (struct sockaddr_in *)(void *)&request.ifr_addr;
    int any;

    CHECK(unshare(CLONE_NEWNET) == 0);
    CHECK((any = socket(AF_INET, SOCK_DGRAM, 0)) >= 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(0x0a010101)}};
    place = *address;
    CHECK(ioctl(any, SIOCSIFADDR, &request) == 0);
    request.ifr_flags = IFF_UP;
    CHECK(ioctl(any, SIOCSIFFLAGS, &request) == 0 && close(any) == 0);
}

static int listen_outside(void)
{
    socklen_t size = sizeof(place);
    int listener;

    make_address();
    CHECK((listener = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
    CHECK(bind(listener, (struct sockaddr *)&place, sizeof(place)) == 0 && listen(listener, 64) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&place, &size) == 0);
    step_peers_are_of(USER_ID);
    step_callers_are_bounded();
    return listener;
}

static int call(int listener, int *accepted)
{
    int caller = socket(AF_INET, SOCK_STREAM, 0);

    CHECK(caller >= 0 && connect(caller, (struct sockaddr *)&place, sizeof(place)) == 0);
    CHECK((*accepted = accept(listener, NULL, NULL)) >= 0);
    return caller;
}

static void greet(int caller, uint32_t magic, uint32_t length)
{
    uint32_t header[6] = {htonl(magic), htonl(7), 0, 0, htonl(length), 0xff};

    CHECK(write(caller, header, HEADER_BYTES) == HEADER_BYTES);
}

TEST(a_caller_is_read_who_greets_and_then_sends_what_it_likes)
{
    static char bytes[STEP_CALLERS_GREETING_BYTES];
    int listener = listen_outside(), accepted, caller = call(listener, &accepted);

    greet(caller, MAGIC, 100);
    CHECK(read(accepted, bytes, HEADER_BYTES) == HEADER_BYTES && bytes[HEADER_BYTES - 1] == (char)0xff);
    CHECK(write(caller, bytes, 100) == 100 && read(accepted, bytes, 100) == 100);
    greet(caller, 1, UINT32_MAX);
    CHECK(read(accepted, bytes, sizeof(bytes)) == HEADER_BYTES);
    CHECK(write(caller, bytes, 1000) == 1000 && read(accepted, bytes, sizeof(bytes)) == 1000);
}

TEST(a_caller_is_not_read_who_announces_more_than_a_greeting_or_nothing_that_is_one)
{
    const struct {
        uint32_t magic, length;
    } OTHERS[] = {{MAGIC, STEP_CALLERS_GREETING_BYTES + 1}, {MAGIC, UINT32_MAX}, {0x11CAFECA, 100}};
    int listener = listen_outside(), accepted, caller;
    char bytes[HEADER_BYTES];

    for (int i = 0; i < 3; i++) {
        caller = call(listener, &accepted);
        greet(caller, OTHERS[i].magic, OTHERS[i].length);
        CHECK(read(accepted, bytes, 20) == 20); /* all but the last byte */
        CHECK(read(accepted, bytes, 1) == -1 && errno == EPROTO);
        CHECK(read(caller, bytes, 1) <= 0);
        close(accepted);
        close(caller);
    }
}

TEST(of_too_many_callers_that_do_not_greet_the_first_is_cut_off)
{
    int listener = listen_outside(), callers[STEP_CALLERS_MAX + 1], accepted[STEP_CALLERS_MAX + 1];
    char byte;

    for (int i = 0; i <= STEP_CALLERS_MAX; i++)
        callers[i] = call(listener, &accepted[i]);
    CHECK(read(callers[0], &byte, 1) == 0 && read(accepted[0], &byte, 1) == 0);
    for (int i = 1; i <= STEP_CALLERS_MAX; i++)
        CHECK(write(callers[i], "x", 1) == 1 && read(accepted[i], &byte, 1) == 1);
}

TEST(a_file_that_has_the_number_of_a_caller_who_has_gone_is_read)
{
    int listener = listen_outside(), accepted, caller = call(listener, &accepted), ends[2];
    char bytes[HEADER_BYTES] = "";

    close(accepted);
    CHECK(pipe(ends) == 0 && dup2(ends[0], accepted) == accepted);
    CHECK(write(ends[1], bytes, sizeof(bytes)) == sizeof(bytes));
    CHECK(read(accepted, bytes, sizeof(bytes)) == sizeof(bytes));
    close(caller);
}
