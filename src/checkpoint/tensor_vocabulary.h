/* One tensor, three names: those of transformers, GGUF and Meta (llama2.c). SPDX-License-Identifier: MIT */
#ifndef PENC_TENSOR_VOCABULARY_H
#define PENC_TENSOR_VOCABULARY_H

#include "formats/entry_list.h"

enum { PENC_VOCABULARIES = 3 };

/* Writes the name that the tensor has in vocabulary `to` (0, 1, 2). Returns 0 if the name is in none, or is in that one
 * already. */
int penc_tensor_name_in(const char *name, int to, char other[PENC_NAME_BYTES]);

#endif
