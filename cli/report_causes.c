/* Printing explanations. SPDX-License-Identifier: MIT */
#include "report_causes.h"

#include "output.h"

#include <math.h>
#include <stdio.h>

static void explanation_to_json(const posenc_explanation *explanation) {
    json_open(NULL, '{');
    json_open("causes", '[');
    for (size_t i = 0; i < explanation->count; i++) {
        json_open(NULL, '{');
        json_string("name", posenc_cause_name(explanation->cause[i]));
        json_string("sentence", posenc_cause_sentence(explanation->cause[i]));
        json_number("value", explanation->value[i]); /* NaN becomes null */
        json_close();
    }
    json_close();
    json_string("mode", posenc_mode_name(explanation->mode));
    json_close();
}

void causes_to_json(const posenc_explanation *explanations, size_t count) {
    json_open("explanations", '[');
    for (size_t i = 0; i < count; i++)
        explanation_to_json(&explanations[i]);
    json_close();
}

void causes_to_text(const posenc_explanation *explanations, size_t count) {
    if (count > 1)
        printf("these numbers cannot tell apart:\n");
    for (size_t i = 0; i < count; i++) {
        const posenc_explanation *one = &explanations[i];
        for (size_t k = 0; k < one->count; k++) {
            printf("%s %s: %s", k ? "   and" : "cause:", posenc_cause_name(one->cause[k]),
                   posenc_cause_sentence(one->cause[k]));
            if (!isnan(one->value[k]))
                printf(" (%.10g)", one->value[k]);
            if (k + 1 == one->count)
                printf("; angles of mode %s", posenc_mode_name(one->mode));
            putchar('\n');
        }
    }
}
