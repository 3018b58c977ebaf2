/* Which layers share an encoding. SPDX-License-Identifier: MIT */
#include "model/layer_types.h"

#include "base/fail.h"
#include "model/layer_names.h"
#include "model/rope_block.h"

#include <stdio.h>
#include <string.h>

/* Layers differ by name only where the rule or a nested block says that names matter. */
typedef struct penc_grouping {
    posenc_model *model;
    posenc_encoding_kind kind;
    int names_matter;      /* parameters by layer type */
    const char *nope;      /* the rule's column without its condition */
    json_object *switches; /* no_rope_layers and the like: one number per layer; NULL: none */
    uint64_t interval;     /* every so-manieth layer does not rotate; 0: none */
    json_object *bases;    /* one base per layer, 0: none; NULL: no such list */
} penc_grouping;

/* Numbers per layer, such as {"no_rope_layers": [1, 1, 1, 0, ...]}. Returns 0 if there are none. */
static int penc_read_switches(penc_grouping *grouping, const char *key) {
    const penc_config *config = &grouping->model->config;
    json_object *list = penc_config_find_in_file(config, key).value;
    if (penc_json_is(list, json_type_array) && json_object_array_length(list)) {
        if (strcmp(key, "layer_rope_theta") == 0)
            grouping->bases = list;
        else
            grouping->switches = list;
        return 1;
    }
    if (strcmp(key, "no_rope_layers") != 0)
        return 0;
    if (penc_config_size(config, "no_rope_layer_interval", &grouping->interval, NULL))
        grouping->interval = 0;
    return 1;
}

/* "NAME", "NAME?KEY" (only where the file or the rule has that key), "@KEY" (a list per layer) or "@KEY,NAME" (the
 * layers of that name where the list is missing), "every:N". */
static void penc_read_nope(penc_grouping *grouping) {
    const penc_config *config = &grouping->model->config;
    const char *nope = config->rule.nope, *mark = strchr(nope, '?');
    grouping->nope = "-";
    if (*nope == '@') {
        const char *comma = strchr(nope, ',');
        size_t length = comma ? (size_t)(comma - nope) - 1 : strlen(nope) - 1;
        const char *key = penc_arena_copy(config->arena, nope + 1, length);
        if (key && !penc_read_switches(grouping, key) && comma)
            grouping->nope = comma + 1;
    }
    if (strncmp(nope, "every:", 6) == 0)
        grouping->interval = (uint64_t)(nope[6] - '0');
    else if (!mark && *nope != '@')
        grouping->nope = nope;
    else if (mark && (penc_json_has(config->part, mark + 1)
                          ? penc_json_get(config->part, mark + 1) != NULL
                          : penc_config_find(config, mark + 1).value != NULL))
        grouping->nope = penc_arena_copy(config->arena, nope, (size_t)(mark - nope));
}

/* 1, 0, or the base of the layer by the list. */
static double penc_rotates(const penc_grouping *grouping, size_t layer) {
    json_object *list = grouping->bases ? grouping->bases : grouping->switches;
    if (list) {
        json_object *value =
            layer < json_object_array_length(list) ? json_object_array_get_idx(list, layer) : NULL;
        return grouping->bases
                   ? json_object_get_double(value)
                   : json_object_get_int64(value) != 0 || json_object_get_boolean(value);
    }
    if (grouping->interval)
        return (layer + 1) % grouping->interval != 0;
    const char *name = grouping->model->layer_names ? grouping->model->layer_names[layer] : "";
    return !penc_word_in(grouping->nope, name);
}

/* What tells one encoding from another. */
typedef struct penc_group_key {
    const char *name;
    posenc_encoding_kind kind;
    double base; /* 0: not by layer */
} penc_group_key;

static penc_group_key penc_key_of(const penc_grouping *grouping, size_t layer) {
    const posenc_model *model = grouping->model;
    const char *name = model->layer_names ? model->layer_names[layer] : NULL;
    penc_group_key key = {NULL, grouping->kind, 0.0};
    if (name && penc_layer_has_no_attention(name)) {
        key.kind = POSENC_ENCODING_NONE;
        key.name = name;
        return key;
    }
    double rotates = penc_rotates(grouping, layer);
    if (grouping->kind == POSENC_ENCODING_ROPE && rotates == 0.0)
        key.kind = POSENC_ENCODING_NONE;
    else if (grouping->bases)
        key.base = rotates;
    if (grouping->names_matter || (name && strcmp(grouping->nope, "-") != 0))
        key.name = name;
    return key;
}

static int penc_same_key(const penc_group_key *a, const penc_group_key *b) {
    return a->kind == b->kind && a->base == b->base && !a->name == !b->name &&
           (!a->name || strcmp(a->name, b->name) == 0);
}

/* Whether every layer of the type is called the same by the file; the name then. */
static const char *penc_common_name(const posenc_model *model, const penc_layer_type *type) {
    const posenc_layer_type *t = &type->type;
    if (!model->layer_names || !t->layer_count)
        return NULL;
    const char *name = model->layer_names[t->layers[0]];
    for (size_t i = 1; i < t->layer_count; i++) {
        if (strcmp(model->layer_names[t->layers[i]], name) != 0)
            return NULL;
    }
    return name;
}

static int penc_name_is_taken(const posenc_model *model, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(model->types[i].type.name, name) == 0)
            return 1;
    }
    return 0;
}

/* A single type keeps its name where parameters are looked up by it. */
static void penc_name_types(const penc_grouping *grouping, const penc_group_key *keys) {
    posenc_model *model = grouping->model;
    if (model->type_count == 1) {
        int named = grouping->names_matter && keys[0].name;
        model->types[0].type.name = named ? keys[0].name : "all";
        return;
    }
    for (size_t i = 0; i < model->type_count; i++) {
        const char *name = keys[i].name ? keys[i].name : penc_common_name(model, &model->types[i]);
        if (!name)
            name = keys[i].kind == POSENC_ENCODING_NONE ? "nope" : "attention";
        if (penc_name_is_taken(model, i, name))
            name =
                penc_arena_print(&model->arena, "%s_%s", name, posenc_encoding_name(keys[i].kind));
        if (keys[i].base != 0.0)
            name = penc_arena_print(&model->arena, "theta_%.17g", keys[i].base);
        model->types[i].type.name = name ? name : "";
    }
}

static posenc_status penc_group(const penc_grouping *grouping) {
    posenc_model *model = grouping->model;
    penc_group_key keys[PENC_MAX_LAYER_TYPES];
    uint32_t *lists[PENC_MAX_LAYER_TYPES];
    size_t layers = model->layer_count ? model->layer_count : 1, count = 0;
    for (size_t layer = 0; layer < layers; layer++) {
        penc_group_key key = model->layer_count ? penc_key_of(grouping, layer)
                                                : (penc_group_key){NULL, grouping->kind, 0.0};
        size_t i = 0;
        while (i < count && !penc_same_key(&keys[i], &key))
            i++;
        if (i == PENC_MAX_LAYER_TYPES)
            return penc_fail_size(model->config.error, "number of layer types", i + 1,
                                  "be at most 64");
        if (i == count) {
            penc_layer_type *type = &model->types[i];
            lists[i] = penc_arena_take(&model->arena, layers, sizeof *lists[i]);
            if (!lists[i])
                return penc_fail(model->config.error, POSENC_OUT_OF_MEMORY, "model",
                                 "fit into memory");
            type->type.kind = key.kind;
            type->type.layers = lists[i];
            keys[count++] = key;
        }
        if (model->layer_count)
            lists[i][model->types[i].type.layer_count++] = (uint32_t)layer;
    }
    model->type_count = count;
    penc_name_types(grouping, keys);
    for (size_t i = 0; i < count; i++) {
        if (keys[i].base != 0.0)
            penc_add_number(&model->arena, &model->types[i], "rope_theta", keys[i].base,
                            POSENC_SOURCE_FILE, "layer_rope_theta");
    }
    return POSENC_OK;
}

static int penc_parameters_differ_by_name(const posenc_model *model) {
    const penc_config *config = &model->config;
    const char *place;
    json_object *block = penc_rope_block_given(config, &place);
    json_object *implied = penc_json_get(config->implied, "rope_parameters");
    int nested = model->layer_names &&
                 (penc_rope_block_is_nested(block, model->layer_names, model->layer_count) ||
                  penc_rope_block_is_nested(implied, model->layer_names, model->layer_count));
    return nested || (model->layer_names && strcmp(config->rule.bases, "-") != 0);
}

posenc_status penc_layer_types_make(posenc_model *model, posenc_encoding_kind kind) {
    penc_grouping grouping = {.model = model, .kind = kind, .nope = "-"};
    uint64_t layers;
    posenc_status status = penc_config_size(&model->config, "num_hidden_layers", &layers, NULL);
    if (!status && layers > PENC_MAX_LAYERS)
        status =
            penc_fail_size(model->config.error, "num_hidden_layers", layers, "be at most 16384");
    if (status)
        return status;
    model->layer_count = (size_t)layers;
    model->types = penc_arena_take(&model->arena, PENC_MAX_LAYER_TYPES, sizeof *model->types);
    if (!model->types)
        return penc_fail(model->config.error, POSENC_OUT_OF_MEMORY, "model", "fit into memory");
    penc_layer_names_make(model);
    if (kind == POSENC_ENCODING_ROPE || kind == POSENC_ENCODING_UNKNOWN)
        grouping.names_matter = penc_parameters_differ_by_name(model);
    penc_read_nope(&grouping);
    return penc_group(&grouping);
}
