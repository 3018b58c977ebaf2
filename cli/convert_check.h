/* posenc convert --check A B. SPDX-License-Identifier: MIT */
#ifndef CLI_CONVERT_CHECK_H
#define CLI_CONVERT_CHECK_H

#include "command.h"
#include "posenc/convert.h"

/* Compares the two operands; `shape` is what the options say of A. Returns the exit status. */
int convert_check(const cli_arguments *arguments, const posenc_attention_shape *shape);

#endif
