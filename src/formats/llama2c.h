/* Model files of llama2.c: 7 integers, then float32 arrays in a fixed order; no magic, so that a file is recognised by
 * its size alone. Tensors have Meta's names, as llama2.c itself was exported from them: tok_embeddings.weight,
 * layers.N.attention.wq.weight (and wk, wv, wo), layers.N.attention_norm.weight, layers.N.ffn_norm.weight,
 * layers.N.feed_forward.w1.weight (and w2, w3), norm.weight, freq_cis_real, freq_cis_imag, output.weight (where it is
 * not the embedding).
 *
 * Source: karpathy/llama2.c, run.c and export.py, version 0. SPDX-License-Identifier: MIT */
#ifndef PENC_LLAMA2C_H
#define PENC_LLAMA2C_H

#include "formats/tensor_source.h"

typedef struct penc_llama2c_info {
    uint32_t dim, hidden_dim, layers, heads, kv_heads, vocab_size, seq_len;
    int shared_output; /* the classifier is the embedding */
    int big_endian;    /* numbers are as on the machine that wrote them */
} penc_llama2c_info;

typedef struct penc_llama2c penc_llama2c;

/* Whether a file's first bytes and size are those of such a model. */
int penc_llama2c_fits(const unsigned char bytes[28], uint64_t file_size);

posenc_status penc_llama2c_open(const char *path, penc_llama2c **llama2c, posenc_error *error);
void penc_llama2c_close(penc_llama2c *llama2c);
const penc_llama2c_info *penc_llama2c_about(const penc_llama2c *llama2c);
const penc_tensor_source *penc_llama2c_tensors(const penc_llama2c *llama2c);

#endif
