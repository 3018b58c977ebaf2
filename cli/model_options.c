/* --config PATH, --part P and --layer-type T. SPDX-License-Identifier: MIT */
#include "model_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int has_spec(const posenc_layer_type *type) {
    return type->kind == POSENC_ENCODING_ROPE || type->kind == POSENC_ENCODING_UNKNOWN;
}

/* NAME (kind), NAME (kind): of all types, or of those that have a spec. */
static void list_types(const posenc_model *model, int rotary, char *text, size_t capacity) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < posenc_model_layer_type_count(model) && used < capacity; i++) {
        const posenc_layer_type *type = posenc_model_layer_type(model, i);
        if (!rotary || has_spec(type))
            used += (size_t)snprintf(text + used, capacity - used, "%s%s (%s)", used ? ", " : "",
                                     type->name, posenc_encoding_name(type->kind));
    }
}

/* The names of the parts that were read; "" without any. */
static void list_parts(const posenc_model *model, char *text, size_t capacity) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < posenc_model_part_count(model) && used < capacity; i++) {
        const posenc_model_part *part = posenc_model_part_at(model, i);
        if (part->model)
            used += (size_t)snprintf(text + used, capacity - used, "%s%s", used ? ", " : "",
                                     part->name);
    }
}

static int choose_named(const cli_arguments *arguments, const posenc_model *model, const char *name,
                        const posenc_layer_type **type) {
    char list[512];
    *type = posenc_model_layer_type_named(model, name);
    if (*type)
        return CLI_DONE;
    list_types(model, 0, list, sizeof list);
    return cli_fail(arguments, "--layer-type is \"%s\" but must be one of: %s", name, list);
}

static int choose_only(const cli_arguments *arguments, const char *path, const posenc_model *model,
                       const posenc_layer_type **type) {
    char list[512];
    size_t count = 0;
    for (size_t i = 0; i < posenc_model_layer_type_count(model); i++) {
        const posenc_layer_type *one = posenc_model_layer_type(model, i);
        if (has_spec(one)) {
            *type = one;
            count++;
        }
    }
    if (count == 1)
        return CLI_DONE;
    list_types(model, count > 1, list, sizeof list);
    if (count)
        return cli_fail(arguments, "%s has several layer types; choose one with --layer-type: %s",
                        path, list);
    char parts[512];
    list_parts(model, parts, sizeof parts);
    return cli_fail(arguments, "%s has no rotary encoding: %s%s%s", path, list,
                    *parts ? "; --part chooses another part: " : "", parts);
}

static int choose_part(const cli_arguments *arguments, const char *path, const char *name,
                       const posenc_model **model) {
    char list[512];
    const posenc_model_part *part = posenc_model_part_named(*model, name);
    if (part && part->unread)
        return cli_fail(arguments, "the part %s of %s is not read: %s", part->name, path,
                        part->unread);
    list_parts(*model, list, sizeof list);
    if (!part && !*list)
        return cli_fail(arguments, "--part is \"%s\" but %s has no other parts", name, path);
    if (!part)
        return cli_fail(arguments, "--part is \"%s\" but must be one of: %s", name, list);
    *model = part->model;
    return CLI_DONE;
}

int model_type_choose(const cli_arguments *arguments, const char *path, const posenc_model *model,
                      const model_choice *choice, const posenc_layer_type **type) {
    int status = choice->part ? choose_part(arguments, path, choice->part, &model) : CLI_DONE;
    if (status)
        return status;
    return choice->layer_type ? choose_named(arguments, model, choice->layer_type, type)
                              : choose_only(arguments, path, model, type);
}

/* What the file says is not to be changed in passing. */
static int refuse_others(const cli_arguments *arguments, const posenc_layer_type *type) {
    static const char *const names[] = {"head-dim", "rotary-dim", "rotary-start", "base",
                                        "scaling",  "pairing",    "max-positions"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int unknown_pairing =
            type->kind == POSENC_ENCODING_UNKNOWN && strcmp(names[i], "pairing") == 0;
        if (cli_value(arguments, names[i]) && !unknown_pairing)
            return cli_fail(arguments, "--%s cannot stand beside --config, which gives it",
                            names[i]);
    }
    if (type->kind == POSENC_ENCODING_UNKNOWN && !cli_value(arguments, "pairing"))
        return cli_fail(arguments,
                        "the model type of %s is not known: say which channels pair with --pairing",
                        cli_value(arguments, "config"));
    return CLI_DONE;
}

static int take_spec(const cli_arguments *arguments, uint64_t head_dim,
                     const posenc_layer_type *type, posenc_spec *spec) {
    const char *path = cli_value(arguments, "config");
    if (!has_spec(type))
        return cli_fail(arguments, "the layers %s of %s do not rotate: their encoding is %s",
                        type->name, path, posenc_encoding_name(type->kind));
    if (type->invalid)
        return cli_fail(arguments, "%s: no valid spec for the layers %s: %s", path, type->name,
                        type->invalid);
    *spec = type->spec;
    if (type->spec.rotary_start && head_dim == type->spec.rotary_dim) {
        spec->head_dim = spec->rotary_dim; /* latent attention: the rotary part alone */
        spec->rotary_start = 0;
    }
    if (head_dim && head_dim != spec->head_dim)
        return cli_fail(
            arguments,
            "the heads of %s have %zu channels but the array's head_dim axis has %" PRIu64, path,
            spec->head_dim, head_dim);
    return refuse_others(arguments, type);
}

int model_options_get(const cli_arguments *arguments, uint64_t head_dim, posenc_model **model,
                      const posenc_layer_type **type, posenc_spec *spec) {
    const char *path = cli_value(arguments, "config");
    model_choice choice = {cli_value(arguments, "part"), cli_value(arguments, "layer-type")};
    posenc_error error;
    if (posenc_model_open(path, model, &error))
        return cli_fail_error(arguments, path, &error);
    int status = model_type_choose(arguments, path, *model, &choice, type);
    return status ? status : take_spec(arguments, head_dim, *type, spec);
}
