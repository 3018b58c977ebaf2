/* Checking a spec and resolving its frequencies. SPDX-License-Identifier: MIT */
#include "frequencies/frequencies_object.h"

#include "base/fail.h"
#include "base/struct_size.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *posenc_pairing_name(posenc_pairing pairing) {
    switch (pairing) {
    case POSENC_PAIRING_HALF:
        return "half";
    case POSENC_PAIRING_INTERLEAVED:
        return "interleaved";
    }
    return NULL;
}

posenc_status posenc_pairing_parse(const char *text, posenc_pairing *pairing, posenc_error *error) {
    static const struct {
        const char *text;
        posenc_pairing pairing;
    } names[] = {
        {"half", POSENC_PAIRING_HALF},
        {"neox", POSENC_PAIRING_HALF},
        {"rotate_half", POSENC_PAIRING_HALF},
        {"half_split", POSENC_PAIRING_HALF},
        {"split_half", POSENC_PAIRING_HALF},
        {"interleaved", POSENC_PAIRING_INTERLEAVED},
        {"gptj", POSENC_PAIRING_INTERLEAVED},
        {"meta", POSENC_PAIRING_INTERLEAVED},
        {"adjacent", POSENC_PAIRING_INTERLEAVED},
        {"pairs", POSENC_PAIRING_INTERLEAVED},
    };
    static const char *const ambiguous[] = {"alternate", "consecutive", "neox_style"};
    if (!text)
        return penc_fail_null(error, "text");
    if (!pairing)
        return penc_fail_null(error, "pairing");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i].text) == 0) {
            *pairing = names[i].pairing;
            return POSENC_OK;
        }
    }
    for (size_t i = 0; i < sizeof ambiguous / sizeof *ambiguous; i++) {
        if (strcmp(text, ambiguous[i]) == 0)
            return penc_fail(error, POSENC_OUT_OF_RANGE, "pairing",
                             "be named otherwise, since \"alternate\", \"consecutive\" and "
                             "\"neox_style\" mean opposite things in different libraries: half for "
                             "pairs (j, j + rotary_dim/2), interleaved for pairs (2j, 2j + 1)");
    }
    return penc_fail(error, POSENC_OUT_OF_RANGE, "pairing",
                     "be half, pairs (j, j + rotary_dim/2), or interleaved, pairs (2j, 2j + 1)");
}

const char *posenc_mode_name(posenc_mode mode) {
    switch (mode) {
    case POSENC_MODE_EXACT:
        return "exact";
    case POSENC_MODE_FLOAT32:
        return "float32";
    }
    return NULL;
}

static void penc_note(posenc_notes *notes, const char *argument, posenc_number value) {
    if (!notes)
        return;
    if (notes->count < notes->capacity && notes->notes) {
        posenc_note note = {POSENC_NOTE_DEFAULTED, argument, value};
        notes->notes[notes->count] = note;
    }
    notes->count++;
}

/* Fills in what the spec leaves out. `pairing` has no unset value, so it is never noted. */
static void penc_spec_defaults(posenc_spec *spec, posenc_notes *notes) {
    if (spec->rotary_dim == 0 && spec->rotary_start < spec->head_dim) {
        spec->rotary_dim = spec->head_dim - spec->rotary_start;
        posenc_number value = {POSENC_NUMBER_SIZE, {.size = spec->rotary_dim}};
        penc_note(notes, "rotary_dim", value);
    }
    if (spec->base == 0.0) {
        spec->base = 10000.0;
        posenc_number value = {POSENC_NUMBER_REAL, {.real = spec->base}};
        penc_note(notes, "base", value);
    }
}

static posenc_status penc_spec_check(const posenc_spec *spec, posenc_error *error) {
    posenc_status status = POSENC_OK;
    if (spec->head_dim < 2 || spec->head_dim > POSENC_MAX_DIM) {
        return penc_fail_size(error, "head_dim", spec->head_dim, "be from 2 to 16777216");
    } else if (spec->rotary_start >= spec->head_dim) {
        status = penc_fail_size(error, "rotary_start", spec->rotary_start, "be below head_dim");
    } else if (spec->rotary_dim % 2 || spec->rotary_dim == 0 || spec->rotary_dim > spec->head_dim) {
        status =
            penc_fail_size(error, "rotary_dim", spec->rotary_dim, "be even and from 2 to head_dim");
    } else if (spec->rotary_dim > spec->head_dim - spec->rotary_start) {
        status = penc_fail_size(error, "rotary_start", spec->rotary_start,
                                "leave room for rotary_dim channels below head_dim");
    } else if (!penc_base_is_valid(spec->base)) {
        return penc_fail_real(error, "base", spec->base, PENC_BASE_RANGE);
    } else if (!posenc_pairing_name(spec->pairing)) {
        return penc_fail_integer(error, "pairing", spec->pairing,
                                 "be POSENC_PAIRING_HALF or POSENC_PAIRING_INTERLEAVED");
    }
    if (status)
        penc_fail_limit(error, "head_dim", spec->head_dim);
    return status;
}

/* The base's logarithm, and that of the base rounded to float32. */
typedef struct penc_base {
    penc_exponent log2, log2_of_float;
} penc_base;

/* Pair `pair` of `pairs`, in every form that the modes need. */
static penc_frequency penc_default_frequency(const penc_base *base, size_t pair, size_t pairs) {
    penc_frequency frequency;
    penc_real radians = penc_ladder_rung(&base->log2, pair, pairs);
    frequency.turns = penc_turns_of(&radians, 1.0);
    frequency.inv_freq = penc_real_round(&radians, 53, -1074);

    /* transformers: 1.0 / (base ** (arange(0, dim, 2) / dim)), base and each step rounded to
     * float32. The power is correctly rounded here; PyTorch's is within an ulp of it. */
    float exponent = (float)(2 * pair) / (float)(2 * pairs);
    int shift;
    uint64_t numerator = penc_split_double((double)exponent, &shift); /* 24 bits at the top of 53 */
    penc_exponent e = penc_exponent_scale(&base->log2_of_float, numerator >> 29, 1);
    e.magnitude = penc_wide_shift(&e.magnitude, shift + 29);
    penc_real power = penc_exp2(&e);
    frequency.factor = 1.0f / (float)penc_real_round(&power, 24, -149);
    return frequency;
}

posenc_status posenc_frequencies_create(const posenc_spec *spec, uint64_t seq_len,
                                        posenc_frequencies **frequencies, posenc_notes *notes,
                                        posenc_error *error) {
    (void)seq_len; /* no scaling of this version depends on it */
    if (!frequencies)
        return penc_fail_null(error, "frequencies");
    *frequencies = NULL;
    if (notes)
        notes->count = 0;
    posenc_status status = penc_check_struct(spec, sizeof *spec, "spec", error);
    if (status)
        return status;
    posenc_spec resolved = *spec;
    resolved.size = sizeof resolved;
    penc_spec_defaults(&resolved, notes);
    status = penc_spec_check(&resolved, error);
    if (status)
        return status;

    size_t pairs = resolved.rotary_dim / 2;
    posenc_frequencies *made = malloc(sizeof *made + pairs * sizeof made->frequency[0]);
    if (!made)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "frequencies", "have memory to be made in");
    made->spec = resolved;
    made->pairs = pairs;
    made->attention_factor = 1.0;
    penc_base base = {penc_log2(resolved.base), penc_log2((double)(float)resolved.base)};
    for (size_t pair = 0; pair < pairs; pair++)
        made->frequency[pair] = penc_default_frequency(&base, pair, pairs);
    *frequencies = made;
    return POSENC_OK;
}

void posenc_frequencies_destroy(posenc_frequencies *frequencies) {
    free(frequencies);
}

size_t posenc_frequencies_pairs(const posenc_frequencies *frequencies) {
    return frequencies ? frequencies->pairs : 0;
}

double posenc_frequencies_inv_freq(const posenc_frequencies *frequencies, size_t pair,
                                   posenc_mode mode) {
    if (!frequencies || pair >= frequencies->pairs)
        return (double)NAN;
    const penc_frequency *frequency = &frequencies->frequency[pair];
    return mode == POSENC_MODE_FLOAT32 ? (double)frequency->factor : frequency->inv_freq;
}

double posenc_frequencies_attention_factor(const posenc_frequencies *frequencies) {
    return frequencies ? frequencies->attention_factor : (double)NAN;
}

const posenc_spec *posenc_frequencies_spec(const posenc_frequencies *frequencies) {
    return frequencies ? &frequencies->spec : NULL;
}
