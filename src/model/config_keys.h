/* Reading a configuration's keys under all their names. SPDX-License-Identifier: MIT */
#ifndef PENC_CONFIG_KEYS_H
#define PENC_CONFIG_KEYS_H

#include "model/json_value.h"
#include "model/model_rules.h"
#include "posenc/model.h"

/* What is known of a model's file while it is read. */
typedef struct penc_config {
    penc_arena *arena;
    json_object *root;    /* the whole file */
    json_object *part;    /* the object that describes the language model; `root` or inside it */
    json_object *origin;  /* GGUF: what a key is called in the file; NULL: as it stands */
    const char *prefix;   /* how to get there: "" or "text_config." */
    json_object *implied; /* defaults of the rule, in the file's own spelling */
    penc_rule rule;
    const char *block_in_string; /* the key whose object was written as a text; NULL: none */
    int known;                   /* 0: no rule fits */
    const char *model_type;
    posenc_error *error;
} penc_config;

/* A value that was looked for. */
typedef struct penc_found {
    json_object *value; /* NULL: nowhere, or null */
    const char *key;    /* the spelling that had it */
    posenc_source source;
    const char *place; /* with the path, for people */
} penc_found;

/* The key under its name and its other spellings: in the file's part, then in the rule's defaults. A key with
 * dots goes into nested objects. */
penc_found penc_config_find(const penc_config *config, const char *key);

/* The same in the file only. */
penc_found penc_config_find_in_file(const penc_config *config, const char *key);

/* Numbers: 0 where the key is nowhere; a key of another type or out of range (whole numbers up to 2^40 for
 * sizes) is an error. `found` may be NULL. */
posenc_status penc_config_size(const penc_config *config, const char *key, uint64_t *size,
                               penc_found *found);
posenc_status penc_config_real(const penc_config *config, const char *key, double *real,
                               penc_found *found);

/* What a key is called in the file, for people. `path` is the object that holds it ("": the part). */
const char *penc_config_place(const penc_config *config, const char *path, const char *key);

/* The spellings of a key, the first one its name; a list of one where there are no others. Ends with NULL. */
const char *const *penc_key_spellings(const char *key);

#endif
