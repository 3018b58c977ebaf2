/* What the parts of `posenc demo` share. SPDX-License-Identifier: MIT */
#ifndef CLI_DEMO_H
#define CLI_DEMO_H

#include "posenc/posenc.h"

/* Text for people and numbers for programs: a part calls both, and one of them is shown. */
void demo_output_start(int json);
void demo_output_end(void);
void demo_title(const char *title);
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
void demo_say(const char *format, ...);
void demo_numbers(const char *key, const double *numbers, size_t count);

/* One rotary encoding, resolved: what the demonstrations rotate with. */
typedef struct demo_rope {
    posenc_frequencies *frequencies;
    size_t dim;
} demo_rope;

/* Fails with a message on stderr and exits: arguments are constants here, so only memory can be short. */
demo_rope demo_rope_make(size_t dim, double base, posenc_pairing pairing);
demo_rope demo_rope_scaled(size_t dim, double base, posenc_pairing pairing,
                           const posenc_scaling *scaling);
void demo_rope_free(demo_rope *rope);

/* x turned to `position`; one head in float64. */
void demo_rope_turn(const demo_rope *rope, const double *x, int64_t position, double *to);
/* The attention score of a query and a key that stand at two positions. */
double demo_rope_score(const demo_rope *rope, const double *q, int64_t q_position, const double *k,
                       int64_t k_position);
double demo_dot(const double *a, const double *b, size_t count);

/* The parts, in the order in which they are shown. */
void demo_sinusoidal(void);
void demo_relative(void);
void demo_bases(void);
void demo_alibi(void);
void demo_wavelengths(void);
void demo_values(void);
void demo_mixed_pairings(void);
void demo_extension(void);
void demo_bias(void);
void demo_model_scores(void);
void demo_model_decoding(void);

#endif
