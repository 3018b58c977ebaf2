/* What a model's own files say against moving its rows, and who will read the result. SPDX-License-Identifier: MIT */
#include "checkpoint/conversion.h"
#include "model/model_rules.h"

#include <string.h>

/* ---- Refusals ---- */

static posenc_status penc_check_type(posenc_conversion *conversion, const posenc_layer_type *type,
                                     const char *name, posenc_error *error) {
    if (type->invalid)
        return penc_conversion_refuse(
            conversion, "configuration",
            "say how its heads rotate: it contradicts itself, as inspect tells (unless forced)",
            name, error);
    if (type->spec.axes)
        return penc_conversion_refuse(
            conversion, "axes",
            "be one: programs that give a token several positions (M-RoPE, rows and columns) have "
            "sections for one pairing only (unless forced)",
            name, error);
    return POSENC_OK;
}

/* The row of the table that the model was read by; 0 if there is none. */
static int penc_rule_of(posenc_conversion *conversion, const posenc_model *model, penc_rule *rule) {
    const char *name = model ? posenc_model_rule(model) : NULL;
    return name && penc_rule_find(&conversion->arena, posenc_model_format(model), name, rule);
}

static posenc_status penc_check_rule(posenc_conversion *conversion, const posenc_model *model,
                                     posenc_error *error) {
    penc_rule rule;
    if (!penc_rule_of(conversion, model, &rule) || !penc_word_in(rule.rules, "values-turn"))
        return POSENC_OK;
    return penc_conversion_refuse(
        conversion, "values",
        "not be rotated: their rows and the output's columns would have to move too (unless "
        "forced)",
        rule.name, error);
}

/* That no layer rotates, and why. */
static posenc_status penc_check_kinds(posenc_conversion *conversion, const posenc_model *model,
                                      posenc_error *error) {
    size_t count = posenc_model_layer_type_count(model);
    const char *kind = count ? posenc_encoding_name(posenc_model_layer_type(model, 0)->kind) : "";
    for (size_t i = 0; i < count; i++) {
        const posenc_layer_type *type = posenc_model_layer_type(model, i);
        if (type->kind == POSENC_ENCODING_ROPE)
            return POSENC_OK;
        if (type->kind == POSENC_ENCODING_UNKNOWN &&
            (conversion->options.shape.rotary_dim || conversion->facts.recorded))
            return POSENC_OK;
        if (type->kind == POSENC_ENCODING_UNKNOWN)
            return penc_conversion_refuse(
                conversion, "model_type",
                "be one whose rotation is known; else say which channels rotate: rotary_dim "
                "(unless forced)",
                posenc_model_type(model), error);
    }
    return penc_conversion_refuse(
        conversion, kind,
        "be a rotary encoding: others have no pairs whose rows could move (unless forced)",
        posenc_model_type(model), error);
}

posenc_status penc_conversion_check_model(posenc_conversion *conversion, const posenc_model *model,
                                          posenc_error *error) {
    if (!model)
        return POSENC_OK;
    posenc_status status = penc_check_kinds(conversion, model, error);
    for (size_t i = 0; i < posenc_model_layer_type_count(model) && !status; i++) {
        const posenc_layer_type *type = posenc_model_layer_type(model, i);
        if (type->kind == POSENC_ENCODING_ROPE)
            status = penc_check_type(conversion, type, posenc_model_type(model), error);
    }
    return status ? status : penc_check_rule(conversion, model, error);
}

/* ---- Readers ---- */

/* `who` names the programs, up to their verb. */
static void penc_say_reader(posenc_conversion *conversion, posenc_detected turns, const char *who) {
    int right = (turns == POSENC_DETECTED_HALF) == (conversion->facts.to == POSENC_PAIRING_HALF);
    const char *text =
        who ? penc_arena_print(&conversion->arena, "%s %s pairs: they read the result %s", who,
                               posenc_detected_name(turns), right ? "rightly" : "WRONGLY")
            : NULL;
    penc_conversion_remark(conversion, right ? "reads-rightly" : "reads-wrongly", !right, text);
}

/* Converters to GGUF go by the name too. */
static void penc_say_converters(posenc_conversion *conversion, const penc_rule *rule) {
    penc_rule gguf;
    const char *who;
    if (strcmp(rule->gguf, "-") == 0 ||
        !penc_rule_find(&conversion->arena, "gguf", rule->gguf, &gguf))
        return;
    who = penc_arena_print(&conversion->arena,
                           strcmp(gguf.stored, "permuted") == 0
                               ? "converters to GGUF (architecture %s) permute the rows, which "
                                 "they take for"
                               : "converters to GGUF (architecture %s) keep the rows, which they "
                                 "take for",
                           rule->gguf);
    penc_say_reader(conversion, conversion->facts.implied, who);
}

void penc_conversion_name_readers(posenc_conversion *conversion, const posenc_model *model) {
    const posenc_conversion_facts *facts = &conversion->facts;
    const char *to = posenc_pairing_name(facts->to), *who;
    penc_rule rule;
    if (strcmp(facts->format, "llama2.c") == 0) {
        penc_say_reader(conversion, POSENC_DETECTED_INTERLEAVED,
                        "llama2.c's run.c and what follows it turn");
    } else if (facts->implied) {
        who = penc_arena_print(&conversion->arena,
                               strcmp(facts->format, "GGUF") == 0
                                   ? "programs that go by the architecture %s (llama.cpp and what "
                                     "follows it) turn"
                                   : "programs that go by the model_type %s (transformers and what "
                                     "follows it) turn",
                               facts->model_type);
        penc_say_reader(conversion, facts->implied, who);
        if (penc_rule_of(conversion, model, &rule) && strcmp(rule.format, "config") == 0)
            penc_say_converters(conversion, &rule);
    } else {
        penc_conversion_remark(conversion, "readers-unknown", 1,
                               "nothing says by name which pairs programs turn: whoever reads the "
                               "result must be told");
    }
    who = penc_arena_print(&conversion->arena,
                           "programs that are told which pairs to turn read the result rightly "
                           "with %s",
                           to);
    penc_conversion_remark(conversion, "reads-when-told", 0, who);
}
