/* From evidence to a verdict. docs/detection.md argues for every number here. SPDX-License-Identifier: MIT */
#include "checkpoint/pair_verdict.h"

#include "base/fail.h"

#include <math.h>
#include <string.h>

/* What a claim takes. */
#define PENC_DEVIATIONS 6.0  /* of a ratio from shuffled channels, and ... */
#define PENC_NATS       16.0 /* ... so large a ratio */
/* For q and k together each of the two has to speak for it, or one of them may be permuted. */
#define PENC_EACH_NATS 8.0
/* Exact evidence: for the other pairing it contradicts; where there are MANY signs it has to support; */
#define PENC_CONTRADICTION 6.0
#define PENC_SUPPORT       10.0
#define PENC_MANY_SIGNS    512
/* a claim of interleaved takes a hint, for neighbouring channels are alike in smooth heads of half too; */
#define PENC_HINT 1.0
/* that q and k differ takes more, for without rotary encoding they do so after any one-sided permutation. */
#define PENC_DIFFER_HINT 3.0

const char *posenc_detected_name(posenc_detected verdict) {
    switch (verdict) {
    case POSENC_DETECTED_UNDETERMINED:
        return "undetermined";
    case POSENC_DETECTED_HALF:
        return "half";
    case POSENC_DETECTED_INTERLEAVED:
        return "interleaved";
    }
    return NULL;
}

/* 1 for half, -1 for interleaved, 0 where the two ratios make no claim or contradict each other. */
static int penc_pair_claim(const posenc_pair_evidence *evidence) {
    int claim = 0;
    for (int part = 0; part < PENC_PARTS; part++) {
        int sign = evidence->deviation[part] > 0.0 ? 1 : -1;
        if (fabs(evidence->deviation[part]) < PENC_DEVIATIONS ||
            sign * evidence->ratio[part] < PENC_NATS)
            continue;
        if (claim == -sign)
            return 0;
        claim = sign;
    }
    return claim;
}

/* `half` and `interleaved` are the exact evidence that counts here. */
static posenc_detected penc_pair_decide(const posenc_pair_evidence *evidence, double half,
                                        double interleaved, size_t signs) {
    int claim = penc_pair_claim(evidence);
    double support = claim > 0 ? half : interleaved, other = claim > 0 ? interleaved : half;
    if (!claim || other >= PENC_CONTRADICTION ||
        (signs >= PENC_MANY_SIGNS && support < PENC_SUPPORT))
        return POSENC_DETECTED_UNDETERMINED;
    if (claim < 0 && (support < PENC_HINT || support <= other))
        return POSENC_DETECTED_UNDETERMINED;
    return claim > 0 ? POSENC_DETECTED_HALF : POSENC_DETECTED_INTERLEAVED;
}

static void penc_pair_report(const penc_pair_ratios *ratios, const penc_pair_signs *signs, int side,
                             posenc_pair_evidence *evidence) {
    for (int part = 0; part < PENC_PARTS; part++) {
        evidence->ratio[part] = ratios->ratio[part][side];
        evidence->deviation[part] = ratios->deviation[part][side];
    }
    evidence->exact_half = signs->nats[PENC_HALF][side];
    evidence->exact_interleaved = signs->nats[PENC_INTERLEAVED][side];
    int part = fabs(evidence->deviation[1]) > fabs(evidence->deviation[0]);
    evidence->statistic = evidence->deviation[part];
}

/* How much a side's ratios speak for a verdict. */
static double penc_pair_nats(const posenc_pair_evidence *evidence, posenc_detected verdict) {
    double sign = verdict == POSENC_DETECTED_HALF ? 1.0 : -1.0;
    return fmax(sign * evidence->ratio[PENC_TOTAL], sign * evidence->ratio[PENC_RESIDUAL]);
}

void penc_pair_conclude(const penc_pair_ratios *ratios, const penc_pair_signs *signs,
                        posenc_judgement *judgement) {
    posenc_pair_evidence *sides[PENC_SIDES] = {&judgement->both, &judgement->q, &judgement->k};
    const double(*fit)[PENC_PAIRINGS] = ratios->likelihood;
    int differ = fmax(fit[0][1], fit[1][0]) > fmax(fit[0][0], fit[1][1]);
    for (int side = 0; side < PENC_SIDES; side++) {
        int exact = differ ? side : PENC_BOTH;
        penc_pair_report(ratios, signs, side, sides[side]);
        sides[side]->verdict = penc_pair_decide(sides[side], signs->nats[PENC_HALF][exact],
                                                signs->nats[PENC_INTERLEAVED][exact], signs->signs);
    }
    judgement->q_k_differ = differ;
    posenc_detected *both = &judgement->both.verdict;
    if (!differ) {
        if (fmin(penc_pair_nats(&judgement->q, *both), penc_pair_nats(&judgement->k, *both)) <
            PENC_EACH_NATS)
            *both = POSENC_DETECTED_UNDETERMINED;
        return;
    }
    int q = fit[0][1] > fit[1][0] ? PENC_HALF : PENC_INTERLEAVED;
    *both = POSENC_DETECTED_UNDETERMINED;
    if (signs->nats[q][PENC_Q] + signs->nats[1 - q][PENC_K] < PENC_DIFFER_HINT)
        judgement->q.verdict = judgement->k.verdict = POSENC_DETECTED_UNDETERMINED;
}

/* The heads of one layer; its arrays are those of `all`. */
static penc_pair_data penc_pair_layer(const penc_pair_data *all, size_t layer) {
    penc_pair_data part = *all;
    size_t first = 0, end;
    while (first < all->heads && all->layer[first] < layer)
        first++;
    for (end = first; end < all->heads && all->layer[end] == layer;)
        end++;
    part.heads = end - first;
    if (part.heads) {
        part.x += first * all->dim;
        part.y += first * all->dim;
        part.layer += first;
        part.tied += first;
    }
    return part;
}

posenc_status posenc_pair_powers_judge(const posenc_pair_powers *powers, size_t layer,
                                       posenc_judgement *judgement, posenc_error *error) {
    if (!powers || !judgement)
        return penc_fail_null(error, powers ? "judgement" : "powers");
    int all = layer == POSENC_ALL_LAYERS;
    if (!all && layer >= powers->layers) {
        penc_fail_size(error, "layer", layer,
                       "be below the number of layers, or POSENC_ALL_LAYERS");
        penc_fail_limit(error, "layers", powers->layers);
        return POSENC_OUT_OF_RANGE;
    }
    penc_pair_data data = all ? powers->data : penc_pair_layer(&powers->data, layer);
    penc_pair_ratios ratios;
    penc_pair_signs signs;
    memset(judgement, 0, sizeof *judgement);
    judgement->layers = all ? powers->layers : 1;
    judgement->heads = data.heads;
    if (!data.heads) /* nothing to judge: undetermined */
        return POSENC_OK;
    posenc_status status = penc_pair_ratios_of(&data, &ratios, error);
    if (!status)
        status = penc_pair_signs_of(&data, &signs, error);
    if (status)
        return status;
    judgement->exact_signs = signs.signs;
    penc_pair_conclude(&ratios, &signs, judgement);
    return POSENC_OK;
}
