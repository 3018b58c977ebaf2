/* Vector kernels of rotation against the scalar reference, byte for byte, on random jobs between guard pages. Run
 * once for every CPU level (POSENC_CPU), and for aarch64 under qemu. SPDX-License-Identifier: MIT */
#include "kernels/rotate_kernels.h"
#include "posenc/posenc.h"

#include "guard_pages.h"
#include "random_data.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* --- Numbers as bits ------------------------------------------------------------------------------ */

/* Bits of a dtype's significand, the hidden one included, and its least and greatest exponent (as 1.0 * 2^e). */
static const struct {
    int precision, least, most;
} formats[PENC_DTYPES] = {
    [POSENC_F32] = {24, -126, 127},
    [POSENC_F64] = {53, -1022, 1023},
    [POSENC_F16] = {11, -14, 15},
    [POSENC_BF16] = {8, -126, 127},
};

static size_t bytes_of(posenc_dtype dtype) {
    static const size_t bytes[PENC_DTYPES] = {
        [POSENC_F32] = 4, [POSENC_F64] = 8, [POSENC_F16] = 2, [POSENC_BF16] = 2};
    return bytes[dtype];
}

static uint64_t infinity_of(posenc_dtype dtype) {
    int fraction = formats[dtype].precision - 1;
    return ((UINT64_C(1) << (8 * bytes_of(dtype) - 1)) - 1) >> fraction << fraction;
}

/* Little-endian, as all machines of these kernels are. */
static uint64_t load_bits(const void *array, posenc_dtype dtype, ptrdiff_t index) {
    uint64_t bits = 0;
    size_t bytes = bytes_of(dtype);
    memcpy(&bits, (const char *)array + index * (ptrdiff_t)bytes, bytes);
    return bits;
}

static void store_bits(void *array, posenc_dtype dtype, ptrdiff_t index, uint64_t bits) {
    size_t bytes = bytes_of(dtype);
    memcpy((char *)array + index * (ptrdiff_t)bytes, &bits, bytes);
}

/* The nearest pattern towards zero: that is enough for test data. */
static uint64_t bits_of(double value, posenc_dtype dtype) {
    uint64_t bits;
    uint32_t narrow;
    float single = (float)value;
    memcpy(&bits, &value, sizeof bits);
    memcpy(&narrow, &single, sizeof narrow);
    if (dtype == POSENC_F64)
        return bits;
    if (dtype == POSENC_F32)
        return narrow;
    if (dtype == POSENC_BF16)
        return narrow >> 16;
    double magnitude = fabs(value);
    uint64_t sign = signbit(value) ? 0x8000 : 0;
    if (magnitude < 0x1p-14)
        return sign | (uint64_t)(magnitude * 0x1p24);
    if (magnitude >= 65536.0)
        return sign | 0x7bff;
    int exponent;
    double fraction = frexp(magnitude, &exponent); /* 0.5 ... 1 */
    return sign | (((uint64_t)(exponent + 13) << 10) + (uint64_t)(fraction * 2048.0));
}

/* --- Test data ------------------------------------------------------------------------------------ */

/* What a job's numbers are mostly like. */
typedef enum data_kind {
    PLAIN,     /* of the size of activations */
    PATTERNS,  /* any bits */
    TIES,      /* in the middle between two results, or next to it; the rows hold powers of two */
    DENORMALS, /* results that float32 holds as denormals only */
    LARGE,     /* around the largest number of the result's dtype */
    KINDS
} data_kind;

/* Zeros, infinities, NaN quiet and signalling, the first and last denormal, the first and last normal number. */
static uint64_t special_bits(posenc_dtype dtype, random_stream *rng) {
    uint64_t infinity = infinity_of(dtype), one = UINT64_C(1) << (formats[dtype].precision - 1);
    uint64_t sign = (random_bits(rng) & 1) << (8 * bytes_of(dtype) - 1);
    const uint64_t special[] = {0,       infinity, infinity | one >> 1, infinity | 1, 1,
                                one - 1, one,      infinity - 1};
    return sign | special[random_below(rng, COUNT(special))];
}

/* A number in the middle of two neighbours of `to`, of any exponent that it has; its own neighbours in float32
 * now and then. */
static double tie_of(posenc_dtype to, random_stream *rng) {
    int precision = formats[to].precision, least = formats[to].least;
    int exponent = (int)random_between(rng, least - precision, least + 40);
    if (random_below(rng, 2))
        exponent = (int)random_between(rng, -10, formats[to].most < 15 ? 12 : 15);
    int place = (exponent < least ? least : exponent) - precision; /* half of the last place's */
    double odd = 2.0 * floor(ldexp(1.0, exponent - place - 1) * random_real(rng, 1.0, 2.0)) + 1.0;
    double value = ldexp(odd, place);
    if (random_below(rng, 3) == 0)
        value *= random_below(rng, 2) ? 1.0 + 0x1p-23 : 1.0 - 0x1p-23;
    return random_below(rng, 2) ? value : -value;
}

static double large_of(posenc_dtype to, random_stream *rng) {
    double value = to == POSENC_F16   ? random_real(rng, 65400.0, 65700.0)
                   : to == POSENC_F64 ? ldexp(random_real(rng, 1.0, 2.0), 1023)
                                      : ldexp(random_real(rng, 1.9, 2.0), 127);
    return random_below(rng, 2) ? value : -value;
}

static uint64_t data_bits(data_kind kind, posenc_dtype from, posenc_dtype to, random_stream *rng) {
    /* An exponent that is within the reach of `from`, and what a row must bring to a denormal float32. */
    int small = from == POSENC_F16 ? -10 : -70;
    if (kind == PATTERNS)
        return random_bits(rng);
    if (kind == TIES)
        return bits_of(tie_of(to, rng), from);
    if (kind == LARGE)
        return bits_of(large_of(to, rng), from);
    return bits_of(ldexp(random_normal(rng), kind == DENORMALS ? small : 0), from);
}

static double table_number(data_kind kind, posenc_dtype from, int is_sin, random_stream *rng) {
    double sign = random_below(rng, 2) ? 1.0 : -1.0;
    if (kind == TIES) /* the results are the numbers themselves */
        return is_sin ? 0.0 * sign : sign;
    if (kind == LARGE)
        return is_sin ? 0.0 : sign * random_real(rng, 0.99, 1.01);
    if (kind == DENORMALS)
        return sign * ldexp(random_real(rng, 1.0, 2.0),
                            (from == POSENC_F16 ? -125 : -65) + (int)random_below(rng, 20));
    return random_real(rng, -1.0, 1.0);
}

/* --- Jobs ----------------------------------------------------------------------------------------- */

/* One side's memory: exactly the bytes that it reaches, poisoned between its elements. */
typedef struct side_memory {
    guarded memory;
    void *data; /* the first channel of the first token and head */
} side_memory;

typedef struct kernel_case {
    posenc_dtype from, to;
    penc_channel_order in, out;
    penc_rotate_kernel *vector, *scalar;
    penc_rotate_job job;
    int flat; /* the vector kernel takes rows that hold each number twice */
    int in_place;
    data_kind kind;
    unsigned odd; /* one number of so many is a special one; 0: none */
} kernel_case;

/* Channels of one head from the first pair's first on; a negative gap reaches before it. */
static void head_reach(const penc_side *side, size_t pairs, ptrdiff_t *low, ptrdiff_t *high) {
    ptrdiff_t last = ((ptrdiff_t)pairs - 1) * side->step;
    *low = side->gap < 0 ? side->gap : 0;
    *high = (side->gap > 0 ? side->gap : 0) + last + 1;
}

static side_memory side_new(const penc_rotate_job *job, const penc_side *side, size_t bytes,
                            guard_side flush) {
    ptrdiff_t low, high;
    head_reach(side, job->pairs, &low, &high);
    ptrdiff_t tokens = ((ptrdiff_t)job->tokens - 1) * side->token;
    ptrdiff_t heads = ((ptrdiff_t)job->heads - 1) * side->head;
    low += (tokens < 0 ? tokens : 0) + (heads < 0 ? heads : 0);
    high += (tokens > 0 ? tokens : 0) + (heads > 0 ? heads : 0);
    side_memory made = {guarded_new((size_t)(high - low) * bytes, flush), NULL};
    made.data = (char *)made.memory.data - low * (ptrdiff_t)bytes;
    return made;
}

/* The channels of a side, in turn. */
static ptrdiff_t channel_at(const penc_rotate_job *job, const penc_side *side, size_t i) {
    size_t pair = i / 2 % job->pairs, head = i / 2 / job->pairs % job->heads;
    size_t token = i / 2 / job->pairs / job->heads;
    return (ptrdiff_t)token * side->token + (ptrdiff_t)head * side->head +
           (ptrdiff_t)pair * side->step + (i % 2 ? side->gap : 0);
}

static size_t channels_of(const penc_rotate_job *job) {
    return job->tokens * job->heads * job->pairs * 2;
}

/* Strides that write no element twice; in multiples of `unit` elements. */
static penc_side random_side(const penc_rotate_job *job, penc_channel_order order, size_t unit,
                             int readable, random_stream *rng) {
    penc_side side = {0, 0, 1, (ptrdiff_t)(job->pairs + random_below(rng, 9) % 5)};
    if (order == PENC_PAIRS) {
        side.step = 2;
        side.gap = 1;
    } else {
        side.gap = (side.gap + (ptrdiff_t)unit - 1) / (ptrdiff_t)unit * (ptrdiff_t)unit;
        side.gap *= random_below(rng, 5) ? 1 : -1;
    }
    ptrdiff_t low, high;
    head_reach(&side, job->pairs, &low, &high);
    ptrdiff_t strides[2], reach = high - low;
    const size_t counts[2] = {job->heads, job->tokens};
    int first = (int)random_below(rng, 2); /* whether tokens lie within heads */
    for (int i = 0; i < 2; i++) {
        int axis = i ^ first;
        ptrdiff_t stride = reach + (ptrdiff_t)(random_below(rng, 2) ? random_below(rng, 20) : 0);
        stride = (stride + (ptrdiff_t)unit - 1) / (ptrdiff_t)unit * (ptrdiff_t)unit;
        reach = stride * (ptrdiff_t)counts[axis];
        strides[axis] = random_below(rng, 4) ? stride : -stride;
        if (readable && random_below(rng, 12) == 0)
            strides[axis] = 0;
    }
    side.head = strides[0];
    side.token = strides[1];
    return side;
}

static size_t random_pairs(random_stream *rng) {
    return random_below(rng, 40) ? 1 + random_below(rng, 70) : 200 + random_below(rng, 900);
}

static void random_job(kernel_case *c, random_stream *rng) {
    static const unsigned odds[] = {0, 0, 3, 40};
    c->kind = (data_kind)random_below(rng, KINDS);
    c->odd = odds[random_below(rng, COUNT(odds))];
    c->job.tokens = 1 + random_below(rng, 4);
    c->job.heads = random_below(rng, 4) ? 1 + random_below(rng, 4) : 9;
    c->job.by_head = (int)random_below(rng, 2);
    c->job.next = random_below(rng, 2) ? random_between(rng, -(1 << 20), 1 << 20) : 0;
    c->job.pairs = random_pairs(rng);
    if (c->flat)
        c->job.pairs = (c->job.pairs / PENC_FLAT_PAIRS + 1) * PENC_FLAT_PAIRS;
    c->job.stream = (int)random_below(rng, 3) == 0;
    c->job.scale = random_below(rng, 4) ? 1.0 : random_real(rng, 0.1, 4.0);
    c->in_place = c->from == c->to && c->in == c->out && random_below(rng, 2);
    size_t unit = c->job.stream ? 64 / bytes_of(c->to) : 1;
    c->job.y = random_side(&c->job, c->out, unit, 0, rng);
    c->job.x = c->in_place ? c->job.y : random_side(&c->job, c->in, 1, 1, rng);
    c->job.table = (penc_table_side){random_between(rng, -2, 2) * (ptrdiff_t)c->job.pairs +
                                         random_between(rng, -1, 1),
                                     1, 0, NULL};
}

/* A case as text, for a failure's message. */
static const char *case_text(const kernel_case *c) {
    static char text[300];
    const penc_rotate_job *j = &c->job;
    snprintf(
        text, sizeof text,
        "%s to %s, orders %d to %d, %zu tokens, %zu heads, %zu pairs, x %td %td gap %td, y %td "
        "%td gap %td, in place %d, by head %d, next %td, flat %d, stream %d, scale %g, data %d",
        posenc_dtype_name(c->from), posenc_dtype_name(c->to), c->in, c->out, j->tokens, j->heads,
        j->pairs, j->x.token, j->x.head, j->x.gap, j->y.token, j->y.head, j->y.gap, c->in_place,
        j->by_head, j->next, c->flat, j->stream, j->scale, c->kind);
    return text;
}

/* --- Tables --------------------------------------------------------------------------------------- */

/* cos and sin and the list of rows: each its own memory, exactly as long as it is read. */
typedef struct tables {
    guarded cos, sin;
    const char *cos_data, *sin_data;
    ptrdiff_t rows[8];
} tables;

/* Fills `t`, to which the job points afterwards. */
static void tables_new(kernel_case *c, random_stream *rng, tables *t) {
    posenc_dtype dtype = c->from == POSENC_F64 ? POSENC_F64 : POSENC_F32;
    size_t bytes = bytes_of(dtype);
    ptrdiff_t low = 0, high = 0;
    int listed = (int)random_below(rng, 2);
    for (size_t i = 0; i < c->job.tokens; i++) {
        t->rows[i] = listed ? random_between(rng, -3, 3) * ((ptrdiff_t)c->job.pairs + 1)
                            : (ptrdiff_t)i * c->job.table.token;
        low = t->rows[i] < low ? t->rows[i] : low;
        high = t->rows[i] > high ? t->rows[i] : high;
    }
    size_t numbers = (size_t)(high - low) + c->job.pairs;
    t->cos = guarded_new(numbers * bytes, (guard_side)random_below(rng, 2));
    t->sin = guarded_new(numbers * bytes, (guard_side)random_below(rng, 2));
    for (size_t i = 0; i < numbers; i++) {
        for (int is_sin = 0; is_sin < 2; is_sin++) {
            uint64_t bits = c->odd && random_below(rng, 4 * c->odd) == 0
                                ? special_bits(dtype, rng)
                                : bits_of(table_number(c->kind, c->from, is_sin, rng), dtype);
            store_bits(is_sin ? t->sin.data : t->cos.data, dtype, (ptrdiff_t)i, bits);
        }
    }
    t->cos_data = (const char *)t->cos.data - low * (ptrdiff_t)bytes;
    t->sin_data = (const char *)t->sin.data - low * (ptrdiff_t)bytes;
    if (listed) {
        c->job.table.rows = t->rows;
        c->job.table.token = PTRDIFF_MAX / 4; /* not used then */
    }
}

/* The same rows with each number twice, sin negated at a pair's first channel; `job` reads them. */
static tables tables_twice(const tables *t, penc_rotate_job *job) {
    size_t numbers = t->cos.bytes / sizeof(float);
    tables twice;
    ptrdiff_t before = (t->cos_data - (const char *)t->cos.data) / (ptrdiff_t)sizeof(float);
    twice.cos = guarded_new(2 * t->cos.bytes, GUARD_AFTER);
    twice.sin = guarded_new(2 * t->sin.bytes, GUARD_AFTER);
    for (size_t i = 0; i < 2 * numbers; i++) {
        float c = ((const float *)t->cos.data)[i / 2], s = ((const float *)t->sin.data)[i / 2];
        ((float *)twice.cos.data)[i] = c;
        ((float *)twice.sin.data)[i] = i % 2 ? s : -s;
    }
    twice.cos_data = (const char *)((const float *)twice.cos.data + 2 * before);
    twice.sin_data = (const char *)((const float *)twice.sin.data + 2 * before);
    for (size_t i = 0; i < job->tokens; i++)
        twice.rows[i] = 2 * t->rows[i];
    job->table.token *= job->table.rows ? 1 : 2;
    return twice;
}

/* --- Comparisons ---------------------------------------------------------------------------------- */

static void fill_side(const kernel_case *c, const side_memory *x, random_stream *rng) {
    for (size_t i = 0; i < channels_of(&c->job); i++) {
        uint64_t bits = c->odd && random_below(rng, c->odd) == 0
                            ? special_bits(c->from, rng)
                            : data_bits(c->kind, c->from, c->to, rng);
        store_bits(x->data, c->from, channel_at(&c->job, &c->job.x, i), bits);
    }
}

/* A NaN's payload and sign are free. */
static void make_nans_alike(const kernel_case *c, const side_memory *y) {
    uint64_t infinity = infinity_of(c->to);
    uint64_t sign = UINT64_C(1) << (8 * bytes_of(c->to) - 1);
    for (size_t i = 0; i < channels_of(&c->job); i++) {
        ptrdiff_t at = channel_at(&c->job, &c->job.y, i);
        if ((load_bits(y->data, c->to, at) & ~sign) > infinity)
            store_bits(y->data, c->to, at, infinity | 1);
    }
}

static void *copy_of(const guarded *memory) {
    void *copy = malloc(memory->bytes + 1);
    assert_non_null(copy);
    memcpy(copy, memory->data, memory->bytes);
    return copy;
}

static void assert_unchanged(const guarded *memory, void *before, const kernel_case *c) {
    if (memcmp(memory->data, before, memory->bytes) != 0)
        fail_msg("what is only read has changed: %s", case_text(c));
    free(before);
}

static void assert_same_bytes(const kernel_case *c, const side_memory *got,
                              const side_memory *wanted) {
    make_nans_alike(c, got);
    make_nans_alike(c, wanted);
    if (memcmp(got->memory.data, wanted->memory.data, got->memory.bytes) == 0)
        return;
    for (size_t i = 0; i < channels_of(&c->job); i++) {
        ptrdiff_t at = channel_at(&c->job, &c->job.y, i);
        uint64_t a = load_bits(got->data, c->to, at), b = load_bits(wanted->data, c->to, at);
        if (a != b)
            fail_msg("channel %zu, pair %zu: got %#llx, the reference gives %#llx: %s", i % 2,
                     i / 2 % c->job.pairs, (unsigned long long)a, (unsigned long long)b,
                     case_text(c));
    }
    fail_msg("written beside the channels: %s", case_text(c));
}

/* Streaming needs a y that is aligned, which a buffer at the end of its page is where its size is. */
static guard_side random_flush(const kernel_case *c, random_stream *rng) {
    guard_side flush = (guard_side)random_below(rng, 2);
    if (!c->job.stream || flush == GUARD_BEFORE)
        return flush;
    ptrdiff_t low, high;
    head_reach(&c->job.y, c->job.pairs, &low, &high);
    return (size_t)(high - low) * bytes_of(c->to) % 64 ? GUARD_BEFORE : GUARD_AFTER;
}

static void run_vector(const kernel_case *c, const tables *t, const void *x, void *y) {
    penc_rotate_job job = c->job;
    if (!c->flat) {
        c->vector(&job, x, t->cos_data, t->sin_data, y);
    } else {
        tables twice = tables_twice(t, &job);
        job.table.rows = job.table.rows ? twice.rows : NULL;
        c->vector(&job, x, twice.cos_data, twice.sin_data, y);
        guarded_free(&twice.cos);
        guarded_free(&twice.sin);
    }
    penc_finish_streaming();
}

static void assert_kernel_on(kernel_case *c, random_stream *rng) {
    size_t from = bytes_of(c->from), to = bytes_of(c->to);
    guard_side x_flush = (guard_side)random_below(rng, 2), y_flush = random_flush(c, rng);
    side_memory got = side_new(&c->job, &c->job.y, to, y_flush);
    side_memory wanted = side_new(&c->job, &c->job.y, to, y_flush);
    side_memory x = c->in_place ? got : side_new(&c->job, &c->job.x, from, x_flush);
    tables t;
    tables_new(c, rng, &t);
    assert_true(!c->job.stream || (uintptr_t)got.data % 64 == 0);
    fill_side(c, &x, rng);
    if (c->in_place)
        memcpy(wanted.memory.data, x.memory.data, x.memory.bytes);
    void *x_before = copy_of(&x.memory), *cos = copy_of(&t.cos), *sin = copy_of(&t.sin);
    const void *input = c->in_place ? wanted.data : x.data;
    c->scalar(&c->job, input, t.cos_data, t.sin_data, wanted.data);
    run_vector(c, &t, x.data, got.data);
    assert_same_bytes(c, &got, &wanted);
    if (c->in_place)
        free(x_before);
    else
        assert_unchanged(&x.memory, x_before, c);
    assert_unchanged(&t.cos, cos, c);
    assert_unchanged(&t.sin, sin, c);
    if (!c->in_place)
        guarded_free(&x.memory);
    guarded_free(&got.memory);
    guarded_free(&wanted.memory);
    guarded_free(&t.cos);
    guarded_free(&t.sin);
}

enum { KERNELS = 4 * 4 * 2 * 2, FLAT_KERNELS = 4 };

/* Kernel `number` of all dtypes and orders, and then of those for rows that hold each number twice; 0 where there
 * is none. */
static int kernel_of(size_t number, kernel_case *c) {
    memset(c, 0, sizeof *c);
    if (number >= KERNELS) {
        c->flat = 1;
        c->from = c->to = (posenc_dtype)(number - KERNELS);
        c->in = c->out = PENC_PAIRS;
        c->vector = penc_rotate_flat_of(c->from);
        c->scalar = penc_rotate_scalar_of(c->from, c->to);
        return c->vector != NULL;
    }
    c->from = (posenc_dtype)(number % 4);
    c->to = (posenc_dtype)(number / 4 % 4);
    c->in = (penc_channel_order)(number / 16 % 2);
    c->out = (penc_channel_order)(number / 32);
    c->vector = penc_rotate_vector_of(c->from, c->in, c->to, c->out);
    c->scalar = penc_rotate_scalar_of(c->from, c->to);
    return c->vector != NULL;
}

/* All pairs of dtypes but those of float64 with another; rows that hold each number twice for float32 and float16. */
static void every_level_but_scalar_has_its_kernels(void **state) {
    (void)state;
    int vectors = penc_cpu_level_now() != PENC_CPU_SCALAR;
    for (size_t number = 0; number < KERNELS; number++) {
        kernel_case c;
        int has = kernel_of(number, &c);
        int mixed = (c.from == POSENC_F64) != (c.to == POSENC_F64);
        assert_int_equal(has, vectors && !mixed);
        assert_non_null(c.scalar);
        assert_true(c.vector != c.scalar);
    }
    for (size_t number = KERNELS; number < KERNELS + FLAT_KERNELS; number++) {
        kernel_case c;
        int has = kernel_of(number, &c);
        assert_int_equal(has, vectors && (c.from == POSENC_F32 || c.from == POSENC_F16));
    }
}

static void random_jobs_give_the_bytes_of_the_reference(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t number = 0; number < KERNELS + FLAT_KERNELS; number++) {
        kernel_case c;
        for (size_t trial = 0; trial < random_trials(150) && kernel_of(number, &c); trial++) {
            random_job(&c, &rng);
            assert_kernel_on(&c, &rng);
        }
    }
}

/* Every count of pairs up to several vectors, alone, by one head and by two: the ends of loops. */
static void every_count_of_pairs_gives_the_bytes_of_the_reference(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t i = 0; i < KERNELS * 140; i++) {
        kernel_case c;
        if (!kernel_of(i % KERNELS, &c))
            continue;
        c.job.tokens = 1;
        c.job.heads = 1 + random_below(&rng, 2);
        c.job.pairs = 1 + i / KERNELS;
        c.job.scale = 1.0;
        c.job.table.pair = 1;
        c.job.x = random_side(&c.job, c.in, 1, 0, &rng);
        c.job.y = random_side(&c.job, c.out, 1, 0, &rng);
        assert_kernel_on(&c, &rng);
    }
}

int main(int argc, char **argv) {
    random_announce();
    if (argc > 1 && strcmp(posenc_cpu(), argv[1]) != 0) {
        printf("1..1\nok 1 - rotation kernels at level %s # SKIP this CPU has no %s\n", argv[1],
               argv[1]);
        return 0;
    }
    const struct CMUnitTest scalar[] = {cmocka_unit_test(every_level_but_scalar_has_its_kernels)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_but_scalar_has_its_kernels),
        cmocka_unit_test(random_jobs_give_the_bytes_of_the_reference),
        cmocka_unit_test(every_count_of_pairs_gives_the_bytes_of_the_reference),
    };
    if (penc_cpu_level_now() == PENC_CPU_SCALAR)
        return cmocka_run_group_tests(scalar, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
