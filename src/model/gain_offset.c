/* Which models store the gains of their norms minus 1.
 * Source: transformers, the RMSNorm of modeling_gemma3.py, modeling_qwen3_next.py, modeling_qwen3_5.py.
 * SPDX-License-Identifier: MIT */
#include "model/gain_offset.h"

#include <string.h>

int penc_gain_offset(const char *model_type) {
    static const char *const types[] = {"gemma3", "gemma3_text", "qwen3_next", "qwen3_5",
                                        "qwen3_5_moe"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(model_type, types[i]) == 0)
            return 1;
    }
    return 0;
}
