/* What a rotation may have done: a spec with faults in it, as plain data. SPDX-License-Identifier: MIT */
#ifndef PENC_HYPOTHESIS_H
#define PENC_HYPOTHESIS_H

#include "posenc/diagnosis.h"

/* Which positions were used in the place of those meant. */
typedef enum penc_position_rule {
    PENC_POSITIONS_MEANT = 0,
    PENC_POSITIONS_FIRST,   /* every token at the first one's */
    PENC_POSITIONS_LAST,    /* or at the last one's */
    PENC_POSITIONS_RESTART, /* counted from the first one: the cache's length is missing */
    PENC_POSITIONS_INDEX,   /* the token's index: restarts and padding ignored */
    PENC_POSITIONS_HEAD,    /* the head's index picks the position: axes exchanged */
    PENC_POSITIONS_SEQUENCE /* every sequence has those of the first one */
} penc_position_rule;

typedef enum penc_magnitude_rule {
    PENC_MAGNITUDE_ONCE = 0,
    PENC_MAGNITUDE_MISSING,
    PENC_MAGNITUDE_TWICE,
    PENC_MAGNITUDE_OTHER /* magnitude */
} penc_magnitude_rule;

/* What happened to the sequences of a batch behind the first, or the heads of a token. */
typedef enum penc_rest_rule {
    PENC_REST_ROTATED = 0,
    PENC_REST_COPIED,
    PENC_REST_ZERO
} penc_rest_rule;

typedef struct penc_hypothesis {
    posenc_spec spec; /* its scaling and axes point into this struct's copies */
    posenc_scaling scaling;
    posenc_axes axes;
    uint64_t seq_len;
    size_t frequency_dim; /* the width that exponents divide by; 0: rotary_dim */
    posenc_mode mode;
    posenc_direction direction;
    int recurrence; /* 1: float32 angles by a running product */
    int step_ulps;  /* of it: how far its factor is from the correctly rounded one */
    posenc_dtype frequency_dtype, position_dtype, table_dtype; /* F64: not rounded */
    int angle_rounded; /* 1: the product of position and frequency in bfloat16 as well */
    penc_position_rule positions;
    double shift;       /* added to every position */
    size_t axis_turn;   /* position axes exchanged: axis a reads axis count - 1 - a */
    double angle_scale; /* multiplies every angle; negative: the other direction */
    int swapped;        /* cos and sin exchanged */
    int mixed;          /* tables laid out for the other pairing than that of the channels */
    posenc_output_pairing output;
    penc_magnitude_rule magnitude_rule;
    double magnitude; /* of PENC_MAGNITUDE_OTHER; measured otherwise */
    penc_rest_rule other_sequences, other_heads;
} penc_hypothesis;

/* The hypothesis that everything was done as meant. Pointers inside a hypothesis are to itself: copy with
 * penc_hypothesis_copy only. */
void penc_hypothesis_start(penc_hypothesis *h, const posenc_observation *observation);
void penc_hypothesis_copy(penc_hypothesis *to, const penc_hypothesis *from);

/* A hypothesis ready to predict: frequencies, and for every channel its partner. */
typedef struct penc_model {
    const penc_hypothesis *h;
    size_t pairs;
    double *frequency; /* radians per position as multiplied, rounding of frequencies included */
    double *relative_noise;             /* of the angle, per radian */
    unsigned char *axis;                /* of every pair */
    double attention_factor, magnitude; /* of the encoding; of cos and sin as multiplied */
    size_t first, width;                /* the channels that rotate */
    size_t *partner;                    /* of every such channel, counted from `first` */
    size_t *pair;                       /* whose cos and sin it takes */
    size_t *target;                     /* the channel it is written to */
    signed char *sign;                  /* of the partner's share */
} penc_model;

/* Frequencies that were resolved already: most hypotheses share theirs. */
typedef struct penc_frequency_cache penc_frequency_cache;
penc_frequency_cache *penc_frequency_cache_create(void);
void penc_frequency_cache_destroy(penc_frequency_cache *cache);

/* Fails as posenc_frequencies_create does: then the hypothesis cannot be (a list of another length). The
 * arrays of `model` are reused if it was made before (zeroed at first); free with penc_model_free. */
posenc_status penc_model_make(penc_model *model, const penc_hypothesis *h,
                              penc_frequency_cache *cache, posenc_error *error);
void penc_model_free(penc_model *model);

/* One head of one token. */
typedef struct penc_place {
    size_t batch, token, head;
} penc_place;

/* The positions of a sequence's tokens on an axis. */
const int64_t *penc_observed_positions(const posenc_observation *observation, size_t axis,
                                       size_t batch);

/* The angle of every pair as it is turned by, and how far it may be off. */
void penc_model_angles(const penc_model *model, const posenc_observation *observation,
                       const penc_place *at, double *angles, double *noise);

/* cos and sin of these angles, magnitude included. */
void penc_model_rows(const penc_model *model, const posenc_observation *observation,
                     const penc_place *at, double *cos, double *sin, double *noise);

#endif
