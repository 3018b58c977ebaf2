/* The page of posenc inspect, for people: 80 columns. SPDX-License-Identifier: MIT */
#include "inspect_output.h"
#include "output.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 80 };

/* Words wrapped at WIDTH, every line but the first indented. `at` is the column reached. */
static void put_wrapped(const char *text, int at, int indent) {
    while (*text) {
        text += strspn(text, " ");
        int length = (int)strcspn(text, " ");
        if (!length)
            break;
        if (at > indent && at + 1 + length > WIDTH) {
            printf("\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            putchar(' ');
            at++;
        }
        printf("%.*s", length, text);
        at += length;
        text += length;
    }
    putchar('\n');
}

static void put_line(const char *head, const char *text) {
    printf("  %-20s", head);
    put_wrapped(text, 22, 22);
}

/* 0-3, 5, 7-9 */
static void put_layers(const posenc_layer_type *type) {
    char text[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < type->layer_count && used + 32 < sizeof text;) {
        size_t end = i;
        while (end + 1 < type->layer_count && type->layers[end + 1] == type->layers[end] + 1)
            end++;
        int length = end > i ? snprintf(text + used, sizeof text - used, "%s%u-%u",
                                        used ? ", " : "", type->layers[i], type->layers[end])
                             : snprintf(text + used, sizeof text - used, "%s%u", used ? ", " : "",
                                        type->layers[i]);
        used += (size_t)length;
        i = end + 1;
        if (used + 32 >= sizeof text && i < type->layer_count)
            snprintf(text + used, sizeof text - used, ", ...");
    }
    char head[64];
    snprintf(head, sizeof head, "layers (%zu)", type->layer_count);
    if (type->layer_count)
        put_line(head, text);
}

static void put_pairs(const posenc_spec *spec) {
    size_t start = spec->rotary_start, half = spec->rotary_dim / 2;
    char text[256];
    if (spec->pairing == POSENC_PAIRING_HALF)
        snprintf(text, sizeof text, "half: channels (%zu, %zu), (%zu, %zu) ... (%zu, %zu)", start,
                 start + half, start + 1, start + half + 1, start + half - 1, start + 2 * half - 1);
    else
        snprintf(text, sizeof text, "interleaved: channels (%zu, %zu), (%zu, %zu) ... (%zu, %zu)",
                 start, start + 1, start + 2, start + 3, start + 2 * half - 2,
                 start + 2 * half - 1);
    put_line("pairing", text);
}

static void put_head(const posenc_spec *spec) {
    char text[128];
    if (spec->rotary_dim == spec->head_dim)
        snprintf(text, sizeof text, "%zu channels, all rotate", spec->head_dim);
    else
        snprintf(text, sizeof text, "%zu channels, %zu rotate from channel %zu on", spec->head_dim,
                 spec->rotary_dim, spec->rotary_start);
    put_line("head", text);
    number_text(spec->base, text);
    put_line("base", text);
    put_line("scaling", posenc_scaling_name(spec->scaling->type));
}

static void put_axes(const posenc_axes *axes) {
    static const char *const orders[] = {"chunked", "interleaved", "alternating", "ernie",
                                         "listed"};
    char text[256];
    int used =
        snprintf(text, sizeof text, "%zu, %s, pairs of each:", axes->count, orders[axes->order]);
    for (size_t i = 0; i < axes->count; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, " %zu", axes->sections[i]);
    put_line("axes", text);
}

static void put_facts(const posenc_layer_type *type, const posenc_frequencies *frequencies,
                      const posenc_layer_facts *facts) {
    char text[256];
    put_head(posenc_frequencies_spec(frequencies));
    put_pairs(posenc_frequencies_spec(frequencies));
    if (type->output_half)
        put_line("", "the rotated channels are written in halves: only q . k is kept");
    if (type->conjugate)
        put_line("", "turned by the negative angle");
    if (type->spec.axes)
        put_axes(type->spec.axes);
    number_text(posenc_frequencies_attention_factor(frequencies, POSENC_MODE_EXACT), text);
    put_line("attention factor", text);
    if (type->softmax_factor) {
        number_text(posenc_frequencies_softmax_factor(frequencies), text);
        put_line("softmax factor", text);
    }
    snprintf(text, sizeof text, "%.6g to %.6g positions", facts->shortest_wavelength,
             facts->longest_wavelength);
    put_line("wavelengths", text);
    if (facts->trained_positions) {
        snprintf(text, sizeof text,
                 "%zu of %zu pairs complete no turn within %" PRIu64 " positions",
                 facts->pairs_below_one_turn, facts->pairs, facts->trained_positions);
        put_line("slow pairs", text);
    }
    if (facts->pairs_still) {
        snprintf(text, sizeof text, "%zu of %zu pairs do not turn", facts->pairs_still,
                 facts->pairs);
        put_line("still pairs", text);
    }
    if (facts->float32_visible_in_f16 >= 0) {
        snprintf(text, sizeof text, "differ from exact ones in float16 from position %" PRId64,
                 facts->float32_visible_in_f16);
        put_line("float32 angles", text);
    }
    if (facts->float32_visible_in_bf16 >= 0) {
        snprintf(text, sizeof text, "and in bfloat16 from position %" PRId64,
                 facts->float32_visible_in_bf16);
        put_line("", text);
    }
}

/* Name, value, where it is from: on one line if it fits, else the place on a line of its own. */
static void put_values(const posenc_layer_type *type) {
    for (size_t i = 0; i < type->value_count; i++) {
        const posenc_model_value *value = &type->values[i];
        const char *source = posenc_source_name(value->source);
        int length = printf("  %-33s%-13.30s%s %s", value->name, value->text,
                            strlen(value->text) > 30 ? "..." : "", source);
        size_t place = strlen(value->place);
        if ((size_t)length + 2 + place <= WIDTH)
            printf(": %s\n", value->place);
        else
            printf("\n      %s\n", value->place);
    }
}

static void put_type(const posenc_layer_type *type, int alone, int with_sources) {
    const char *kind = posenc_encoding_name(type->kind);
    if (alone)
        printf("%s\n", kind);
    else
        printf("%s: %s\n", type->name, kind);
    put_layers(type);
    posenc_layer_facts facts;
    posenc_frequencies *frequencies = inspect_frequencies(type, &facts);
    if (frequencies)
        put_facts(type, frequencies, &facts);
    if (type->invalid)
        put_line("no valid spec", type->invalid);
    if (type->value_count && with_sources) {
        printf("  where it is from:\n");
        put_values(type);
    }
    posenc_frequencies_destroy(frequencies);
    putchar('\n');
}

static void put_head_line(const posenc_model *model) {
    const char *rule = posenc_model_rule(model), *type = posenc_model_type(model);
    printf("%s %s", strcmp(posenc_model_format(model), "gguf") == 0 ? "architecture" : "model type",
           *type ? type : "not given");
    if (posenc_model_layer_count(model))
        printf(", %zu layers", posenc_model_layer_count(model));
    if (!rule)
        printf("; no rule knows it");
    else if (strcmp(rule, type) != 0)
        printf("; rules of %s", rule);
    printf("\n");
    if (posenc_model_remark(model))
        put_wrapped(posenc_model_remark(model), 0, 0);
    printf("\n");
}

static void put_types(const posenc_model *model, int with_sources) {
    size_t types = posenc_model_layer_type_count(model);
    for (size_t i = 0; i < types; i++)
        put_type(posenc_model_layer_type(model, i), types == 1, with_sources);
}

static void put_warning(const posenc_model_warning *warning, size_t types) {
    printf("warning %s", warning->code);
    if (warning->layer_type && types > 1)
        printf(" (%s)", warning->layer_type);
    printf("\n  ");
    put_wrapped(warning->message, 2, 2);
    printf("  ");
    put_wrapped(warning->fix, 2, 2);
}

static void put_part(const posenc_model_part *part) {
    if (part->model) {
        printf("%s: ", part->name);
        put_head_line(part->model);
        put_types(part->model, 0);
    } else {
        int at = printf("%s: not read:", part->name);
        put_wrapped(part->unread, at, 2);
        putchar('\n');
    }
}

void inspect_print_page(const char *path, const posenc_model *model) {
    printf("%s\n", path);
    put_head_line(model);
    put_types(model, 1);
    for (size_t i = 0; i < posenc_model_part_count(model); i++)
        put_part(posenc_model_part_at(model, i));
    for (size_t i = 0; i < posenc_model_warning_count(model); i++)
        put_warning(posenc_model_warning_at(model, i), posenc_model_layer_type_count(model));
}
