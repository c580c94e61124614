/*
 * By LD_PRELOAD in a client of Slurm: instead of its first message to slurmctld, or with TO_SLURMD to slurmd, it sends many
 * damaged ones, signed by munge, and ends. A few bytes of the message are others, and its type is one of TYPES.
 *
 *   MESSAGES=1000 SEED=1 TYPES="2004 2058" LD_PRELOAD=./damaged_messages.so sbatch --hold --wrap true
 *
 * With no TYPES it keeps its own. SEED and the number of a message decide how it is damaged.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define AT_ONCE 8
#define ANSWER_MICROSECONDS 300000
#define CHANGES_MAX 4
#define TYPES_MAX 64

static const uint32_t ODD[] = {
    0, 1, UINT32_MAX, UINT32_MAX - 1, UINT32_MAX - 2, INT32_MAX, 1u + INT32_MAX, 0x10000, 0xffff, 0x3fffffff, 100000000,
};

static pid_t client; /* a process that it starts before, to ask for the configuration, is left alone */
static unsigned int seed;
static uint16_t type; /* that of the damaged message in place of its own, if it is not 0 */
static enum { GENUINE, TO_BE_SIGNED, SIGNED } state;

__attribute__((constructor)) static void prepare(void)
{
    client = getpid();
}

static unsigned int pick(unsigned int count)
{
    return (unsigned int)rand_r(&seed) % count;
}

static void damage(unsigned char *body, int length)
{
    for (unsigned int changes = pick(CHANGES_MAX) + 1; changes && length >= 4; changes--) {
        unsigned char *place = body + pick((unsigned int)length - 3);
        uint32_t number = htonl(pick(2) ? ODD[pick(sizeof(ODD) / sizeof(ODD[0]))] : pick(300));

        if (pick(3))
            memcpy(place, &number, sizeof(number));
        else
            *place = (unsigned char)pick(256);
    }
}

/* The hash of a body and of its type, which munge signs. A client hashes the answer, too. */
int hash_g_compute(void *body, int length, const char *kind, int kind_length, void *hash)
{
    int (*compute)(void *, int, const char *, int, void *) = dlsym(RTLD_NEXT, "hash_g_compute");
    uint16_t other = htons(type);

    if (state == TO_BE_SIGNED) {
        state = SIGNED;
        damage(body, length);
        if (type)
            return compute(body, length, (const char *)&other, sizeof(other), hash);
    }
    return compute(body, length, kind, kind_length, hash);
}

void pack_header(uint16_t *header, void *buffer)
{
    void (*pack)(uint16_t *, void *) = dlsym(RTLD_NEXT, "pack_header");

    if (state == SIGNED && type)
        header[2] = type; /* after version and flags */
    pack(header, buffer);
}

static unsigned int number_of(const char *name)
{
    const char *text = getenv(name);

    return text ? (unsigned int)strtoul(text, NULL, 10) : 1;
}

static unsigned int read_types(uint16_t *types)
{
    const char *text = getenv("TYPES");
    unsigned int count = 0;

    while (text && *text && count < TYPES_MAX) {
        char *rest;

        types[count++] = (uint16_t)strtoul(text, &rest, 10);
        text = rest == text ? NULL : rest;
    }
    return count;
}

static void send_damaged(void (*ask)(void **arguments), void **arguments)
{
    unsigned int first = number_of("SEED"), count = number_of("MESSAGES");
    uint16_t types[TYPES_MAX];
    unsigned int type_count = read_types(types);

    for (unsigned int i = 0; i < count; i++) {
        if (i >= AT_ONCE)
            wait(NULL);
        if (fork() == 0) {
            sigset_t none;

            sigemptyset(&none);
            sigprocmask(SIG_SETMASK, &none, NULL); /* srun blocks it */
            signal(SIGALRM, SIG_DFL);
            ualarm(ANSWER_MICROSECONDS, 0);
            freopen("/dev/null", "w", stdout); /* what is damaged may be printed */
            freopen("/dev/null", "w", stderr);
            seed = first * 1000003 + i;
            type = type_count ? types[pick(type_count)] : 0;
            state = TO_BE_SIGNED;
            ask(arguments);
            _exit(0);
        }
    }
    for (unsigned int i = 0; i < count && i < AT_ONCE; i++)
        wait(NULL); /* not for all: srun has a child that stays */
    printf("%u messages\n", count);
    fflush(stdout);
    _exit(0);
}

static void ask_controller(void **arguments)
{
    int (*ask)(void *, void *, void *) = dlsym(RTLD_NEXT, "slurm_send_recv_controller_msg");

    ask(arguments[0], arguments[1], arguments[2]);
}

int slurm_send_recv_controller_msg(void *request, void *answer, void *cluster)
{
    int (*ask)(void *, void *, void *) = dlsym(RTLD_NEXT, "slurm_send_recv_controller_msg");

    if (getpid() == client && !getenv("TO_SLURMD"))
        send_damaged(ask_controller, (void *[]){request, answer, cluster});
    return ask(request, answer, cluster);
}

static void ask_nodes(void **arguments)
{
    void *(*ask)(const char *, void *, int) = dlsym(RTLD_NEXT, "slurm_send_recv_msgs");

    ask(arguments[0], arguments[1], 0);
}

void *slurm_send_recv_msgs(const char *nodes, void *request, int milliseconds)
{
    void *(*ask)(const char *, void *, int) = dlsym(RTLD_NEXT, "slurm_send_recv_msgs");

    if (getpid() == client && getenv("TO_SLURMD"))
        send_damaged(ask_nodes, (void *[]){(void *)nodes, request});
    return ask(nodes, request, milliseconds);
}
