/* posenc/openmp.h - one rotation over the threads of OpenMP.
 *
 * The libraries start no thread. A host with threads of its own calls posenc_rotate on ranges of tokens; one that
 * is compiled with -fopenmp has that done here. Compiled without, the function is the same and uses one thread.
 *
 * SPDX-License-Identifier: MIT */
#ifndef POSENC_OPENMP_H
#define POSENC_OPENMP_H

#include "posenc/rotate.h"

#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Part `part` of `parts` of options.first_token ... first_token + token_count - 1; fails as posenc_rotate does. */
static inline posenc_status posenc_rotate_part(const posenc_rotation *rotation,
                                               const posenc_tensor *tensor, const void *input,
                                               void *output, const posenc_rotate_options *options,
                                               size_t part, size_t parts, posenc_error *error) {
    posenc_rotate_options range = *options;
    size_t share = options->token_count / parts, rest = options->token_count % parts;
    range.first_token += part * share + (part < rest ? part : rest);
    range.token_count = share + (part < rest);
    return posenc_rotate(rotation, tensor, input, output, &range, error);
}

/* posenc_rotate by up to `threads` threads (0: as many as OpenMP has), each with a range of the tokens: the same
 * arguments, errors and bytes. Every thread checks the whole call before it writes, so that a refused call writes
 * nothing. Worth it from about a MiB of data on: below, waking threads takes longer than rotating. */
static inline POSENC_CHECKED posenc_status posenc_rotate_openmp(
    const posenc_rotation *rotation, const posenc_tensor *tensor, const void *input, void *output,
    const posenc_rotate_options *options, unsigned threads, posenc_error *error) {
    posenc_rotate_options all;
    size_t tokens = tensor ? tensor->shape[POSENC_AXIS_TOKENS] : 0, parts = 1;
    posenc_status status = POSENC_OK;
    memset(&all, 0, sizeof all);
    all.size = sizeof all;
    if (options)
        all = *options;
    if (!all.token_count && all.first_token < tokens)
        all.token_count = tokens - all.first_token;
#ifdef _OPENMP
    parts = threads ? threads : (size_t)omp_get_max_threads();
    if (parts > all.token_count)
        parts = all.token_count;
#else
    (void)threads;
#endif
    if (parts < 2) /* calls that are refused too */
        return posenc_rotate(rotation, tensor, input, output, options, error);
#ifdef _OPENMP
#pragma omp parallel for num_threads((int)parts) schedule(static)
    for (int part = 0; part < (int)parts; part++) {
        posenc_error own;
        posenc_status one =
            posenc_rotate_part(rotation, tensor, input, output, &all, (size_t)part, parts, &own);
        if (one) {
#pragma omp critical(posenc_rotate_openmp)
            {
                if (error && !status)
                    *error = own;
                status = one;
            }
        }
    }
#endif
    return status;
}

#ifdef __cplusplus
}
#endif
#endif
