// A ring all-reduce as NCCL and MPI do one: each node sends to the next and receives from the one before it, N-1 steps
// to reduce and N-1 to gather. The slowest link bounds all of them, as in a job.
#define _GNU_SOURCE
#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_NODES = 1024, BACKLOG = 128, MEETING_SECONDS = 60, SILENCE_MS = 60000 };

struct ring {
	int size, self, to, from;
	char own[INET6_ADDRSTRLEN], next[INET6_ADDRSTRLEN], before[INET6_ADDRSTRLEN];
};

// Finds this node (SLURMD_NODENAME) in name=address,... and the address of the next one.
static struct ring parse(const char *text)
{
	static char copy[65536];
	const char *own = getenv("SLURMD_NODENAME");
	char *addresses[MAX_NODES], *rest = copy, *entry;
	struct ring ring = {.self = -1};
	snprintf(copy, sizeof(copy), "%s", text);
	errno = 0;
	while ((entry = strsep(&rest, ",")) && ring.size < MAX_NODES) {
		char *address = strchr(entry, '=');
		if (!address)
			fail("ring", "needs NAME=ADDRESS,...");
		*address++ = '\0';
		if (own && !strcmp(entry, own))
			ring.self = ring.size;
		addresses[ring.size++] = address;
	}
	if (ring.self < 0 || ring.size < 2)
		fail("ring", "this node is not in it, or it is alone");
	snprintf(ring.own, sizeof(ring.own), "%s", addresses[ring.self]);
	snprintf(ring.next, sizeof(ring.next), "%s", addresses[(ring.self + 1) % ring.size]);
	snprintf(ring.before, sizeof(ring.before), "%s", addresses[(ring.self + ring.size - 1) % ring.size]);
	return ring;
}

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t parse_address(const char *text, int port, union address *found)
{
	memset(found, 0, sizeof(*found));
	if (inet_pton(AF_INET, text, &found->v4.sin_addr) == 1) {
		found->v4.sin_family = AF_INET;
		found->v4.sin_port = htons((uint16_t)port);
		return sizeof(found->v4);
	}
	if (inet_pton(AF_INET6, text, &found->v6.sin6_addr) != 1)
		fail("ring: no address", text);
	found->v6.sin6_family = AF_INET6;
	found->v6.sin6_port = htons((uint16_t)port);
	return sizeof(found->v6);
}

static int listen_at(const char *address, int port)
{
	union address own;
	socklen_t length = parse_address(address, port, &own);
	int door = socket(own.any.sa_family, SOCK_STREAM, 0), yes = 1;
	setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(door, &own.any, length) || listen(door, BACKLOG))
		fail("ring: cannot listen at", address);
	return door;
}

// Tries until the next node listens: tasks of a step do not start at the same moment. It knows this node by its address.
static int connect_to(const char *address, int port, const char *own_address)
{
	union address other, own;
	socklen_t length = parse_address(address, port, &other), own_length = parse_address(own_address, 0, &own);
	double end = now_seconds() + MEETING_SECONDS;
	for (;;) {
		int line = socket(other.any.sa_family, SOCK_STREAM, 0);
		if (!bind(line, &own.any, own_length) && !connect(line, &other.any, length))
			return line;
		close(line);
		if (now_seconds() > end)
			fail("ring: no connection to", address);
		nanosleep(&(struct timespec){.tv_nsec = 50 * 1000 * 1000}, NULL);
	}
}

static int same_host(const union address *one, const union address *other)
{
	if (one->any.sa_family != other->any.sa_family)
		return 0;
	if (one->any.sa_family == AF_INET)
		return one->v4.sin_addr.s_addr == other->v4.sin_addr.s_addr;
	return !memcmp(&one->v6.sin6_addr, &other->v6.sin6_addr, sizeof(one->v6.sin6_addr));
}

// Takes the line of the node before this one. Users' programs on other nodes can connect as well, and send wrong sums.
static int accept_from(int door, const char *address)
{
	union address expected, caller;
	parse_address(address, 0, &expected);
	double end = now_seconds() + MEETING_SECONDS, left;
	while ((left = end - now_seconds()) > 0) {
		struct pollfd waiting = {.fd = door, .events = POLLIN};
		socklen_t length = sizeof(caller);
		errno = 0;
		if (poll(&waiting, 1, (int)(left * 1000)) <= 0)
			break;
		int line = accept4(door, &caller.any, &length, SOCK_NONBLOCK);
		if (line >= 0 && same_host(&caller, &expected))
			return line;
		if (line >= 0)
			close(line);
	}
	fail("ring: no connection from", address);
}

static void meet(struct ring *ring, int port)
{
	int door = listen_at(ring->own, port), yes = 1;
	ring->to = connect_to(ring->next, port, ring->own);
	ring->from = accept_from(door, ring->before);
	close(door);
	setsockopt(ring->to, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

// Sends and receives the same number of bytes at the same time.
static void exchange(const struct ring *ring, const char *out, char *in, size_t bytes)
{
	size_t sent = 0, received = 0;
	while (sent < bytes || received < bytes) {
		struct pollfd lines[] = {{.fd = sent < bytes ? ring->to : -1, .events = POLLOUT},
					 {.fd = received < bytes ? ring->from : -1, .events = POLLIN}};
		errno = 0;
		if (poll(lines, 2, SILENCE_MS) <= 0)
			fail("ring", "a neighbour is silent");
		if (lines[0].revents) {
			ssize_t part = send(ring->to, out + sent, bytes - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
			if (part < 0 && errno != EAGAIN)
				fail("ring", "send");
			sent += part > 0 ? (size_t)part : 0;
		}
		if (lines[1].revents) {
			ssize_t part = recv(ring->from, in + received, bytes - received, MSG_DONTWAIT);
			if (part == 0 || (part < 0 && errno != EAGAIN))
				fail("ring", "receive");
			received += part > 0 ? (size_t)part : 0;
		}
	}
}

static void all_reduce(const struct ring *ring, float *data, float *incoming, size_t part)
{
	int size = ring->size, self = ring->self;
	for (int step = 0; step < size - 1; step++) {
		float *out = data + part * (size_t)((self - step + size) % size);
		float *into = data + part * (size_t)((self - step - 1 + size) % size);
		exchange(ring, (char *)out, (char *)incoming, part * sizeof(float));
		for (size_t at = 0; at < part; at++)
			into[at] += incoming[at];
	}
	for (int step = 0; step < size - 1; step++) {
		float *out = data + part * (size_t)((self + 1 - step + size) % size);
		float *into = data + part * (size_t)((self - step + size) % size);
		exchange(ring, (char *)out, (char *)into, part * sizeof(float));
	}
}

int measure_ring(const char *text, int port, size_t mebibytes, double seconds)
{
	struct ring ring = parse(text);
	size_t part = mebibytes * 1024 * 1024 / sizeof(float) / (size_t)ring.size, count = part * (size_t)ring.size;
	float *data = calloc(count, sizeof(float)), *incoming = calloc(part, sizeof(float));
	if (part < 2 || !data || !incoming)
		fail("ring", "size");
	meet(&ring, port);
	double spent = 0, began = now_seconds(), stop = 0;
	uint64_t errors = 0, rounds = 0;
	// Small whole numbers, whose sums are exact. The first word is the vote of the first node to stop.
	float total = (float)(ring.size * (ring.size + 1)) / 2;
	for (uint64_t round = 0; !stop; round++) {
		for (size_t at = 1; at < count; at++)
			data[at] = (float)(ring.self + 1);
		data[0] = ring.self == 0 && round > 0 && now_seconds() - began > seconds;
		double start = now_seconds();
		all_reduce(&ring, data, incoming, part);
		if (round > 0) { // the first opens TCP's windows
			spent += now_seconds() - start;
			rounds++;
		}
		for (size_t at = 1; at < count; at++)
			errors += data[at] != total;
		stop = data[0];
	}
	// Bus bandwidth as nccl-tests count it (PERFORMANCE.md): 2 (n-1) / n of the bytes, over the time.
	double bytes = (double)count * sizeof(float) * (double)rounds;
	if (ring.self == 0 || errors)
		print_result("ring", 2.0 * (ring.size - 1) / ring.size * bytes / spent / 1e9, errors);
	free(data);
	free(incoming);
	return MEASURED;
}
