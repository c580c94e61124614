/* Descriptors as messages of a Unix socket: between slurmstepd, its tasks, and programs of the image. */
#ifndef JAIL_DESCRIPTOR_MESSAGE_H
#define JAIL_DESCRIPTOR_MESSAGE_H

#include <stddef.h>

#define MOST_DESCRIPTORS 2 /* of a message */

/*
 * Send descriptors as one message, without waiting for room in the socket. A message that nothing receives keeps them open
 * until the socket's last end is closed. Returns 0, or -1 with errno.
 */
int descriptor_message_send(int socket, const int descriptors[], size_t count);

/* Return the descriptor of a message that has one, without waiting; or -1. */
int descriptor_message_receive(int socket);

#endif
