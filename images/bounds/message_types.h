/*
 * Types of Slurm's messages (msg_type.h, 24.11 and 26.05) that users' programs send and answer.
 */
#ifndef MESSAGE_TYPES_H
#define MESSAGE_TYPES_H

#include <stdbool.h>
#include <stdint.h>

enum { UPDATE_JOB = 3001, ALLOCATION = 4001, BATCH_JOB = 4003, WILL_RUN = 4012 };
enum { HET_ALLOCATION = 4025, HET_BATCH_JOB = 4028, KILL_JOB = 5032, CRONTAB = 2202, ATTACH = 6007, PASS_ON = 5029 };
enum { LAUNCH = 6001, FILE_BLOCK = 6014 };

/* First and last of every row. {0, 0} ends them. */
typedef const uint16_t range[2];

/* All that slurmctld answers but what daemons and other clusters send. */
extern range OF_SLURMCTLD[];

/* What srun, sattach, sstat, sbcast, and scontrol send to slurmd, and PMI-2 in srun. */
extern range OF_SLURMD[];

/* What slurmd and srun answer, for themselves and in a header for those to which slurmd passed a message on. */
extern range ANSWERS[];

/* What srun answers to slurmstepd. */
extern range RETURN_CODES[];

bool message_type_is_in(uint16_t type, const range *types);

/* Of those of OF_SLURMCTLD and OF_SLURMD: handlers read the body, which an unread one doesn't have. */
bool message_type_has_body(uint16_t type);

#endif
