/* rope_parameters JSON to a scaling and axes. SPDX-License-Identifier: MIT */
#include "posenc/rope_parameters.h"

#include "base/fail.h"
#include "base/notes.h"
#include "formats/json_file.h"
#include "model/json_value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct posenc_rope_parameters {
    json_object *json; /* keeps the names of unknown keys */
    posenc_scaling scaling;
    posenc_axes axes; /* count 0: no sections given */
    double base, partial;
    int factor_is_null; /* yarn: max_positions / original */
    double *short_factors, *long_factors;
};

/* What the reading functions share. */
typedef struct penc_block {
    posenc_rope_parameters *made;
    posenc_notes *notes;
    posenc_error *error;
} penc_block;

static const char *const penc_known_keys[] = {
    "rope_type",
    "type",
    "rope_theta",
    "factor",
    "attention_factor",
    "attention_coefficient",
    "beta_fast",
    "beta_slow",
    "truncate",
    "mscale",
    "mscale_all_dim",
    "low_freq_factor",
    "high_freq_factor",
    "short_factor",
    "long_factor",
    "partial_rotary_factor",
    "alpha",
    "mrope_section",
    "mrope_interleaved",
    "original_max_position_embeddings",
};

/* NULL if the key is missing or null. */
static json_object *penc_key(const penc_block *block, const char *key) {
    return penc_json_get(block->made->json, key);
}

static posenc_status penc_wrong_type(const penc_block *block, const char *key, const char *must) {
    return penc_fail(block->error, POSENC_FORMAT, key, must);
}

/* A number, an integer or (noted) a string that is a number. */
static int penc_number_of(const penc_block *block, json_object *value, const char *key,
                          double *number) {
    int in_string = 0;
    if (!penc_json_number(value, number, &in_string))
        return 0;
    if (in_string)
        penc_note_real(block->notes, POSENC_NOTE_NUMBER_IN_STRING, key, *number);
    return 1;
}

/* Leaves *number alone where the key is not given. */
static posenc_status penc_get_number(const penc_block *block, const char *key, double *number) {
    json_object *value = penc_key(block, key);
    if (!value)
        return POSENC_OK;
    if (!penc_number_of(block, value, key, number))
        return penc_wrong_type(block, key, "be a number");
    if (!isfinite(*number))
        return penc_fail_real(block->error, key, *number, "be a finite number");
    return POSENC_OK;
}

static posenc_status penc_get_length(const penc_block *block, const char *key, uint64_t *length) {
    double number = 0.0;
    posenc_status status = penc_get_number(block, key, &number);
    if (status || !penc_key(block, key))
        return status;
    if (!(number >= 1.0 && number <= 0x1p40) || number != floor(number))
        return penc_fail_real(block->error, key, number, "be a whole number from 1 to 2^40");
    *length = (uint64_t)number;
    return POSENC_OK;
}

static posenc_status penc_get_switch(const penc_block *block, const char *key, int *value) {
    json_object *given = penc_key(block, key);
    if (!given)
        return POSENC_OK;
    if (json_object_get_type(given) != json_type_boolean)
        return penc_wrong_type(block, key, "be true or false");
    *value = json_object_get_boolean(given);
    return POSENC_OK;
}

/* A list of numbers into memory of its own; *list is NULL where the key is not given. */
static posenc_status penc_get_list(const penc_block *block, const char *key, double **list,
                                   size_t *count) {
    json_object *value = penc_key(block, key);
    *list = NULL;
    if (!value)
        return POSENC_OK;
    if (json_object_get_type(value) != json_type_array)
        return penc_wrong_type(block, key, "be a list of numbers");
    *count = json_object_array_length(value);
    *list = malloc((*count ? *count : 1) * sizeof **list);
    if (!*list)
        return penc_fail(block->error, POSENC_OUT_OF_MEMORY, key, "fit into memory");
    for (size_t i = 0; i < *count; i++) {
        if (!penc_number_of(block, json_object_array_get_idx(value, i), key, &(*list)[i])) {
            penc_wrong_type(block, key, "be a list of numbers");
            penc_fail_place(block->error, "index", (int64_t)i);
            return POSENC_FORMAT;
        }
    }
    return POSENC_OK;
}

static int penc_scaling_type_of(const char *word, posenc_scaling_type *type) {
    static const struct {
        const char *word;
        posenc_scaling_type type;
    } words[] = {
#define PENC_WORD(name, number, word) {word, POSENC_SCALING_##name},
        POSENC_SCALING_LIST(PENC_WORD)
#undef PENC_WORD
            {"su", POSENC_SCALING_LONGROPE},
        {"mrope", POSENC_SCALING_DEFAULT},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(word, words[i].word) == 0 && words[i].type != POSENC_SCALING_CUSTOM) {
            *type = words[i].type;
            return 1;
        }
    }
    return 0;
}

static posenc_status penc_get_type_word(const penc_block *block, const char *key,
                                        const char **word) {
    json_object *value = penc_key(block, key);
    *word = NULL;
    if (!value)
        return POSENC_OK;
    if (json_object_get_type(value) != json_type_string)
        return penc_wrong_type(block, key, "be a word such as \"yarn\"");
    *word = json_object_get_string(value);
    return POSENC_OK;
}

static posenc_status penc_get_type(const penc_block *block) {
    const char *word, *old_word;
    posenc_scaling_type type = POSENC_SCALING_DEFAULT, old_type = POSENC_SCALING_DEFAULT;
    static const char must[] =
        "be one of default, linear, ntk, dynamic, yarn, longrope (su), llama3, "
        "proportional, mrope";
    posenc_status status = penc_get_type_word(block, "rope_type", &word);
    if (!status)
        status = penc_get_type_word(block, "type", &old_word);
    if (status)
        return status;
    if (word && !penc_scaling_type_of(word, &type))
        return penc_fail(block->error, POSENC_OUT_OF_RANGE, "rope_type", must);
    if (old_word && !penc_scaling_type_of(old_word, &old_type))
        return penc_fail(block->error, POSENC_OUT_OF_RANGE, "type", must);
    if (word && old_word && type != old_type)
        return penc_fail(block->error, POSENC_FORMAT, "rope_type",
                         "agree with type where both are given");
    block->made->scaling.type = word ? type : old_type;
    return POSENC_OK;
}

/* In the structs 0 means "not given", which is not what a file says that has a 0. */
static posenc_status penc_refuse_zeros(const penc_block *block) {
    if (penc_key(block, "rope_theta") && block->made->base == 0.0)
        return penc_fail_real(block->error, "rope_theta", 0.0, "be above 0");
    if (penc_key(block, "attention_factor") && block->made->scaling.attention_factor == 0.0)
        return penc_fail_real(block->error, "attention_factor", 0.0, "be above 0");
    return POSENC_OK;
}

static posenc_status penc_get_numbers(const penc_block *block) {
    posenc_scaling *s = &block->made->scaling;
    int truncate = 1;
    const struct {
        const char *key;
        double *number;
    } numbers[] = {
        {"factor", &s->factor},
        {"attention_factor", &s->attention_factor},
        {"attention_coefficient", &s->attention_coefficient},
        {"beta_fast", &s->beta_fast},
        {"beta_slow", &s->beta_slow},
        {"mscale", &s->mscale},
        {"mscale_all_dim", &s->mscale_all_dim},
        {"low_freq_factor", &s->low_freq_factor},
        {"high_freq_factor", &s->high_freq_factor},
        {"alpha", &s->alpha},
        {"rope_theta", &block->made->base},
        {"partial_rotary_factor", &block->made->partial},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        posenc_status status = penc_get_number(block, numbers[i].key, numbers[i].number);
        if (status)
            return status;
    }
    posenc_status status = penc_refuse_zeros(block);
    if (!status)
        status =
            penc_get_length(block, "original_max_position_embeddings", &s->original_max_positions);
    if (!status)
        status = penc_get_switch(block, "truncate", &truncate);
    s->no_truncate = !truncate;
    block->made->factor_is_null =
        !penc_key(block, "factor") && json_object_object_get_ex(block->made->json, "factor", NULL);
    if (s->factor > 0.0 && s->factor < 1.0) {
        s->shrinks = 1;
        penc_note_real(block->notes, POSENC_NOTE_FACTOR_BELOW_1, "factor", s->factor);
    }
    if (s->type == POSENC_SCALING_DYNAMIC && s->alpha != 0.0)
        s->dynamic = POSENC_DYNAMIC_ALPHA; /* HunYuan: alpha wins over factor */
    return status;
}

static posenc_status penc_get_sections(const penc_block *block) {
    double *sections = NULL;
    size_t count = 0;
    int interleaved = 0;
    posenc_axes *axes = &block->made->axes;
    posenc_status status = penc_get_switch(block, "mrope_interleaved", &interleaved);
    if (!status)
        status = penc_get_list(block, "mrope_section", &sections, &count);
    if (!status && count > POSENC_MAX_AXES)
        status = penc_fail_size(block->error, "length of mrope_section", count, "be at most 8");
    for (size_t i = 0; !status && i < count; i++) {
        if (!(sections[i] >= 0.0 && sections[i] <= (double)POSENC_MAX_DIM)) {
            status = penc_fail_real(block->error, "mrope_section", sections[i],
                                    "be whole numbers that are not negative");
            break;
        }
        axes->sections[i] = (size_t)sections[i];
    }
    axes->count = status ? 0 : count;
    axes->order = interleaved ? POSENC_AXES_INTERLEAVED : POSENC_AXES_CHUNKED;
    free(sections);
    return status;
}

static posenc_status penc_get_factors(const penc_block *block) {
    posenc_rope_parameters *made = block->made;
    size_t short_count = 0, long_count = 0;
    posenc_status status = penc_get_list(block, "short_factor", &made->short_factors, &short_count);
    if (!status)
        status = penc_get_list(block, "long_factor", &made->long_factors, &long_count);
    if (status)
        return status;
    if (short_count != long_count) {
        status = penc_fail_size(block->error, "length of long_factor", long_count,
                                "be that of short_factor");
        penc_fail_limit(block->error, "short_factor", short_count);
        return status;
    }
    made->scaling.short_factors = made->short_factors;
    made->scaling.long_factors = made->long_factors;
    made->scaling.factor_count = short_count;
    return POSENC_OK;
}

static void penc_note_unknown_keys(const penc_block *block) {
    json_object_object_foreach(block->made->json, key, value) {
        (void)value;
        size_t i = 0, count = sizeof penc_known_keys / sizeof *penc_known_keys;
        while (i < count && strcmp(key, penc_known_keys[i]) != 0)
            i++;
        if (i == count)
            penc_note(block->notes, POSENC_NOTE_UNKNOWN_KEY, key);
    }
}

posenc_status posenc_rope_parameters_parse(const char *json, size_t length,
                                           posenc_rope_parameters **parameters, posenc_notes *notes,
                                           posenc_error *error) {
    if (!parameters)
        return penc_fail_null(error, "parameters");
    *parameters = NULL;
    if (!json)
        return penc_fail_null(error, "json");
    if (notes)
        notes->count = 0;
    penc_block block = {calloc(1, sizeof *block.made), notes, error};
    if (!block.made)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "parameters", "fit into memory");
    block.made->scaling.size = sizeof block.made->scaling;
    block.made->axes.size = sizeof block.made->axes;
    posenc_status status = penc_json_parse(json, length, &block.made->json, error);
    if (!status)
        status = penc_get_type(&block);
    if (!status)
        status = penc_get_numbers(&block);
    if (!status)
        status = penc_get_factors(&block);
    if (!status)
        status = penc_get_sections(&block);
    if (status) {
        posenc_rope_parameters_free(block.made);
        return status;
    }
    penc_note_unknown_keys(&block);
    *parameters = block.made;
    return POSENC_OK;
}

void posenc_rope_parameters_free(posenc_rope_parameters *parameters) {
    if (!parameters)
        return;
    json_object_put(parameters->json);
    free(parameters->short_factors);
    free(parameters->long_factors);
    free(parameters);
}

static posenc_status penc_apply_base(const posenc_rope_parameters *parameters, posenc_spec *spec,
                                     posenc_error *error) {
    if (parameters->base == 0.0)
        return POSENC_OK;
    if (spec->base != 0.0 && spec->base != parameters->base)
        return penc_fail_real(error, "rope_theta", parameters->base,
                              "agree with the base that was given beside it");
    spec->base = parameters->base;
    return POSENC_OK;
}

static posenc_status penc_apply_partial(posenc_rope_parameters *parameters, posenc_spec *spec,
                                        posenc_error *error) {
    double partial = parameters->partial;
    if (partial == 0.0)
        return POSENC_OK;
    if (!(partial > 0.0 && partial <= 1.0))
        return penc_fail_real(error, "partial_rotary_factor", partial, "be above 0 and at most 1");
    if (parameters->scaling.type == POSENC_SCALING_PROPORTIONAL) {
        parameters->scaling.partial = partial;
        return POSENC_OK;
    }
    size_t rotary_dim = (size_t)((double)spec->head_dim * partial);
    if (spec->rotary_dim && spec->rotary_dim != rotary_dim) {
        penc_fail_real(error, "partial_rotary_factor", partial,
                       "agree with the rotary_dim that was given beside it");
        penc_fail_limit(error, "rotary_dim", spec->rotary_dim);
        return POSENC_OUT_OF_RANGE;
    }
    spec->rotary_dim = rotary_dim;
    return POSENC_OK;
}

posenc_status posenc_rope_parameters_apply(posenc_rope_parameters *parameters, posenc_spec *spec,
                                           posenc_notes *notes, posenc_error *error) {
    if (!parameters)
        return penc_fail_null(error, "parameters");
    if (!spec)
        return penc_fail_null(error, "spec");
    posenc_scaling *s = &parameters->scaling;
    posenc_status status = penc_apply_base(parameters, spec, error);
    if (!status)
        status = penc_apply_partial(parameters, spec, error);
    if (status)
        return status;
    if (s->type == POSENC_SCALING_YARN && parameters->factor_is_null) {
        if (!spec->max_positions || !s->original_max_positions)
            return penc_fail(error, POSENC_OUT_OF_RANGE, "factor",
                             "be a number, or null beside max_positions and "
                             "original_max_position_embeddings");
        s->factor = (double)spec->max_positions / (double)s->original_max_positions;
        penc_note_real(notes, POSENC_NOTE_DEFAULTED, "factor", s->factor);
    }
    spec->scaling = s;
    if (parameters->axes.count)
        spec->axes = &parameters->axes;
    return POSENC_OK;
}
