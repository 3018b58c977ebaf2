/* .npz files: zip archives of .npy files, as numpy.savez writes them (stored, not compressed).
 * SPDX-License-Identifier: MIT */
#ifndef PENC_NPZ_READ_H
#define PENC_NPZ_READ_H

#include "formats/input_file.h"

enum { PENC_NPZ_MAX_MEMBERS = 1024, PENC_NPZ_NAME_BYTES = 128 };

typedef struct penc_npz_member {
    char name[PENC_NPZ_NAME_BYTES]; /* without ".npy", cut if it is longer */
    uint64_t place, bytes;          /* of the .npy file within the archive */
} penc_npz_member;

/* Calls `take` for every member in the archive's order, until one fails. Fails with FORMAT (no zip archive, members
 * outside of the file) or UNSUPPORTED (compressed, above 4 GB, too many members). */
posenc_status penc_npz_members(const penc_input *input,
                               posenc_status (*take)(void *context, const penc_npz_member *member,
                                                     posenc_error *error),
                               void *context, posenc_error *error);

#endif
