/* Names of a Llama's tensors in three vocabularies. SPDX-License-Identifier: MIT */
#include "checkpoint/tensor_vocabulary.h"

#include <stdio.h>
#include <string.h>

static const char *const penc_layer_prefixes[PENC_VOCABULARIES] = {"model.layers.", "blk.",
                                                                   "layers."};

/* Behind "PREFIX N.", before ".weight" or ".bias". */
static const char *const penc_layer_words[][PENC_VOCABULARIES] = {
    {"self_attn.q_proj", "attn_q", "attention.wq"},
    {"self_attn.k_proj", "attn_k", "attention.wk"},
    {"self_attn.v_proj", "attn_v", "attention.wv"},
    {"self_attn.o_proj", "attn_output", "attention.wo"},
    {"self_attn.q_norm", "attn_q_norm", "attention.q_norm"},
    {"self_attn.k_norm", "attn_k_norm", "attention.k_norm"},
    {"mlp.gate_proj", "ffn_gate", "feed_forward.w1"},
    {"mlp.down_proj", "ffn_down", "feed_forward.w2"},
    {"mlp.up_proj", "ffn_up", "feed_forward.w3"},
    {"input_layernorm", "attn_norm", "attention_norm"},
    {"post_attention_layernorm", "ffn_norm", "ffn_norm"},
};

static const char *const penc_whole_words[][PENC_VOCABULARIES] = {
    {"model.embed_tokens", "token_embd", "tok_embeddings"},
    {"model.norm", "output_norm", "norm"},
    {"lm_head", "output", "output"},
};

/* The rest of a name behind `word`, which must be an end with a dot; NULL if it does not begin so. */
static const char *penc_behind(const char *name, const char *word) {
    size_t length = strlen(word);
    return strncmp(name, word, length) == 0 && name[length] == '.' ? name + length : NULL;
}

static int penc_layer_name_in(const char *name, int from, int to, char other[PENC_NAME_BYTES]) {
    size_t prefix = strlen(penc_layer_prefixes[from]);
    if (strncmp(name, penc_layer_prefixes[from], prefix) != 0)
        return 0;
    size_t digits = strspn(name + prefix, "0123456789");
    const char *part = name + prefix + digits + 1;
    if (!digits || part[-1] != '.')
        return 0;
    for (size_t i = 0; i < sizeof penc_layer_words / sizeof *penc_layer_words; i++) {
        const char *end = penc_behind(part, penc_layer_words[i][from]);
        if (end)
            return snprintf(other, PENC_NAME_BYTES, "%s%.*s.%s%s", penc_layer_prefixes[to],
                            (int)digits, name + prefix, penc_layer_words[i][to],
                            end) < PENC_NAME_BYTES;
    }
    return 0;
}

static int penc_whole_name_in(const char *name, int from, int to, char other[PENC_NAME_BYTES]) {
    for (size_t i = 0; i < sizeof penc_whole_words / sizeof *penc_whole_words; i++) {
        const char *end = penc_behind(name, penc_whole_words[i][from]);
        if (end)
            return snprintf(other, PENC_NAME_BYTES, "%s%s", penc_whole_words[i][to], end) <
                   PENC_NAME_BYTES;
    }
    return 0;
}

int penc_tensor_name_in(const char *name, int to, char other[PENC_NAME_BYTES]) {
    for (int from = 0; from < PENC_VOCABULARIES; from++) {
        if (from != to && (penc_layer_name_in(name, from, to, other) ||
                           penc_whole_name_in(name, from, to, other)))
            return 1;
    }
    return 0;
}
