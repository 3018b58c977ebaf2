/* Names of q and k projections. SPDX-License-Identifier: MIT */
#include "checkpoint/attention_names.h"

#include "base/fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const penc_attention_scheme penc_schemes[] = {
    {"self_attn.q_b_proj", "self_attn.kv_a_proj_with_mqa", PENC_LATENT},
    {"attn_q_b", "attn_kv_a_mqa", PENC_LATENT},
    {"self_attn.q_proj", "self_attn.k_proj", PENC_SEPARATE},
    {"attn_q", "attn_k", PENC_SEPARATE},
    {"attention.wq", "attention.wk", PENC_SEPARATE},
    {"attn.q_proj", "attn.k_proj", PENC_SEPARATE},
    {"attention.q_proj", "attention.k_proj", PENC_SEPARATE},
    {"attention.self.query", "attention.self.key", PENC_SEPARATE},
    {"self_attn.qkv_proj", NULL, PENC_JOINED},
    {"self_attn.W_pack", NULL, PENC_JOINED},
    {"attn_qkv", NULL, PENC_JOINED},
    {"attn.Wqkv", NULL, PENC_JOINED},
    {"mixer.Wqkv", NULL, PENC_JOINED},
    {"attn.c_attn", NULL, PENC_JOINED},
    {"attention.wqkv", NULL, PENC_GROUPED},
    {"attention.query_key_value", NULL, PENC_GROUPED},
    {"self_attention.query_key_value", NULL, PENC_GROUPED},
};

/* The same names in stacks of this prefix hold q, k and v one after the other. */
static const penc_attention_scheme penc_encoder_scheme = {"self_attention.query_key_value", NULL,
                                                          PENC_JOINED};
static const char penc_encoder_prefix[] = "transformer.encoder.layers.";

/* MLA without a compressed q: told from plain attention by its k. */
static const penc_attention_scheme penc_latent_schemes[] = {
    {"self_attn.q_proj", "self_attn.kv_a_proj_with_mqa", PENC_LATENT},
    {"attn_q", "attn_kv_a_mqa", PENC_LATENT}};

enum {
    PENC_SCHEMES = sizeof penc_schemes / sizeof *penc_schemes,
    PENC_LATENTS = sizeof penc_latent_schemes / sizeof *penc_latent_schemes,
    PENC_MAX_STACKS = 32
};

/* Layers that share prefix and scheme. */
typedef struct penc_stack {
    penc_attention_names names;
    size_t room;
    int tower; /* it sees pictures or hears sound */
} penc_stack;

typedef struct penc_stacks {
    penc_stack stack[PENC_MAX_STACKS];
    size_t count;
} penc_stacks;

int penc_attention_name(const penc_attention_names *names, uint32_t layer, const char *part,
                        const char *end, char name[PENC_NAME_BYTES]) {
    int length =
        snprintf(name, PENC_NAME_BYTES, "%s%u.%s%s", names->prefix, (unsigned)layer, part, end);
    return length > 0 && length < PENC_NAME_BYTES;
}

/* Splits "PREFIX" "7" ".PART.weight" if the name ends with the part. Returns the length of the prefix, 0 if it is none. */
static size_t penc_match_name(const char *name, size_t length, const char *part, uint32_t *layer) {
    static const char end[] = ".weight";
    size_t part_length = strlen(part), end_length = sizeof end - 1, at = length;
    if (length < part_length + end_length + 3 ||
        memcmp(name + length - end_length, end, end_length) != 0)
        return 0;
    at -= end_length + part_length;
    if (memcmp(name + at, part, part_length) != 0 || name[--at] != '.')
        return 0;
    uint32_t value = 0, unit = 1;
    size_t digits = 0;
    while (digits < at && name[at - digits - 1] >= '0' && name[at - digits - 1] <= '9') {
        if (++digits > 5)
            return 0;
        value += unit * (uint32_t)(name[at - digits] - '0');
        unit *= 10;
    }
    size_t prefix = at - digits;
    if (!digits || value >= PENC_MAX_LAYERS_FOUND || prefix >= PENC_PREFIX_BYTES ||
        (prefix && name[prefix - 1] != '.'))
        return 0;
    *layer = value;
    return prefix ? prefix : 0;
}

static int penc_prefix_is_tower(const char *prefix) {
    static const char *const words[] = {"vis", "audio", "speech", "image", "clip"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strstr(prefix, words[i]))
            return 1;
    }
    return 0;
}

static penc_stack *penc_stack_of(penc_stacks *stacks, const char *name, size_t prefix_length,
                                 const penc_attention_scheme *scheme) {
    for (size_t i = 0; i < stacks->count; i++) {
        penc_stack *stack = &stacks->stack[i];
        if (stack->names.scheme == scheme && strlen(stack->names.prefix) == prefix_length &&
            memcmp(stack->names.prefix, name, prefix_length) == 0)
            return stack;
    }
    if (stacks->count == PENC_MAX_STACKS)
        return NULL;
    penc_stack *made = &stacks->stack[stacks->count++];
    memset(made, 0, sizeof *made);
    memcpy(made->names.prefix, name, prefix_length);
    made->names.scheme = scheme;
    made->tower = penc_prefix_is_tower(made->names.prefix);
    return made;
}

static posenc_status penc_stack_add(penc_stack *stack, uint32_t layer, posenc_error *error) {
    penc_attention_names *names = &stack->names;
    if (names->count == stack->room) {
        size_t room = stack->room ? 2 * stack->room : 64;
        uint32_t *grown = realloc(names->layers, room * sizeof *grown);
        if (!grown)
            return penc_fail(error, POSENC_OUT_OF_MEMORY, "layers", "fit into memory");
        names->layers = grown;
        stack->room = room;
    }
    names->layers[names->count++] = layer;
    return POSENC_OK;
}

static posenc_status penc_stacks_sort_in(penc_stacks *stacks, const char *name, size_t length,
                                         posenc_error *error) {
    for (size_t i = 0; i < PENC_SCHEMES; i++) {
        const penc_attention_scheme *scheme = &penc_schemes[i];
        uint32_t layer;
        size_t prefix = penc_match_name(name, length, scheme->q, &layer);
        if (!prefix)
            continue;
        if (strcmp(scheme->q, penc_encoder_scheme.q) == 0 &&
            prefix == sizeof penc_encoder_prefix - 1 &&
            memcmp(name, penc_encoder_prefix, prefix) == 0)
            scheme = &penc_encoder_scheme;
        penc_stack *stack = penc_stack_of(stacks, name, prefix, scheme);
        return stack ? penc_stack_add(stack, layer, error) : POSENC_OK;
    }
    return POSENC_OK;
}

static int penc_compare_layers(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Whether the layers have k beside q, or k of MLA, which changes the scheme. */
static posenc_status penc_names_check_k(const penc_tensor_set *set, penc_attention_names *names,
                                        posenc_error *error) {
    char name[PENC_NAME_BYTES];
    penc_tensor tensor;
    const penc_tensor_source *file;
    if (!names->scheme->k || !names->count)
        return POSENC_OK;
    for (size_t i = 0; i < PENC_LATENTS; i++) {
        const penc_attention_scheme *latent = &penc_latent_schemes[i];
        if (strcmp(latent->q, names->scheme->q) != 0 ||
            !penc_attention_name(names, names->layers[0], latent->k, ".weight", name))
            continue;
        posenc_status status = penc_tensor_set_find(set, name, &tensor, &file, error);
        if (status)
            return status;
        if (file)
            names->scheme = latent;
    }
    return POSENC_OK;
}

static posenc_status penc_stacks_fill(const penc_tensor_set *set, penc_stacks *stacks,
                                      posenc_error *error) {
    char name[PENC_NAME_BYTES];
    size_t length;
    for (size_t file = 0; file < penc_tensor_set_files(set); file++) {
        const penc_tensor_source *source = penc_tensor_set_file(set, file);
        for (size_t i = 0; i < source->count; i++) {
            posenc_status status =
                source->format->name(source, &source->entries[i], name, &length, error);
            if (!status)
                status = penc_stacks_sort_in(stacks, name, length, error);
            if (status)
                return status;
        }
    }
    return POSENC_OK;
}

static penc_stack *penc_stacks_best(penc_stacks *stacks) {
    penc_stack *best = NULL;
    for (size_t i = 0; i < stacks->count; i++) {
        penc_stack *stack = &stacks->stack[i];
        if (!best || stack->tower < best->tower ||
            (stack->tower == best->tower && stack->names.count > best->names.count))
            best = stack;
    }
    return best;
}

posenc_status penc_attention_names_find(const penc_tensor_set *set, penc_attention_names *names,
                                        posenc_error *error) {
    memset(names, 0, sizeof *names);
    penc_stacks *stacks = calloc(1, sizeof *stacks);
    if (!stacks)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "names", "fit into memory");
    posenc_status status = penc_stacks_fill(set, stacks, error);
    penc_stack *best = penc_stacks_best(stacks);
    if (!status && !best) {
        status = penc_fail(error, POSENC_UNSUPPORTED, "tensors",
                           "hold q and k projections under names that are known here");
        penc_fail_file(error, penc_tensor_set_file(set, 0)->input.path);
    }
    if (!status)
        status = penc_names_check_k(set, &best->names, error);
    if (!status) {
        *names = best->names;
        best->names.layers = NULL;
        qsort(names->layers, names->count, sizeof *names->layers, penc_compare_layers);
    }
    for (size_t i = 0; i < stacks->count; i++)
        free(stacks->stack[i].names.layers);
    free(stacks);
    return status;
}

void penc_attention_names_free(penc_attention_names *names) {
    free(names->layers);
    memset(names, 0, sizeof *names);
}
