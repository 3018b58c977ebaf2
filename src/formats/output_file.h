/* A file that is written beside its target, without a name, and takes the target's name only when it is whole and on
 * the disk. Whatever happens before that, a kill too, leaves the old target.
 *
 * Where the system has no nameless files, or no /proc to name them through, the file has a hidden name in the
 * target's folder, ".TARGET.posenc-...". Only a kill can leave one: it is not locked then (flock) as those at work
 * are, and the next output for that target removes it.
 * Symbolic links are followed; what they lead to is replaced. An old target's mode is kept, its owner and group too
 * where that is permitted.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_OUTPUT_FILE_H
#define PENC_OUTPUT_FILE_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct penc_output {
    int file;              /* -1: none is open */
    int folder;            /* of the target, which a relative path finds after a chdir too; or -1 */
    int is_special;        /* a device or a pipe: bytes go there at once and in order */
    char target[PATH_MAX]; /* what the path leads to, symbolic links followed */
    char temporary[160];   /* its name in the folder until then; empty while it has none */
} penc_output;

/* Every function returns 0 or the errno of what failed. */

/* Finds out what `path` leads to and opens nothing: sets `target` and `is_special`. The output may be closed
 * thereafter, whatever it returns. */
int penc_output_find(const char *path, penc_output *output);

/* Opens what was found. A new file gets the bits of `mode` that the umask leaves. */
int penc_output_open(penc_output *output, mode_t mode);

/* Writes all bytes, at `offset` or, where the output is special, where it stands. */
int penc_output_write(const penc_output *output, const void *from, size_t bytes, uint64_t offset);

/* Flushes the file, gives it its name and closes it. A failure to flush the folder is told when the name is given. */
int penc_output_commit(penc_output *output);

/* Closes an output, and removes what was not committed. */
void penc_output_close(penc_output *output);

#endif
