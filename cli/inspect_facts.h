/* What follows from a layer type's spec. SPDX-License-Identifier: MIT */
#ifndef CLI_INSPECT_FACTS_H
#define CLI_INSPECT_FACTS_H

#include "posenc/model.h"

/* The frequencies of a rotary layer type at the model's own length, and what they mean. */
typedef struct inspect_facts {
    posenc_frequencies *frequencies; /* NULL: there is no valid spec */
    uint64_t length;                 /* positions of the model; 0: not known */
    uint64_t trained;                /* before the extension: original length, else `length` */
    double shortest, longest;        /* wavelengths of the pairs that turn, in positions */
    size_t still;                    /* pairs with frequency 0 */
    size_t unfinished;               /* pairs that turn, but less than once within `trained` */
    /* The first position where an angle formed in float32 gives a cos or sin that is off by more than half
     * a unit of numbers just below 1: -1: none up to INSPECT_LAST_POSITION. */
    int64_t first_f16, first_bf16;
} inspect_facts;

enum { INSPECT_LAST_POSITION = 1 << 18 };

inspect_facts inspect_facts_of(const posenc_layer_type *type);
void inspect_facts_free(inspect_facts *facts);

#endif
