#include "descriptor_message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

int descriptor_message_send(int socket, const int descriptors[], size_t count)
{
    char byte = 0;
    struct iovec content = {.iov_base = &byte, .iov_len = 1};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(MOST_DESCRIPTORS * sizeof(int))];
    } control = {.space = {0}};
    struct msghdr message = {.msg_iov = &content,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = CMSG_SPACE(count * sizeof(int))};

    if (count == 0 || count > MOST_DESCRIPTORS) {
        errno = EINVAL;
        return -1;
    }
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(&control.header), descriptors, count * sizeof(int));
    return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 ? 0 : -1;
}

int descriptor_message_receive(int socket)
{
    char byte;
    struct iovec content = {.iov_base = &byte, .iov_len = 1};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {
        .msg_iov = &content, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof(control.space)};
    int descriptor = -1;

    if (recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message) &&
        control.header.cmsg_type == SCM_RIGHTS)
        memcpy(&descriptor, CMSG_DATA(&control.header), sizeof(descriptor));
    return descriptor;
}
