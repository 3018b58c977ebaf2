/* posenc - positional encodings for transformers: exact at every position, in the conventions that
 * released models use.
 *
 * The way through:
 *     posenc_spec             what a model declares                         frequencies.h
 *       with posenc_scaling   how its context is extended                  scaling.h
 *       with posenc_axes      several positions for one token              axes.h
 *     posenc_frequencies      resolved, one per pair, made once             frequencies.h
 *     posenc_angles           cos and sin rows of the positions at hand     rows.h
 *     posenc_rotate           turns queries and keys, every layer           rotate.h
 *       posenc_norm_rotate    with the norm of each head and query scales   norm_rotate.h, query_scale.h
 *     posenc_cache_append     rotated keys and values into a cache, shifts  cache.h
 * and beside it sinusoidal tables (sinusoidal.h) and ALiBi (alibi.h). Errors: status.h. Number
 * types: dtype.h. A second library, libposenc-model, reads files (npy.h, rope_parameters.h) and finds faults of other
 * implementations (diagnosis.h, compare.h). One
 * rotation over OpenMP's threads: openmp.h.
 *
 * libposenc needs libc and libm, opens no file, starts no thread, prints nothing and keeps no state
 * but which vector instructions the CPU has, found once. Objects are read-only once made and may be shared between threads.
 *
 * Parameter structs carry their size first, so that they can grow; start from their _INIT macro and
 * set what you need: 0 means the default, and what has no default says so.
 *
 * SPDX-License-Identifier: MIT */
#ifndef POSENC_POSENC_H
#define POSENC_POSENC_H

#include "posenc/alibi.h"
#include "posenc/cache.h"
#include "posenc/cpu.h"
#include "posenc/dtype.h"
#include "posenc/frequencies.h"
#include "posenc/norm_rotate.h"
#include "posenc/query_scale.h"
#include "posenc/rotate.h"
#include "posenc/rows.h"
#include "posenc/sinusoidal.h"
#include "posenc/status.h"
#include "posenc/table.h"

#endif
