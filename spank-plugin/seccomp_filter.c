#include "seccomp_filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the seccomp filter is written for x86_64 and aarch64"
#endif

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif
#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif

/* Refused to every task. */
static const unsigned int ALWAYS[] = {
    SYS_bpf,          SYS_fanotify_init, SYS_lookup_dcookie, SYS_name_to_handle_at, SYS_open_by_handle_at,
    SYS_perf_event_open, SYS_quotactl,   SYS_quotactl_fd,    SYS_setdomainname,     SYS_sethostname,
    SYS_setns,        SYS_syslog,
};

/* Refused where tasks may make no user namespaces: without one they would fail anyhow. */
static const unsigned int NAMESPACES[] = {
    SYS_fsconfig,      SYS_fsmount,    SYS_fsopen,    SYS_fspick,         SYS_mount,
    SYS_mount_setattr, SYS_move_mount, SYS_open_tree, SYS_open_tree_attr, SYS_pivot_root, SYS_umount2,
};

/* What changes owners and users. */
static const unsigned int OWNERS[] = {
#ifdef SYS_chown
    SYS_chown,     SYS_lchown,
#endif
    SYS_fchown,    SYS_fchownat, SYS_setfsgid,  SYS_setfsuid,  SYS_setgid, SYS_setgroups,
    SYS_setregid,  SYS_setresgid, SYS_setresuid, SYS_setreuid, SYS_setuid,
};

#define NEW_NAMESPACES                                                                                                  \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define LOAD(field) ((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field)))
#define REFUSE(error) ((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error)))
#define ALLOW ((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW))
/* The next instruction is for values that are (not) `value`; others jump behind it. */
#define IF(value) ((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, 1))
#define UNLESS(value) ((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 1, 0))

#define MAX_INSTRUCTIONS 128

struct program {
    struct sock_filter code[MAX_INSTRUCTIONS];
    unsigned short length;
};

static void add(struct program *program, struct sock_filter instruction)
{
    if (program->length < MAX_INSTRUCTIONS)
        program->code[program->length] = instruction;
    program->length++;
}

/* Answer calls with an error in place of doing what they ask for; 0: pretend that it is done. */
static void answer_all(struct program *program, const unsigned int calls[], size_t count, unsigned int error)
{
    for (size_t i = 0; i < count; i++) {
        add(program, IF(calls[i]));
        add(program, REFUSE(error));
    }
}

/* The first argument of both clone (on these architectures) and unshare is the flags. */
static void refuse_new_namespaces(struct program *program, unsigned int call, unsigned int flags)
{
    add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4));
    /* its lower half, on little-endian machines */
    add(program, LOAD(args[0]));
    add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, flags, 0, 1));
    add(program, REFUSE(EPERM));
    add(program, ALLOW);
}

/* Another system call table (32-bit programs; x32) would need lists of its own: refused as a whole. */
static void begin(struct program *program)
{
    add(program, LOAD(arch));
    add(program, UNLESS(ARCHITECTURE));
    add(program, REFUSE(ENOSYS));
    add(program, LOAD(nr));
#ifdef __x86_64__
    add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));
    add(program, REFUSE(ENOSYS));
#endif
}

static int install(struct program *program)
{
    const struct sock_fprog filter = {.len = program->length, .filter = program->code};

    if (program->length > MAX_INSTRUCTIONS) {
        errno = E2BIG;
        return -1;
    }
    /* Linux before 5.16 slows a filtered process down against attacks that it would make on itself, for good. */
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &filter);
}

int seccomp_filter_install(bool user_namespaces)
{
    struct program program = {.length = 0};

    begin(&program);
    answer_all(&program, ALWAYS, LENGTH(ALWAYS), EPERM);
    if (!user_namespaces) {
        answer_all(&program, NAMESPACES, LENGTH(NAMESPACES), EPERM);
        /* clone3's flags lie in memory, out of a filter's sight; after ENOSYS libraries use clone. */
        add(&program, IF(SYS_clone3));
        add(&program, REFUSE(ENOSYS));
        refuse_new_namespaces(&program, SYS_clone, NEW_NAMESPACES);
        refuse_new_namespaces(&program, SYS_unshare, NEW_NAMESPACES | CLONE_NEWTIME);
    }
    add(&program, ALLOW);
    return install(&program);
}

int seccomp_filter_pretend(void)
{
    struct program program = {.length = 0};

    begin(&program);
    answer_all(&program, OWNERS, LENGTH(OWNERS), 0);
    add(&program, ALLOW);
    return install(&program);
}
