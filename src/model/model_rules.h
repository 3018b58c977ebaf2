/* The table of model rules (data/models.tsv): what files do not say. SPDX-License-Identifier: MIT */
#ifndef PENC_MODEL_RULES_H
#define PENC_MODEL_RULES_H

#include "base/arena.h"

#include <json-c/json.h>

/* One row; docs/models.md explains the columns. Texts are "-" where there is nothing to say. */
typedef struct penc_rule {
    const char *format, *name, *kind, *when, *pairing, *axes, *rotary, *cycle, *bases, *nope,
        *rules, *stored, *norm, *bias, *gguf, *part, *defaults, *note;
} penc_rule;

/* Where no row fits: everything is to be found in the file. */
extern const penc_rule penc_no_rule;

/* The row of that format ("config", "gguf") and name into *rule, its texts in `arena`. Returns 0 if there is
 * none. */
int penc_rule_find(penc_arena *arena, const char *format, const char *name, penc_rule *rule);

/* The row whose name is that of a class such as "MiniCPM3ForCausalLM", upper case and underscores aside. */
int penc_rule_find_class(penc_arena *arena, const char *class_name, penc_rule *rule);

/* Whether `list`, words with blanks between, has `word`. */
int penc_word_in(const char *list, const char *word);

/* Goes through a list of words: gives the next one and its length and moves *list behind it; NULL at the
 * end, and at once where the list is "-". */
const char *penc_next_word(const char **list, size_t *length);

#endif
