/* Vector kernels of heads against the scalar reference, byte for byte, on random jobs between guard pages. Run once for
 * every CPU level (POSENC_CPU), and for aarch64 under qemu. SPDX-License-Identifier: MIT */
#include "kernels/head_kernels.h"
#include "posenc/posenc.h"

#include "guard_pages.h"
#include "random_data.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

typedef enum kernel_kind { WIDEN, NORM, NARROW, KINDS } kernel_kind;

typedef struct kernel_case {
    kernel_kind kind;
    penc_format format;
    penc_head_kernel *vector, *scalar;
    penc_head_job job;
} kernel_case;

/* Kernel `number`; 0 where vectors have none. */
static int kernel_of(size_t number, kernel_case *c) {
    const penc_head_kernels *s = &penc_head_scalar_set;
    memset(c, 0, sizeof *c);
    c->kind = (kernel_kind)(number / PENC_FORMATS);
    c->format = (penc_format)(number % PENC_FORMATS);
    c->vector = c->kind == WIDEN  ? penc_head_widen_of(c->format)
                : c->kind == NORM ? penc_head_norm_of(c->format)
                                  : penc_head_narrow_of(c->format, 0);
    c->scalar = c->kind == WIDEN  ? s->widen[c->format]
                : c->kind == NORM ? s->norm[c->format]
                                  : s->narrow[c->format];
    return c->vector != c->scalar;
}

/* All formats but float64; the norm takes no 8 bits. */
static void every_level_but_scalar_has_its_kernels(void **state) {
    (void)state;
    int vectors = penc_cpu_level_now() != PENC_CPU_SCALAR;
    for (size_t number = 0; number < (size_t)KINDS * PENC_FORMATS; number++) {
        kernel_case c;
        int has = kernel_of(number, &c);
        int wanted = c.format != PENC_FORMAT_F64 && (c.kind != NORM || c.format < PENC_FORMAT_INT8);
        assert_int_equal(has, vectors && wanted);
        assert_non_null(c.scalar);
    }
}

/* --- Data ----------------------------------------------------------------------------------------- */

enum { PLAIN, PATTERNS, RARE, SMALL, TIES, DATA };

/* Any patterns, or numbers of the size of activations, with rare ones between. */
static void fill(void *array, size_t count, penc_format format, int any, random_stream *rng) {
    size_t bytes = penc_format_bytes(format);
    for (size_t i = 0; i < count; i++) {
        float value = (float)ldexp(random_normal(rng), (int)random_below(rng, 3) * any);
        uint32_t bits;
        uint64_t pattern = random_bits(rng);
        memcpy(&bits, &value, sizeof bits);
        if (any == PATTERNS || (any == RARE && random_below(rng, 20) == 0))
            bits = (uint32_t)pattern;
        if (any == SMALL) /* about the least row that is not zeros, and denormals */
            bits =
                (uint32_t)(pattern & 0x80000000u) | (uint32_t)random_below(rng, UINT32_C(9) << 23);
        if (any == TIES) { /* in the middle of two numbers of some narrower type */
            unsigned place = 8 + (unsigned)random_below(rng, 12);
            bits = (bits >> place | 1) << place;
        }
        if (format == PENC_FORMAT_BF16)
            bits >>= 16;
        else if (format == PENC_FORMAT_F16 && any != PATTERNS) /* near enough: test data */
            bits = (uint32_t)random_below(rng, 2) << 15 | (uint32_t)random_below(rng, 0x4400);
        else if (bytes == 1)
            bits = (uint32_t)pattern;
        memcpy((char *)array + i * bytes, &bits, bytes);
    }
}

/* NaN's payload is free. */
static void make_nans_alike(void *array, size_t count, penc_format format) {
    size_t bytes = penc_format_bytes(format);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = 0;
        memcpy(&bits, (char *)array + i * bytes, bytes);
        if (format == PENC_FORMAT_F32 && (bits & 0x7fffffff) > 0x7f800000)
            bits = 0x7fc00000;
        if (format == PENC_FORMAT_F16 && (bits & 0x7fff) > 0x7c00)
            bits = 0x7e00;
        if (format == PENC_FORMAT_BF16 && (bits & 0x7fff) > 0x7f80)
            bits = 0x7fc0;
        if (format == PENC_FORMAT_FP8 && (bits & 0x7f) == 0x7f)
            bits = 0x7f;
        memcpy((char *)array + i * bytes, &bits, bytes);
    }
}

/* --- Jobs ----------------------------------------------------------------------------------------- */

static void random_job(kernel_case *c, size_t channels, random_stream *rng) {
    penc_head_job *job = &c->job;
    job->heads = 1 + random_below(rng, 4);
    job->tokens = 1;
    job->channels = channels;
    job->x_head = (ptrdiff_t)(channels + random_below(rng, 5));
    job->y_head = (ptrdiff_t)(channels + random_below(rng, 5));
    job->epsilon = random_below(rng, 3) ? 1e-6 : 0.0;
    job->factor = random_below(rng, 2) ? 1.0 : random_real(rng, 0.5, 3.0);
    job->tensor_scale = (float)random_magnitude(rng, -3.0, 3.0);
    job->scale_head = (ptrdiff_t)(1 + random_below(rng, 3));
}

/* Numbers that `heads` heads reach. */
static size_t reach(const penc_head_job *job, ptrdiff_t head) {
    return (job->heads - 1) * (size_t)head + job->channels;
}

/* The same job by both kernels; what they write, gaps included, must be the same. */
static void assert_same(kernel_case *c, random_stream *rng) {
    penc_head_job *job = &c->job;
    penc_format from = c->kind == NARROW ? PENC_FORMAT_F32 : c->format;
    penc_format to = c->kind == NARROW ? c->format : PENC_FORMAT_F32;
    int in_place = from == to && random_below(rng, 3) == 0, any = (int)random_below(rng, DATA);
    int with_scales =
        c->format == PENC_FORMAT_INT8 || (c->format == PENC_FORMAT_FP8 && random_below(rng, 2));
    guard_side side = (guard_side)random_below(rng, 2);
    if (in_place)
        job->y_head = job->x_head;
    if (any == TIES) { /* which scales would move */
        job->factor = 1.0;
        job->tensor_scale = 0.25f;
    }
    size_t x_count = reach(job, job->x_head), y_count = reach(job, job->y_head);
    size_t s_count = (job->heads - 1) * (size_t)job->scale_head + 1;
    guarded x = guarded_new(x_count * penc_format_bytes(from), side);
    guarded weight = guarded_new(job->channels * sizeof(float), GUARD_AFTER);
    guarded y[2], scales[2];
    fill(x.data, x_count, from, any, rng);
    fill(weight.data, job->channels, PENC_FORMAT_F32, PLAIN, rng);
    job->weight = random_below(rng, 2) ? weight.data : NULL;
    for (int i = 0; i < 2; i++) {
        y[i] = guarded_new(y_count * penc_format_bytes(to), side);
        scales[i] = guarded_new(s_count * sizeof(float), side);
        if (in_place)
            memcpy(y[i].data, x.data, x.bytes);
        for (size_t h = 0; c->kind == WIDEN && h < s_count; h++)
            ((float *)scales[i].data)[h] = (float)h + 0.3f;
        job->x = in_place ? y[i].data : x.data;
        job->y = y[i].data;
        job->scales = with_scales ? scales[i].data : NULL;
        (i ? c->vector : c->scalar)(job);
        make_nans_alike(y[i].data, y_count, to);
        make_nans_alike(scales[i].data, s_count, PENC_FORMAT_F32);
    }
    if (memcmp(y[0].data, y[1].data, y[0].bytes) != 0 ||
        memcmp(scales[0].data, scales[1].data, scales[0].bytes) != 0)
        fail_msg(
            "kernel %d of format %d: %zu heads, %zu channels, factor %g, data %d, in place %d: "
            "another result than the reference",
            c->kind, c->format, job->heads, job->channels, job->factor, any, in_place);
    guarded *all[] = {&x, &weight, &y[0], &y[1], &scales[0], &scales[1]};
    for (size_t i = 0; i < COUNT(all); i++)
        guarded_free(all[i]);
}

static void random_jobs_give_the_bytes_of_the_reference(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t number = 0; number < (size_t)KINDS * PENC_FORMATS; number++) {
        kernel_case c;
        for (size_t trial = 0; trial < random_trials(300) && kernel_of(number, &c); trial++) {
            random_job(&c, random_below(&rng, 4) ? 1 + random_below(&rng, 200) : 128, &rng);
            assert_same(&c, &rng);
        }
    }
}

static void every_count_of_channels_gives_the_bytes_of_the_reference(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t number = 0; number < (size_t)KINDS * PENC_FORMATS; number++) {
        kernel_case c;
        for (size_t channels = 1; channels <= 70 && kernel_of(number, &c); channels++) {
            random_job(&c, channels, &rng);
            assert_same(&c, &rng);
        }
    }
}

/* --- Norm and rotation at once ---------------------------------------------------------------------- */

enum { MOST_HEADS = 20, MOST_CHANNELS = 128 };

/* What the scalar kernels do one after the other. `weight` lies as the channels do. */
static void turn_in_stages(const penc_head_job *job, posenc_dtype dtype, penc_channel_order order,
                           const float *weight, void *y) {
    static float wide[MOST_HEADS * MOST_CHANNELS];
    penc_head_job norm = *job;
    ptrdiff_t pairs = (ptrdiff_t)job->channels / 2;
    norm.y = wide;
    norm.y_head = (ptrdiff_t)job->channels;
    norm.weight = weight;
    penc_head_scalar_set.norm[dtype](&norm);
    penc_side from = {0, norm.y_head, order == PENC_PAIRS ? 2 : 1, order == PENC_PAIRS ? 1 : pairs};
    penc_side to = from;
    to.head = job->y_head;
    penc_rotate_job turn = {.tokens = 1,
                            .heads = job->heads,
                            .pairs = (size_t)pairs,
                            .x = from,
                            .y = to,
                            .table = {0, 1, 0, NULL},
                            .scale = job->factor};
    penc_rotate_scalar_of(POSENC_F32, dtype)(&turn, wide, job->cos, job->sin, y);
}

/* Some tokens one after the other, in place at the same strides, with y at multiples of a line. Returns the reach of y. */
static size_t spread_tokens(penc_head_job *job, int in_place, size_t line, random_stream *rng) {
    job->tokens = 1 + random_below(rng, 4);
    job->x_token = (ptrdiff_t)(reach(job, job->x_head) + random_below(rng, 5));
    job->y_token = (ptrdiff_t)((reach(job, job->y_head) + line - 1) / line * line);
    if (in_place)
        job->x_token = job->y_token;
    job->row_token = (ptrdiff_t)job->channels;
    return (job->tokens - 1) * (size_t)job->y_token + reach(job, job->y_head);
}

static void assert_turned(posenc_dtype dtype, penc_channel_order order, size_t channels,
                          random_stream *rng) {
    penc_head_kernel *kernel = penc_head_turn_of(dtype, order, channels);
    penc_head_job job;
    kernel_case c = {.kind = NORM, .format = (penc_format)dtype};
    memset(&job, 0, sizeof job);
    random_job(&c, channels, rng);
    job = c.job;
    job.heads = 1 + random_below(rng, MOST_HEADS);
    size_t bytes = penc_format_bytes(c.format), line = 64 / bytes;
    job.stream = (int)random_below(rng, 2);
    if (job.stream)
        job.y_head = (job.y_head + (ptrdiff_t)line - 1) / (ptrdiff_t)line * (ptrdiff_t)line;
    int in_place = (int)random_below(rng, 3) == 0;
    job.x_head = in_place ? job.y_head : job.x_head;
    size_t y_count = spread_tokens(&job, in_place, line, rng);
    size_t x_count = (job.tokens - 1) * (size_t)job.x_token + reach(&job, job.x_head);
    guarded x = guarded_new(x_count * bytes, (guard_side)random_below(rng, 2));
    guarded table = guarded_new(job.tokens * channels * sizeof(float), GUARD_AFTER);
    guarded weights[2], y[2];
    fill(x.data, x_count, c.format, (int)random_below(rng, DATA), rng);
    fill(table.data, job.tokens * channels, PENC_FORMAT_F32, PLAIN, rng);
    job.cos = table.data;
    job.sin = job.cos + channels / 2;
    for (int i = 0; i < 2; i++) {
        weights[i] = guarded_new(channels * sizeof(float), GUARD_AFTER);
        y[i] = guarded_new(y_count * bytes, GUARD_BEFORE); /* begins with a line */
        if (in_place)
            memcpy(y[i].data, x.data, x.bytes);
    }
    fill(weights[0].data, channels, PENC_FORMAT_F32, PLAIN, rng);
    for (size_t i = 0; i < channels; i++) /* bfloat16: even channels first */
        ((float *)weights[1].data)[dtype == POSENC_BF16 ? i % 2 * (channels / 2) + i / 2 : i] =
            ((const float *)weights[0].data)[i];
    int weighted = (int)random_below(rng, 2);
    job.x = in_place ? y[0].data : x.data;
    penc_head_job one = job;
    for (size_t token = 0; token < job.tokens; token++) {
        one.x = (const char *)job.x + (ptrdiff_t)(token * bytes) * job.x_token;
        one.cos = job.cos + (ptrdiff_t)token * job.row_token;
        one.sin = job.sin + (ptrdiff_t)token * job.row_token;
        turn_in_stages(&one, dtype, order, weighted ? weights[0].data : NULL,
                       (char *)y[0].data + (ptrdiff_t)(token * bytes) * job.y_token);
    }
    job.x = in_place ? y[1].data : x.data;
    job.y = y[1].data;
    job.weight = weighted ? weights[1].data : NULL;
    kernel(&job);
    for (int i = 0; i < 2; i++)
        make_nans_alike(y[i].data, y_count, c.format);
    if (memcmp(y[0].data, y[1].data, y[0].bytes) != 0)
        fail_msg(
            "turn of %s, order %d: %zu heads, %zu channels, weighted %d, factor %g, in place %d, "
            "stream %d: another result than stage by stage",
            posenc_dtype_name(dtype), order, job.heads, channels, weighted, job.factor, in_place,
            job.stream);
    guarded *all[] = {&x, &table, &weights[0], &weights[1], &y[0], &y[1]};
    for (size_t i = 0; i < COUNT(all); i++)
        guarded_free(all[i]);
}

static void norm_and_rotation_at_once_give_the_bytes_of_stages(void **state) {
    (void)state;
    static const posenc_dtype dtypes[] = {POSENC_F32, POSENC_F16, POSENC_BF16};
    random_stream rng = random_of(__func__);
    int vectors = penc_cpu_level_now() != PENC_CPU_SCALAR;
    for (size_t number = 0; number < 3 * 2 * 4; number++) {
        posenc_dtype dtype = dtypes[number % 3];
        penc_channel_order order = (penc_channel_order)(number / 3 % 2);
        size_t channels = 32 * (1 + number / 6);
        assert_int_equal(penc_head_turn_of(dtype, order, channels) != NULL, vectors);
        assert_true(penc_head_turn_of(dtype, order, channels + 2) == NULL);
        assert_true(penc_head_turn_of(dtype, order, PENC_MOST_TURNED + channels) == NULL);
        assert_true(penc_head_turn_of(POSENC_F64, order, channels) == NULL);
        for (size_t trial = 0; vectors && trial < random_trials(60); trial++)
            assert_turned(dtype, order, channels, &rng);
    }
}

/* --- Quantising, after a rotation or without -------------------------------------------------------- */

/* What the scalar kernels do one after the other: widen or turn to float32, then narrow. */
static void quantise_in_stages(const penc_head_job *job, posenc_dtype from, penc_format to,
                               int turns, penc_channel_order order) {
    static float wide[MOST_HEADS * MOST_CHANNELS];
    ptrdiff_t pairs = (ptrdiff_t)job->channels / 2;
    penc_head_job widen = *job, narrow = *job;
    widen.y = wide;
    widen.y_head = narrow.x_head = (ptrdiff_t)job->channels;
    narrow.x = wide;
    if (!turns) {
        penc_head_scalar_set.widen[from](&widen);
    } else {
        penc_side side = {0, job->x_head, order == PENC_PAIRS ? 2 : 1,
                          order == PENC_PAIRS ? 1 : pairs};
        penc_side wide_side = side;
        wide_side.head = narrow.x_head;
        penc_rotate_job turn = {.tokens = 1,
                                .heads = job->heads,
                                .pairs = (size_t)pairs,
                                .x = side,
                                .y = wide_side,
                                .table = {0, 1, 0, NULL},
                                .scale = 1.0};
        penc_rotate_scalar_of(from, POSENC_F32)(&turn, job->x, job->cos, job->sin, wide);
    }
    penc_head_scalar_set.narrow[to](&narrow);
}

static void assert_quantised(posenc_dtype from, penc_format to, int turns, penc_channel_order order,
                             size_t channels, random_stream *rng) {
    penc_head_kernel *kernel = turns ? penc_head_turned_quantise_of(from, to, order, channels)
                                     : penc_head_quantise_of(from, to, channels);
    kernel_case c = {.kind = NARROW, .format = to};
    random_job(&c, channels, rng);
    penc_head_job job = c.job;
    job.heads = 1 + random_below(rng, MOST_HEADS);
    size_t bytes = penc_format_bytes((penc_format)from);
    size_t y_count = spread_tokens(&job, 0, 1, rng);
    if (!turns)
        job.tokens = 1;
    size_t more = job.tokens - 1, x_count = more * (size_t)job.x_token + reach(&job, job.x_head);
    size_t s_count = (job.heads - 1) * (size_t)job.scale_head + 1;
    size_t rows = job.tokens * channels + 2;
    job.scale_token = (ptrdiff_t)(s_count + random_below(rng, 3));
    s_count += more * (size_t)job.scale_token;
    guarded x = guarded_new(x_count * bytes, (guard_side)random_below(rng, 2));
    guarded table = guarded_new(rows * sizeof(float), GUARD_AFTER);
    guarded y[2], scales[2];
    fill(x.data, x_count, (penc_format)from, (int)random_below(rng, DATA), rng);
    fill(table.data, rows, PENC_FORMAT_F32, PLAIN, rng);
    job.x = x.data;
    job.cos = table.data;
    job.sin = job.cos + channels / 2;
    for (int i = 0; i < 2; i++) {
        y[i] = guarded_new(y_count, GUARD_AFTER);
        scales[i] = guarded_new(s_count * sizeof(float), GUARD_AFTER);
        job.y = y[i].data;
        job.scales = scales[i].data;
        if (i)
            kernel(&job);
        for (ptrdiff_t token = 0; !i && token < (ptrdiff_t)job.tokens; token++) {
            penc_head_job one = job;
            one.x = (const char *)job.x + token * job.x_token * (ptrdiff_t)bytes;
            one.y = (char *)job.y + token * job.y_token;
            one.scales = job.scales + token * job.scale_token;
            one.cos = job.cos + token * job.row_token;
            one.sin = job.sin + token * job.row_token;
            quantise_in_stages(&one, from, to, turns, order);
        }
        make_nans_alike(scales[i].data, s_count, PENC_FORMAT_F32);
    }
    if (memcmp(y[0].data, y[1].data, y[0].bytes) != 0 ||
        memcmp(scales[0].data, scales[1].data, scales[0].bytes) != 0)
        fail_msg(
            "%s to format %d, turned %d, order %d: %zu heads, %zu channels, factor %g: another "
            "result than stage by stage",
            posenc_dtype_name(from), to, turns, order, job.heads, channels, job.factor);
    guarded *all[] = {&x, &table, &y[0], &y[1], &scales[0], &scales[1]};
    for (size_t i = 0; i < COUNT(all); i++)
        guarded_free(all[i]);
}

static void quantising_at_once_gives_the_bytes_of_stages(void **state) {
    (void)state;
    static const posenc_dtype dtypes[] = {POSENC_F32, POSENC_F16, POSENC_BF16};
    random_stream rng = random_of(__func__);
    int vectors = penc_cpu_level_now() != PENC_CPU_SCALAR;
    for (size_t number = 0; number < 3 * 2 * 3; number++) {
        posenc_dtype from = dtypes[number % 3];
        penc_format to = number / 3 % 2 ? PENC_FORMAT_FP8 : PENC_FORMAT_INT8;
        int turns = number / 6 > 0;
        penc_channel_order order = number / 6 == 2 ? PENC_PAIRS : PENC_HALVES;
        assert_int_equal(penc_head_turned_quantise_of(from, to, order, 96) != NULL, vectors);
        assert_true(penc_head_turned_quantise_of(from, to, order, 98) == NULL);
        assert_true(penc_head_turned_quantise_of(from, to, order, PENC_MOST_TURNED + 32) == NULL);
        assert_int_equal(penc_head_quantise_of(from, to, 97) != NULL, vectors);
        for (size_t trial = 0; vectors && trial < random_trials(120); trial++) {
            size_t channels =
                turns ? 32 * (1 + random_below(&rng, 4)) : 1 + random_below(&rng, MOST_CHANNELS);
            assert_quantised(from, to, turns, order, channels, &rng);
        }
    }
}

static void copies_past_the_caches_are_copies(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    penc_head_kernel *copy = penc_head_stream_copy_of();
    for (size_t trial = 0; copy && trial < random_trials(100); trial++) {
        penc_head_job job = {.heads = 1 + random_below(&rng, 5),
                             .tokens = 1,
                             .channels = 64 * (1 + random_below(&rng, 5))};
        job.x_head = (ptrdiff_t)(job.channels + random_below(&rng, 70));
        job.y_head = (ptrdiff_t)(job.channels + 64 * random_below(&rng, 3));
        guarded x = guarded_new(reach(&job, job.x_head), GUARD_AFTER);
        guarded y = guarded_new(reach(&job, job.y_head), GUARD_BEFORE);
        guarded wanted = guarded_new(y.bytes, GUARD_BEFORE);
        for (size_t i = 0; i < x.bytes; i++)
            ((unsigned char *)x.data)[i] = (unsigned char)random_bits(&rng);
        for (size_t h = 0; h < job.heads; h++)
            memcpy((char *)wanted.data + (ptrdiff_t)h * job.y_head,
                   (char *)x.data + (ptrdiff_t)h * job.x_head, job.channels);
        job.x = x.data;
        job.y = y.data;
        copy(&job);
        assert_memory_equal(y.data, wanted.data, y.bytes);
        guarded_free(&x);
        guarded_free(&y);
        guarded_free(&wanted);
    }
}

int main(int argc, char **argv) {
    random_announce();
    if (argc > 1 && strcmp(posenc_cpu(), argv[1]) != 0) {
        printf("1..1\nok 1 - kernels of heads at level %s # SKIP this CPU has no %s\n", argv[1],
               argv[1]);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_but_scalar_has_its_kernels),
        cmocka_unit_test(random_jobs_give_the_bytes_of_the_reference),
        cmocka_unit_test(every_count_of_channels_gives_the_bytes_of_the_reference),
        cmocka_unit_test(norm_and_rotation_at_once_give_the_bytes_of_stages),
        cmocka_unit_test(quantising_at_once_gives_the_bytes_of_stages),
        cmocka_unit_test(copies_past_the_caches_are_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
