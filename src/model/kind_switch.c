/* Keys that change the kind of encoding. SPDX-License-Identifier: MIT */
#include "model/kind_switch.h"

#include <string.h>

static posenc_encoding_kind penc_kind_of_word(const char *word, size_t length) {
#define PENC_KIND(name, number, text)                                                              \
    if (length == strlen(text) && memcmp(word, text, length) == 0)                                 \
        return POSENC_ENCODING_##name;
    POSENC_ENCODING_LIST(PENC_KIND)
#undef PENC_KIND
    return POSENC_ENCODING_UNKNOWN;
}

/* Whether the file's value is the text: true, false, a number or a word; "*" is anything. */
static int penc_value_is(json_object *value, const char *text, size_t length) {
    if (!value)
        return 0;
    if (length == 1 && *text == '*')
        return 1;
    const char *own = json_object_get_string(value);
    return own && strlen(own) == length && memcmp(own, text, length) == 0;
}

/* KIND[/PAIRING[/AXES]]. */
static posenc_encoding_kind penc_take_switch(penc_config *config, const char *text, size_t length) {
    size_t kind = strcspn(text, "/ ");
    if (kind < length) {
        const char *pairing = text + kind + 1;
        size_t end = strcspn(pairing, "/ ");
        config->rule.pairing = penc_arena_copy(config->arena, pairing, end);
        if (pairing[end] == '/')
            config->rule.axes =
                penc_arena_copy(config->arena, pairing + end + 1, strcspn(pairing + end + 1, " "));
    }
    return penc_kind_of_word(text, kind < length ? kind : length);
}

posenc_encoding_kind penc_kind_of(penc_config *config) {
    const char *list = config->rule.when;
    size_t length;
    for (const char *word; (word = penc_next_word(&list, &length)) != NULL;) {
        const char *equals = memchr(word, '=', length), *colon = memchr(word, ':', length);
        char key[64];
        if (!equals || !colon || (size_t)(equals - word) >= sizeof key)
            continue;
        memcpy(key, word, (size_t)(equals - word));
        key[equals - word] = '\0';
        penc_found found = penc_config_find_in_file(config, key);
        if (penc_value_is(found.value, equals + 1, (size_t)(colon - equals) - 1))
            return penc_take_switch(config, colon + 1, length - (size_t)(colon + 1 - word));
    }
    return penc_kind_of_word(config->rule.kind, strlen(config->rule.kind));
}
