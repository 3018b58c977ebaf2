/* The name of every layer: a list of the file, or a pattern of the rule. SPDX-License-Identifier: MIT */
#include "model/layer_names.h"

#include <stdlib.h>
#include <string.h>

int penc_layer_has_no_attention(const char *name) {
    static const char *const names[] = {
        "linear_attention", "mamba", "mamba2", "conv",      "recurrent",  "mlp",     "moe", "rnn",
        "linear",           "kda",   "gdn",    "lightning", "short_conv", "moe_mlp", "ssm", "no_op",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0)
            return 1;
    }
    return 0;
}

/* The words that the letters of a pattern stand for. */
static const char *penc_letter_word(char letter) {
    switch (letter) {
    case 'F':
    case 'G':
        return "full_attention";
    case 'S':
        return "sliding_attention";
    case 'L':
        return "linear_attention";
    case 'C':
        return "chunked_attention";
    case 'H':
        return "heavily_compressed_attention";
    case 'K':
        return "compressed_sparse_attention";
    case 'I':
        return "indexed_attention";
    case 'V':
        return "conv";
    default:
        return "attention";
    }
}

/* A list of texts; shorter lists are repeated (RecurrentGemma's block_types are a period). */
static int penc_names_of_list(posenc_model *model, json_object *list) {
    size_t count = json_object_array_length(list);
    for (size_t i = 0; count && i < model->layer_count; i++) {
        json_object *word = json_object_array_get_idx(list, i % count);
        if (!penc_json_is(word, json_type_string))
            return 0;
        const char *text = json_object_get_string(word);
        model->layer_names[i] = penc_arena_copy(&model->arena, text, strlen(text));
    }
    return count > 0;
}

/* A list of numbers: the layers named in it are `in`, the others `out`. */
static int penc_names_of_members(posenc_model *model, json_object *list, const char *in,
                                 const char *out) {
    for (size_t i = 0; i < model->layer_count; i++)
        model->layer_names[i] = out;
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        int64_t layer = json_object_get_int64(json_object_array_get_idx(list, i));
        if (layer >= 0 && (uint64_t)layer < model->layer_count)
            model->layer_names[layer] = in;
    }
    return 1;
}

/* One code for every layer: what 0 and what any other number means. DeepSeek-V4 has a third. */
static int penc_names_of_codes(posenc_model *model, json_object *list, const char *const *words) {
    size_t count = json_object_array_length(list);
    for (size_t i = 0; count && i < model->layer_count; i++) {
        int64_t code = json_object_get_int64(json_object_array_get_idx(list, i % count));
        model->layer_names[i] = words[code == 0 ? 0 : code == 4 ? 2 : 1];
    }
    return count > 0;
}

/* Lists of the file; of those that name layers by number also the rule's. */
static int penc_names_of_lists(posenc_model *model) {
    const penc_config *config = &model->config;
    static const char *const texts[] = {"layer_types", "block_types"};
    static const char *const members[][3] = {
        {"attn_layer_indices", "full_attention", "linear_attention"},
        {"full_attn_idxs", "full_attention", "conv"},
        {"linear_attn_config.full_attn_layers", "full_attention", "linear_attention"},
        {"hybrid_layer_ids", "hybrid", "linear_attention"},
        {"local_layer_ids", "hybrid_sliding", "hybrid"},
        {"rope_scaling_layers", "scaled", "unscaled"},
        {"cross_attention_layers", "cross_attention", "self_attention"},
    };
    static const char *const codes[][4] = {
        {"attn_type_list", "linear_attention", "full_attention", "full_attention"},
        {"hybrid_layer_pattern", "full_attention", "sliding_attention", "sliding_attention"},
        {"compress_ratios", "sliding_attention", "heavily_compressed_attention",
         "compressed_sparse_attention"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_object *list = penc_config_find_in_file(config, texts[i]).value;
        if (penc_json_is(list, json_type_array) && penc_names_of_list(model, list))
            return 1;
    }
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_object *list = penc_config_find(config, members[i][0]).value;
        if (penc_json_is(list, json_type_array))
            return penc_names_of_members(model, list, members[i][1], members[i][2]);
    }
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        json_object *list = penc_config_find_in_file(config, codes[i][0]).value;
        if (penc_json_is(list, json_type_array) && penc_names_of_codes(model, list, codes[i] + 1))
            return 1;
    }
    return 0;
}

/* A pattern "[PREFIX:]CYCLE[|LAST][@KEY]"; "-CYCLE" counts from the last layer. The key's number replaces the
 * length of the cycle, its text ("LLLG": local, global) the cycle itself. */
typedef struct penc_cycle {
    const char *prefix, *letters;
    size_t prefix_length, length, period; /* period: with the odd one at the end or the beginning */
    char last;
    int from_end;
    const char *text; /* the key's own letters */
} penc_cycle;

static void penc_read_period(const penc_config *config, const char *key, penc_cycle *cycle) {
    penc_found found = penc_config_find(config, key);
    double number;
    int in_string = 0;
    if (penc_json_is(found.value, json_type_string) &&
        !penc_json_number(found.value, &number, &in_string)) {
        cycle->text = json_object_get_string(found.value);
        cycle->period = strlen(cycle->text);
    } else if (found.value && penc_json_number(found.value, &number, &in_string) && number >= 1.0 &&
               number <= (double)PENC_MAX_LAYERS) {
        cycle->period = (size_t)number;
    }
}

static penc_cycle penc_read_cycle(const penc_config *config) {
    const char *text = config->rule.cycle, *colon = strchr(text, ':');
    penc_cycle cycle = {0};
    if (*text == '-' && text[1]) {
        cycle.from_end = 1;
        text++;
    }
    if (colon) {
        cycle.prefix = text;
        cycle.prefix_length = (size_t)(colon - text);
        text = colon + 1;
    }
    cycle.letters = text;
    cycle.length = cycle.period = strcspn(text, "|@-");
    const char *last = strchr(text, '|'), *key = strchr(text, '@');
    if (last)
        cycle.last = last[1];
    if (key)
        penc_read_period(config, key + 1, &cycle);
    return cycle;
}

static char penc_cycle_letter(const penc_cycle *cycle, size_t layer, size_t layers) {
    if (layer < cycle->prefix_length)
        return cycle->prefix[layer];
    if (cycle->last && layer + 1 == layers)
        return cycle->last;
    size_t period = cycle->period;
    size_t at = cycle->from_end ? period - 1 - (layers - 1 - layer) % period : layer % period;
    if (cycle->text)
        return cycle->text[at] == 'L' ? 'S' : 'F';
    if (period == cycle->length)
        return cycle->letters[at];
    /* The one that differs keeps its end of the cycle. */
    int odd_first = cycle->letters[0] != cycle->letters[1];
    int odd = odd_first ? at == 0 : at + 1 == period;
    return odd ? cycle->letters[odd_first ? 0 : cycle->length - 1]
               : cycle->letters[odd_first ? 1 : 0];
}

static int penc_names_of_cycle(posenc_model *model) {
    penc_cycle cycle = penc_read_cycle(&model->config);
    if (!cycle.length || !cycle.period)
        return 0;
    for (size_t i = 0; i < model->layer_count; i++)
        model->layer_names[i] = penc_letter_word(penc_cycle_letter(&cycle, i, model->layer_count));
    return 1;
}

/* All layers are of the first type that has parameters of its own. */
static int penc_names_of_bases(posenc_model *model) {
    const char *list = model->config.rule.bases;
    size_t length;
    if (*list == '@' || strcmp(list, "-") == 0)
        return 0;
    const char *word = penc_next_word(&list, &length), *key = memchr(word, '=', length);
    const char *name = penc_arena_copy(&model->arena, word, key ? (size_t)(key - word) : length);
    for (size_t i = 0; name && i < model->layer_count; i++)
        model->layer_names[i] = name;
    return name != NULL;
}

int penc_layer_names_make(posenc_model *model) {
    model->layer_names =
        penc_arena_take(&model->arena, model->layer_count, sizeof *model->layer_names);
    if (!model->layer_names || !model->layer_count)
        return 0;
    if (penc_names_of_lists(model) || penc_names_of_cycle(model) || penc_names_of_bases(model))
        return 1;
    model->layer_names = NULL;
    return 0;
}
