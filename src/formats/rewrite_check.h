/* Whether a file is what a rewriting would make. SPDX-License-Identifier: MIT */
#ifndef PENC_REWRITE_CHECK_H
#define PENC_REWRITE_CHECK_H

#include "formats/file_rewrite.h"

/* Sets *is to 1 if `target` has the size that the pieces give, all bytes of their BYTES and, of what stands in the old
 * file, those at the beginning of every piece and at every 16 MiB of it; 0 if it has not or is not there. So it tells
 * files that another conversion or another model has left from those that are meant, in a small part of the time of
 * reading them; that every byte is right it does not show. Fails where files cannot be read. */
posenc_status penc_file_is_rewritten(const penc_input *source, const char *target,
                                     const penc_piece *pieces, size_t count, int *is,
                                     posenc_error *error);

#endif
