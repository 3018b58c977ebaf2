/* posenc/diagnosis.h - what somebody's rotation did to an array, by name. (libposenc-model)
 *
 * Given an array before and after a rotation, and what should have been computed, it tells whether the
 * array agrees, and if not, why. Causes are tried, not guessed: one is named only if rotating `before` with
 * that fault gives `after`, every element within the rounding noise of the dtype; two causes at once
 * are tried where no single one does. Several explanations mean that these data cannot tell them apart.
 *
 * The noise allowed is that of rotations whose cos, sin, products and sums are each rounded in the dtype of
 * `after` (as frameworks compute) around the angle that is meant.
 *
 * Thread-safety: no function has state. Nothing is written but the result.
 *
 * SPDX-License-Identifier: MIT */
#ifndef POSENC_DIAGNOSIS_H
#define POSENC_DIAGNOSIS_H

#include "posenc/rotate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The causes that are tried: as many as posenc_cause_count(), each a word for scripts and a sentence for
 * people. NULL if `index` is out of range. */
POSENC_API size_t posenc_cause_count(void);
POSENC_API const char *posenc_cause_name(size_t index);
POSENC_API const char *posenc_cause_sentence(size_t index);

/* What was seen, and what should have been computed. Start from POSENC_OBSERVATION_INIT. */
typedef struct posenc_observation {
    size_t size;
    const posenc_spec *spec;    /* as for posenc_frequencies_create, and read like it; required */
    uint64_t seq_len;           /* alike */
    posenc_mode mode;           /* how angles should have been formed */
    posenc_direction direction; /* forward, inverse or backward */
    /* Of token t of sequence b on axis a: positions[a * axis_stride + b * batch_stride + t]; required */
    const int64_t *positions;
    ptrdiff_t axis_stride; /* in elements; 0: tokens, or with a batch_stride batch * batch_stride */
    ptrdiff_t batch_stride; /* 0: every sequence of the batch has the same positions */
    const posenc_tensor *before_tensor,
        *after_tensor; /* the same shape; strides and dtypes may differ */
    const void *before, *after;
} posenc_observation;

#define POSENC_OBSERVATION_INIT                                                                    \
    { .size = sizeof(posenc_observation) }

typedef enum posenc_verdict {
    POSENC_VERDICT_AGREES = 0,     /* within the noise of the dtype */
    POSENC_VERDICT_EXPLAINED = 1,  /* it does not; what explains it follows */
    POSENC_VERDICT_UNEXPLAINED = 2 /* it does not, and nothing that was tried explains it */
} posenc_verdict;

/* "agrees", "explained" or "unexplained"; NULL for other numbers. */
POSENC_API const char *posenc_verdict_name(posenc_verdict verdict);

enum { POSENC_MAX_CAUSES = 2, POSENC_MAX_EXPLANATIONS = 8 };

typedef struct posenc_explanation {
    size_t count;                    /* causes that act together, 1 or 2 */
    size_t cause[POSENC_MAX_CAUSES]; /* indices for posenc_cause_name */
    double value
        [POSENC_MAX_CAUSES]; /* the base, the shift, ... that fits; NaN where a cause has none */
    posenc_mode mode;        /* how the angles were formed */
} posenc_explanation;

typedef struct posenc_diagnosis {
    posenc_verdict verdict;
    posenc_mode mode; /* agrees: how the angles were formed */
    size_t explanation_count;
    posenc_explanation explanations[POSENC_MAX_EXPLANATIONS]; /* the closest one first */
    double worst_ratio; /* the largest error in units of what is allowed there; <= 1: agrees */
    double worst_error,
        allowed; /* the largest error, of those beyond what is allowed if there are any */
    size_t place[POSENC_AXES];  /* where it is: batch, token, head, channel */
    size_t differing, compared; /* elements beyond what is allowed, of how many */
    /* Measured without any hypothesis: do the two channels of every pair keep their common norm, up to one
     * magnitude for all? If neither holds it is no rotation of single pairs. */
    int is_rotation_half, is_rotation_interleaved;
    double magnitude; /* norm after / norm before, over the channels that rotate */
} posenc_diagnosis;

/* Fills `diagnosis`. `before` and `after` are read in place; heads and tokens are sampled for the search, and
 * what it finds is checked on every element. Fails with NULL_POINTER, OUT_OF_RANGE (shapes that differ, a spec
 * that is none, positions beyond POSENC_MAX_POSITION, no element that rotates), UNSUPPORTED or OUT_OF_MEMORY. */
POSENC_API POSENC_CHECKED posenc_status posenc_diagnose(const posenc_observation *observation,
                                                        posenc_diagnosis *diagnosis,
                                                        posenc_error *error);

#ifdef __cplusplus
}
#endif
#endif
