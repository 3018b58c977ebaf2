/* Names of q and k projections. SPDX-License-Identifier: MIT */
#include "checkpoint/attention_names.h"

#include "base/fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const penc_attention_scheme penc_schemes[] = {
    {"self_attn.q_b_proj", "self_attn.kv_a_proj_with_mqa", PENC_LATENT, NULL, NULL},
    {"attn_q_b", "attn_kv_a_mqa", PENC_LATENT, NULL, NULL},
    {"self_attn.q_proj", "self_attn.k_proj", PENC_SEPARATE, "self_attn.v_proj", "self_attn.o_proj"},
    {"attn_q", "attn_k", PENC_SEPARATE, "attn_v", "attn_output"},
    {"attention.wq", "attention.wk", PENC_SEPARATE, "attention.wv", "attention.wo"},
    {"attn.q_proj", "attn.k_proj", PENC_SEPARATE, "attn.v_proj", "attn.o_proj"},
    {"attention.q_proj", "attention.k_proj", PENC_SEPARATE, "attention.v_proj", "attention.o_proj"},
    {"attention.self.query", "attention.self.key", PENC_SEPARATE, "attention.self.value",
     "attention.output.dense"},
    {"self_attn.qkv_proj", NULL, PENC_JOINED, NULL, NULL},
    {"self_attn.W_pack", NULL, PENC_JOINED, NULL, NULL},
    {"attn_qkv", NULL, PENC_JOINED, NULL, NULL},
    {"attn.Wqkv", NULL, PENC_JOINED, NULL, NULL},
    {"mixer.Wqkv", NULL, PENC_JOINED, NULL, NULL},
    {"attn.c_attn", NULL, PENC_JOINED, NULL, NULL},
    {"attention.wqkv", NULL, PENC_GROUPED, NULL, NULL},
    {"attention.query_key_value", NULL, PENC_GROUPED, NULL, NULL},
    {"self_attention.query_key_value", NULL, PENC_GROUPED, NULL, NULL},
};

const char *const penc_gain_parts[PENC_GAIN_PARTS][2] = {
    {"self_attn.q_norm", "self_attn.k_norm"},
    {"attn_q_norm", "attn_k_norm"},
    {"attn.q_norm", "attn.k_norm"},
    {"attention.q_norm", "attention.k_norm"},
    {"self_attn.q_layernorm", "self_attn.k_layernorm"},
    {"self_attn.query_layernorm", "self_attn.key_layernorm"},
};

/* The same names in stacks of this prefix hold q, k and v one after the other. */
static const penc_attention_scheme penc_encoder_scheme = {"self_attention.query_key_value", NULL,
                                                          PENC_JOINED, NULL, NULL};
static const char penc_encoder_prefix[] = "transformer.encoder.layers.";

/* MLA without a compressed q: told from plain attention by its k. */
static const penc_attention_scheme penc_latent_schemes[] = {
    {"self_attn.q_proj", "self_attn.kv_a_proj_with_mqa", PENC_LATENT, NULL, NULL},
    {"attn_q", "attn_kv_a_mqa", PENC_LATENT, NULL, NULL}};

enum {
    PENC_SCHEMES = sizeof penc_schemes / sizeof *penc_schemes,
    PENC_LATENTS = sizeof penc_latent_schemes / sizeof *penc_latent_schemes
};

/* Layers that share prefix and scheme. */
typedef struct penc_stack {
    penc_attention_names names;
    size_t room;
} penc_stack;

typedef struct penc_stacks {
    penc_stack stack[PENC_MAX_STACKS];
    size_t count;
    int any_end; /* not only weights count, but whatever belongs to a projection */
} penc_stacks;

int penc_attention_name(const penc_attention_names *names, uint32_t layer, const char *part,
                        const char *end, char name[PENC_NAME_BYTES]) {
    int length =
        snprintf(name, PENC_NAME_BYTES, "%s%u.%s%s", names->prefix, (unsigned)layer, part, end);
    return length > 0 && length < PENC_NAME_BYTES;
}

/* The layer's number that ends before name[end] = '.', and the length of the prefix before it; 0 if there is none. */
static size_t penc_match_number(const char *name, size_t end, uint32_t *layer) {
    uint32_t value = 0, unit = 1;
    size_t digits = 0;
    while (digits < end && name[end - digits - 1] >= '0' && name[end - digits - 1] <= '9') {
        if (++digits > 5)
            return 0;
        value += unit * (uint32_t)(name[end - digits] - '0');
        unit *= 10;
    }
    size_t prefix = end - digits;
    if (!digits || value >= PENC_MAX_LAYERS_FOUND || prefix >= PENC_PREFIX_BYTES || !prefix ||
        name[prefix - 1] != '.')
        return 0;
    *layer = value;
    return prefix;
}

size_t penc_attention_name_split(const char *name, const char *part, uint32_t *layer,
                                 const char **end) {
    size_t length = strlen(part);
    for (const char *at = strstr(name, part); at; at = strstr(at + 1, part)) {
        if (at == name || at[-1] != '.' || at[length] != '.')
            continue;
        size_t prefix = penc_match_number(name, (size_t)(at - name) - 1, layer);
        *end = at + length;
        if (prefix)
            return prefix;
    }
    return 0;
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
    made->names.tower = penc_prefix_is_tower(made->names.prefix);
    return made;
}

static posenc_status penc_stack_add(penc_stack *stack, uint32_t layer, posenc_error *error) {
    penc_attention_names *names = &stack->names;
    if (names->count && names->layers[names->count - 1] == layer)
        return POSENC_OK;
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

/* Whether a tensor's name is that of a projection's part: of its weights, or of whatever belongs to it. */
static size_t penc_stacks_match(const penc_stacks *stacks, const char *name, const char *part,
                                uint32_t *layer) {
    const char *end;
    size_t prefix = part ? penc_attention_name_split(name, part, layer, &end) : 0;
    return prefix && (stacks->any_end || strcmp(end, ".weight") == 0) ? prefix : 0;
}

static posenc_status penc_stacks_sort_in(penc_stacks *stacks, const char *name,
                                         posenc_error *error) {
    for (size_t i = 0; i < PENC_SCHEMES; i++) {
        const penc_attention_scheme *scheme = &penc_schemes[i];
        uint32_t layer;
        size_t prefix = penc_stacks_match(stacks, name, scheme->q, &layer);
        if (!prefix && stacks->any_end && scheme->layout == PENC_SEPARATE)
            prefix = penc_stacks_match(stacks, name, scheme->k, &layer);
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
                status = penc_stacks_sort_in(stacks, name, error);
            if (status)
                return status;
        }
    }
    return POSENC_OK;
}

/* Towers last, then the stacks with most layers first, then by their prefixes. */
static int penc_compare_stacks(const void *a, const void *b) {
    const penc_attention_names *x = &((const penc_stack *)a)->names;
    const penc_attention_names *y = &((const penc_stack *)b)->names;
    if (x->tower != y->tower)
        return x->tower - y->tower;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return strcmp(x->prefix, y->prefix);
}

/* Layers ascending, each once. */
static void penc_names_sort(penc_attention_names *names) {
    size_t kept = 0;
    qsort(names->layers, names->count, sizeof *names->layers, penc_compare_layers);
    for (size_t i = 0; i < names->count; i++) {
        if (!kept || names->layers[kept - 1] != names->layers[i])
            names->layers[kept++] = names->layers[i];
    }
    names->count = kept;
}

/* All stacks, the best one first; fails where there is none. */
static posenc_status penc_stacks_find(const penc_tensor_set *set, penc_stacks *stacks,
                                      posenc_error *error) {
    posenc_status status = penc_stacks_fill(set, stacks, error);
    if (!status && !stacks->count) {
        status = penc_fail(error, POSENC_UNSUPPORTED, "tensors",
                           "hold q and k projections under names that are known here");
        penc_fail_file(error, penc_tensor_set_file(set, 0)->input.path);
    }
    for (size_t i = 0; i < stacks->count && !status; i++) {
        penc_names_sort(&stacks->stack[i].names);
        status = penc_names_check_k(set, &stacks->stack[i].names, error);
    }
    if (stacks->count)
        qsort(stacks->stack, stacks->count, sizeof *stacks->stack, penc_compare_stacks);
    return status;
}

/* Hands out the first stacks, `most` at most. */
static posenc_status penc_stacks_take(const penc_tensor_set *set, int any_end, size_t most,
                                      penc_attention_names *names, size_t *count,
                                      posenc_error *error) {
    *count = 0;
    penc_stacks *stacks = calloc(1, sizeof *stacks);
    if (!stacks)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "names", "fit into memory");
    stacks->any_end = any_end;
    posenc_status status = penc_stacks_find(set, stacks, error);
    for (size_t i = 0; i < stacks->count; i++) {
        if (!status && *count < most)
            names[(*count)++] = stacks->stack[i].names;
        else
            free(stacks->stack[i].names.layers);
    }
    free(stacks);
    return status;
}

posenc_status penc_attention_names_find(const penc_tensor_set *set, penc_attention_names *names,
                                        posenc_error *error) {
    size_t count;
    memset(names, 0, sizeof *names);
    return penc_stacks_take(set, 0, 1, names, &count, error);
}

posenc_status penc_attention_stacks_find(const penc_tensor_set *set,
                                         penc_attention_names names[PENC_MAX_STACKS], size_t *count,
                                         posenc_error *error) {
    memset(names, 0, PENC_MAX_STACKS * sizeof *names);
    return penc_stacks_take(set, 1, PENC_MAX_STACKS, names, count, error);
}

void penc_attention_names_free(penc_attention_names *names) {
    free(names->layers);
    memset(names, 0, sizeof *names);
}
