/* Which models store the gains of their norms minus 1. SPDX-License-Identifier: MIT */
#ifndef PENC_GAIN_OFFSET_H
#define PENC_GAIN_OFFSET_H

/* 1 if transformers multiplies by 1 + weight in models of this model_type, else 0. GGUF files have the 1 in them. */
int penc_gain_offset(const char *model_type);

#endif
