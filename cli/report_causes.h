/* Explanations of diagnose and compare, printed. SPDX-License-Identifier: MIT */
#ifndef CLI_REPORT_CAUSES_H
#define CLI_REPORT_CAUSES_H

#include "posenc/diagnosis.h"

/* "explanations": [{"causes": [{"name", "sentence", "value"}], "mode"}]. */
void causes_to_json(const posenc_explanation *explanations, size_t count);

/* Lines for people; none if there is no explanation. */
void causes_to_text(const posenc_explanation *explanations, size_t count);

#endif
