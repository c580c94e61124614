/*
 * Parts of the messages that known_messages.c reads of users: what a daemon would act on without a look, or store.
 */
#ifndef MESSAGE_BODIES_H
#define MESSAGE_BODIES_H

#include <stdbool.h>
#include <stdint.h>

/* Slurm takes memory for as many strings as a message says that it has. Users' have few: those of an environment. */
#define ARRAY_BYTES_MAX (64u << 20)

/* Look up Slurm's functions, and its version. Before all others. */
void message_bodies_prepare(void);

/* The type of a slurm_msg_t. */
uint16_t message_type(const void *unpacked);

/*
 * slurmd passes a message on before it asks for the sender: it reads the list of nodes, whether it is one or not, and takes
 * as many threads at a time as the message says, or one for every node.
 */
bool message_can_be_passed_on(char *header);

/* slurmd looks up its own name in a launch, and takes its place among the names for one among the nodes. */
bool message_has_node_for_every_name(const char *launch);

/* Have a body contain what clients send. */
void message_mend(uint16_t type, void *body);

#endif
