/* The arrays before and after, and how well a model predicts one from the other. SPDX-License-Identifier: MIT */
#ifndef PENC_EVIDENCE_H
#define PENC_EVIDENCE_H

#include "diagnosis/hypothesis.h"

/* The numbers of one head of one token. */
typedef struct penc_vector {
    penc_place place;
    double *before, *after; /* head_dim numbers each */
} penc_vector;

typedef struct penc_evidence {
    const posenc_observation *observation;
    size_t head_dim;
    double unit;            /* noise allowed, as a share of the products' magnitudes */
    double copy_unit;       /* and of channels that are copied: 0 unless the dtypes differ */
    double denormal;        /* what denormals may lose, which have fewer bits */
    size_t count;           /* vectors of the sample */
    penc_vector *vectors;   /* those that tell most (far positions) first */
    double *numbers;        /* theirs */
    unsigned char *doubted; /* [count][head_dim]: 1 where the model that was meant is off */
    size_t doubted_count;
    double *cos, *sin, *noise, *predicted, *rounding, *allowed, *head; /* scratch of one vector */
} penc_evidence;

/* What a comparison found. */
typedef struct penc_score {
    size_t compared, beyond; /* elements, and how many of them are further off than allowed */
    double squares;          /* sum of (error / rounding noise)^2, noise of angles left out */
    double worst_ratio, worst_error, worst_allowed;
    size_t place[POSENC_AXES];
    size_t doubted; /* elements that are doubted and at angles known well enough to tell anything */
    double doubted_squares; /* of (error / allowed), over the doubted */
} penc_score;

/* Memory for comparisons. Free with penc_evidence_free, on failure too. */
posenc_status penc_evidence_start(penc_evidence *evidence, const posenc_observation *observation,
                                  posenc_error *error);
void penc_evidence_free(penc_evidence *evidence);

/* Takes the sample, with the vector at `place` among it, and marks where `meant` is off. */
posenc_status penc_evidence_sample(penc_evidence *evidence, const penc_model *meant,
                                   const size_t *place, posenc_error *error);

/* Compares all elements, or those of the sample. `stop`: end at the first element that is beyond. */
void penc_score_all(penc_evidence *evidence, const penc_model *model, int stop, penc_score *score);
void penc_score_sample(penc_evidence *evidence, const penc_model *model, int stop,
                       penc_score *score);

/* Whether a hypothesis rotates a vector at all. */
penc_rest_rule penc_rest_of(const penc_hypothesis *h, const penc_vector *at);

/* Norms, without any model: see posenc_diagnosis. */
void penc_measure_norms(penc_evidence *evidence, posenc_diagnosis *diagnosis);

#endif
