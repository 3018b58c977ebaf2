/* A whole small Llama over posenc: loads a llama2.c model and tokenizer, and writes text, greedily, for as long as it
 * is told to.
 *
 *     example_tiny_llama MODEL.bin TOKENIZER.bin [--tokens N] [--cache f32|f16|bf16|int8|fp8_e4m3]
 *         [--window W] [--sinks S] [--pairing interleaved|half] [--reorder] [--ids]
 *
 * What posenc does here: rows of cos and sin for the position at hand, rotating the queries, rotating keys and
 * appending them and the values to a cache of any format, reading the cache back, and moving the sinks.
 *
 * Beyond `window` tokens the text goes on: the window slides, keys keep the positions that they were rotated at, which
 * may grow for ever, and only the first `sinks` tokens, which the model leans on, are moved up behind the window at
 * each step, from float32 originals, so that they lose nothing however often they move.
 *
 * Meta's and llama2.c's files have interleaved pairs. --pairing says which pairs to turn (the wrong ones give
 * nonsense); --reorder brings the rows of wq and wk into the order of halves first, as
 * `posenc convert MODEL.bin HALF.bin --to half --force` does in the file.
 * SPDX-License-Identifier: MIT */
#include "posenc/posenc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *what, const char *why) {
    fprintf(stderr, "tiny_llama: %s: %s\n", what, why);
    exit(1);
}

static void must(posenc_status status, const posenc_error *error) {
    char text[300];
    if (!status)
        return;
    posenc_error_text(error, text, sizeof text);
    die("posenc", text);
}

/* All memory is in one list and goes at the end. */
typedef union room_head {
    union room_head *next;
    max_align_t align;
} room_head;

static room_head *rooms;

static void *room(size_t count, size_t size) {
    room_head *head = NULL;
    if (count <= (SIZE_MAX / 2 - sizeof *head) / size)
        head = calloc(1, sizeof *head + count * size);
    if (!head)
        die("memory", "there is not enough");
    head->next = rooms;
    rooms = head;
    return head + 1;
}

static void leave_rooms(void) {
    while (rooms) {
        room_head *next = rooms->next;
        free(rooms);
        rooms = next;
    }
}

/* --- The model file: seven numbers, then float32 weights in this order --------------------------- */

typedef struct model {
    size_t dim, hidden, layers, heads, kv_heads, vocabulary, most_tokens, head_dim, kv_dim;
    const float *embedding, *att_norm, *wq, *wk, *wv, *wo, *ffn_norm, *w1, *w2, *w3, *last_norm,
        *output;
    float *weights;
} model;

static void *read_file(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    if (!file)
        die(path, "cannot be opened");
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    if (size < 0)
        die(path, "has no size");
    char *data = room((size_t)size, 1);
    *bytes = fread(data, 1, (size_t)size, file);
    fclose(file);
    return data;
}

static model load_model(const char *path) {
    size_t bytes, used = 0;
    char *data = read_file(path, &bytes);
    int32_t head[7];
    model m;
    if (bytes < sizeof head)
        die(path, "is too short for a model");
    memcpy(head, data, sizeof head);
    for (int i = 0; i < 7; i++) {
        if ((head[i] < 1 && !(i == 5 && head[i] < -1)) || head[i] > 1 << 20)
            die(path, "does not begin with the sizes of a model");
    }
    m.dim = (size_t)head[0];
    m.hidden = (size_t)head[1];
    m.layers = (size_t)head[2];
    m.heads = (size_t)head[3];
    m.kv_heads = (size_t)head[4];
    m.vocabulary = (size_t)abs(head[5]);
    m.most_tokens = (size_t)head[6];
    if (m.dim % m.heads || m.heads % m.kv_heads || m.dim / m.heads % 2)
        die(path, "has heads that do not divide its width");
    m.head_dim = m.dim / m.heads;
    m.kv_dim = m.head_dim * m.kv_heads;
    m.weights = room(bytes - sizeof head, 1);
    memcpy(m.weights, data + sizeof head, bytes - sizeof head);
    const struct {
        const float **to;
        size_t count;
    } parts[] = {
        {&m.embedding, m.vocabulary * m.dim},
        {&m.att_norm, m.layers * m.dim},
        {&m.wq, m.layers * m.dim * m.dim},
        {&m.wk, m.layers * m.dim * m.kv_dim},
        {&m.wv, m.layers * m.dim * m.kv_dim},
        {&m.wo, m.layers * m.dim * m.dim},
        {&m.ffn_norm, m.layers * m.dim},
        {&m.w1, m.layers * m.dim * m.hidden},
        {&m.w2, m.layers * m.dim * m.hidden},
        {&m.w3, m.layers * m.dim * m.hidden},
        {&m.last_norm, m.dim},
        {&m.output, m.most_tokens * m.head_dim},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        *parts[i].to = m.weights + used;
        used += parts[i].count; /* the last part is old tables of cos and sin: not needed */
    }
    m.output = head[5] > 0 ? m.embedding : m.weights + used;
    if (used + (head[5] > 0 ? 0 : m.vocabulary * m.dim) > (bytes - sizeof head) / sizeof(float))
        die(path, "is shorter than its sizes say");
    return m;
}

/* Rows of each head from interleaved pairs to halves: row 2j to j, row 2j + 1 to j + head_dim / 2. */
static void reorder_rows(const model *m, const float *weights, size_t heads) {
    float *w = m->weights + (weights - m->weights), *one = room(m->head_dim * m->dim, sizeof *one);
    for (size_t head = 0; head < m->layers * heads; head++, w += m->head_dim * m->dim) {
        memcpy(one, w, m->head_dim * m->dim * sizeof *one);
        for (size_t row = 0; row < m->head_dim; row++)
            memcpy(w + (row / 2 + row % 2 * (m->head_dim / 2)) * m->dim, one + row * m->dim,
                   m->dim * sizeof *one);
    }
}

/* --- The tokenizer: scores and pieces of text ------------------------------------------------------ */

static char **load_pieces(const char *path, size_t count) {
    size_t bytes, at = sizeof(int32_t);
    char *data = read_file(path, &bytes), **pieces = room(count, sizeof *pieces);
    for (size_t i = 0; i < count; i++) {
        int32_t length;
        at += sizeof(float); /* the score serves encoding only */
        if (at + sizeof length > bytes)
            die(path, "has fewer pieces than the model");
        memcpy(&length, data + at, sizeof length);
        at += sizeof length;
        if (length < 0 || (size_t)length > bytes - at)
            die(path, "has a piece that is longer than the file");
        pieces[i] = room((size_t)length + 1, 1);
        memcpy(pieces[i], data + at, (size_t)length);
        at += (size_t)length;
    }
    return pieces;
}

/* "<0x0A>" stands for a byte; a text does not begin with a space. */
static void print_piece(const char *piece, int is_first) {
    unsigned byte;
    if (sscanf(piece, "<0x%02X>", &byte) == 1)
        putchar((int)byte);
    else
        fputs(is_first && *piece == ' ' ? piece + 1 : piece, stdout);
}

/* --- The cache: `window` slots a layer; the first `sinks` tokens keep theirs, the others take turns -- */

typedef struct memory {
    posenc_cache *keys, *values,
        *originals; /* one each layer; originals: the sinks' keys in float32 */
    posenc_frequencies *frequencies;
    size_t window, sinks;
    int64_t *slots, *sink_positions, *moved; /* slots: 0 ... window - 1 */
} memory;

static posenc_cache new_cache(posenc_cache_format format, size_t slots, const model *m) {
    size_t bytes = posenc_cache_format_bytes(format);
    void *data = room(slots * m->kv_dim, bytes);
    posenc_cache cache = posenc_cache_dense(format, data, 1, slots, m->kv_heads, m->head_dim);
    if (bytes == 1) {
        cache.scales = room(slots * m->kv_heads, sizeof(float));
        cache.scale_count = slots * m->kv_heads;
    }
    return cache;
}

static memory new_memory(const model *m, posenc_cache_format format, posenc_pairing pairing,
                         size_t window, size_t sinks) {
    memory k = {.window = window, .sinks = sinks};
    posenc_spec spec = POSENC_SPEC_INIT;
    posenc_error error;
    spec.head_dim = m->head_dim;
    spec.pairing = pairing;
    must(posenc_frequencies_create(&spec, 0, &k.frequencies, NULL, &error), &error);
    k.keys = room(m->layers, sizeof *k.keys);
    k.values = room(m->layers, sizeof *k.values);
    k.originals = room(m->layers, sizeof *k.originals);
    for (size_t layer = 0; layer < m->layers; layer++) {
        k.keys[layer] = new_cache(format, window, m);
        k.values[layer] = new_cache(format, window, m);
        k.originals[layer] = new_cache(POSENC_CACHE_F32, sinks ? sinks : 1, m);
    }
    k.slots = room(window, sizeof *k.slots);
    k.sink_positions = room(sinks, sizeof *k.sink_positions);
    k.moved = room(sinks, sizeof *k.moved);
    for (size_t i = 0; i < window; i++)
        k.slots[i] = (int64_t)i;
    for (size_t i = 0; i < sinks; i++)
        k.sink_positions[i] = (int64_t)i;
    return k;
}

static int64_t slot_of(const memory *k, size_t position) {
    if (position < k->window)
        return (int64_t)position;
    return (int64_t)(k->sinks + (position - k->sinks) % (k->window - k->sinks));
}

static void append(const posenc_rotation *rotation, const posenc_append_item *keys,
                   const posenc_append_item *values, int64_t slot) {
    posenc_slots slots = POSENC_SLOTS_INIT;
    posenc_error error;
    slots.slot_ids = &slot;
    must(posenc_cache_append(rotation, keys, values, &slots, NULL, &error), &error);
}

/* Keys and values of the token at `position`; those of a sink twice. */
static void remember(memory *k, const model *m, size_t layer, size_t position,
                     const posenc_rotation *rotation, const float *key, const float *value) {
    posenc_tensor shape = posenc_tensor_dense(POSENC_F32, 1, 1, m->kv_heads, m->head_dim);
    posenc_append_item keys = {&shape, key, &k->keys[layer], NULL};
    posenc_append_item values = {&shape, value, &k->values[layer], NULL};
    posenc_append_item sink = {&shape, key, &k->originals[layer], NULL};
    append(rotation, &keys, &values, slot_of(k, position));
    if (position < k->sinks)
        append(rotation, &sink, NULL, (int64_t)position);
}

/* Moves the sinks to where they would be if no token between them and the window had been. */
static void move_sinks(memory *k, const model *m, size_t position) {
    if (position < k->window || !k->sinks)
        return;
    for (size_t i = 0; i < k->sinks; i++)
        k->moved[i] = (int64_t)(position + 1 - k->window + i);
    for (size_t layer = 0; layer < m->layers; layer++) {
        posenc_shift shift = POSENC_SHIFT_INIT;
        posenc_error error;
        shift.from = k->frequencies;
        shift.slots = k->slots; /* the sinks are the first ones */
        shift.count = k->sinks;
        shift.from_positions = k->sink_positions;
        shift.to_positions = k->moved;
        shift.originals = &k->originals[layer];
        must(posenc_cache_shift(&k->keys[layer], &shift, &error), &error);
    }
}

/* --- One token ------------------------------------------------------------------------------------ */

static void multiply(float *y, const float *w, const float *x, size_t rows, size_t columns) {
    for (size_t row = 0; row < rows; row++) {
        float sum = 0.0f;
        for (size_t i = 0; i < columns; i++)
            sum += w[row * columns + i] * x[i];
        y[row] = sum;
    }
}

static void normalise(float *y, const float *x, const float *weight, size_t n) {
    posenc_tensor shape = posenc_tensor_dense(POSENC_F32, 1, 1, 1, n);
    posenc_norm norm = POSENC_NORM_INIT;
    posenc_head_stages stages = POSENC_HEAD_STAGES_INIT;
    posenc_error error;
    norm.epsilon = 1e-5;
    norm.weight = weight;
    stages.norm = &norm;
    must(posenc_norm_rotate(NULL, &stages, &shape, x, y, NULL, &error), &error);
}

/* Softmax of q . k over the first `live` slots, times v; keys[slot][kv head][channel]. */
static void attend(const model *m, const float *q, const float *keys, const float *values,
                   size_t live, float *scores, float *out) {
    for (size_t head = 0; head < m->heads; head++) {
        size_t at = head / (m->heads / m->kv_heads) * m->head_dim;
        float *to = out + head * m->head_dim, most = -INFINITY, sum = 0.0f;
        for (size_t t = 0; t < live; t++) {
            multiply(&scores[t], keys + t * m->kv_dim + at, q + head * m->head_dim, 1, m->head_dim);
            scores[t] /= sqrtf((float)m->head_dim);
            most = scores[t] > most ? scores[t] : most;
        }
        memset(to, 0, m->head_dim * sizeof *to);
        for (size_t t = 0; t < live; t++)
            sum += scores[t] = expf(scores[t] - most);
        for (size_t t = 0; t < live; t++) {
            for (size_t i = 0; i < m->head_dim; i++)
                to[i] += scores[t] / sum * values[t * m->kv_dim + at + i];
        }
    }
}

/* Memory that every token uses anew. */
typedef struct work {
    float *x, *y, *q, *k, *v, *z, *gate, *keys, *values, *scores, *logits;
} work;

static work new_work(const model *m, size_t window) {
    work w;
    float **const vectors[] = {&w.x, &w.y, &w.q, &w.k, &w.v};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        *vectors[i] = room(m->dim, sizeof(float));
    w.z = room(m->hidden > m->dim ? m->hidden : m->dim, sizeof(float));
    w.gate = room(m->hidden, sizeof(float));
    w.keys = room(window * m->kv_dim, sizeof(float));
    w.values = room(window * m->kv_dim, sizeof(float));
    w.scores = room(window, sizeof(float));
    w.logits = room(m->vocabulary, sizeof(float));
    return w;
}

static void attention(const model *m, memory *k, work *w, const posenc_rotation *rotation,
                      size_t layer, size_t position) {
    size_t live = position + 1 < k->window ? position + 1 : k->window;
    posenc_tensor q_shape = posenc_tensor_dense(POSENC_F32, 1, 1, m->heads, m->head_dim);
    posenc_tensor shape = posenc_tensor_dense(POSENC_F32, 1, live, m->kv_heads, m->head_dim);
    posenc_error error;
    normalise(w->y, w->x, m->att_norm + layer * m->dim, m->dim);
    multiply(w->q, m->wq + layer * m->dim * m->dim, w->y, m->dim, m->dim);
    multiply(w->k, m->wk + layer * m->dim * m->kv_dim, w->y, m->kv_dim, m->dim);
    multiply(w->v, m->wv + layer * m->dim * m->kv_dim, w->y, m->kv_dim, m->dim);
    must(posenc_rotate(rotation, &q_shape, w->q, w->q, NULL, &error), &error);
    remember(k, m, layer, position, rotation, w->k, w->v);
    must(posenc_cache_read(&k->keys[layer], k->slots, live, &shape, w->keys, &error), &error);
    must(posenc_cache_read(&k->values[layer], k->slots, live, &shape, w->values, &error), &error);
    attend(m, w->q, w->keys, w->values, live, w->scores, w->y);
    multiply(w->z, m->wo + layer * m->dim * m->dim, w->y, m->dim, m->dim);
    for (size_t i = 0; i < m->dim; i++)
        w->x[i] += w->z[i];
}

static void feed_forward(const model *m, work *w, size_t layer) {
    size_t at = layer * m->dim * m->hidden;
    normalise(w->y, w->x, m->ffn_norm + layer * m->dim, m->dim);
    multiply(w->gate, m->w1 + at, w->y, m->hidden, m->dim);
    multiply(w->z, m->w3 + at, w->y, m->hidden, m->dim);
    for (size_t i = 0; i < m->hidden; i++)
        w->gate[i] *= w->z[i] / (1.0f + expf(-w->gate[i]));
    multiply(w->y, m->w2 + at, w->gate, m->dim, m->hidden);
    for (size_t i = 0; i < m->dim; i++)
        w->x[i] += w->y[i];
}

/* The most likely token after `token`. */
static size_t next_token(const model *m, memory *k, work *w, size_t token, size_t position) {
    float cos[POSENC_MAX_AXES * 256], sin[POSENC_MAX_AXES * 256];
    const int64_t place = (int64_t)position;
    posenc_rows rows = POSENC_ROWS_INIT;
    posenc_rotation rotation;
    posenc_error error;
    size_t best = 0;
    rows.cos = cos;
    rows.sin = sin;
    must(posenc_angles(k->frequencies, &place, 1, &rows, &error), &error);
    must(posenc_rotation_of(k->frequencies, &rows, 1, &rotation, &error), &error);
    move_sinks(k, m, position);
    memcpy(w->x, m->embedding + token * m->dim, m->dim * sizeof *w->x);
    for (size_t layer = 0; layer < m->layers; layer++) {
        attention(m, k, w, &rotation, layer, position);
        feed_forward(m, w, layer);
    }
    normalise(w->x, w->x, m->last_norm, m->dim);
    multiply(w->logits, m->output, w->x, m->vocabulary, m->dim);
    for (size_t i = 1; i < m->vocabulary; i++)
        best = w->logits[i] > w->logits[best] ? i : best;
    return best;
}

/* --- The program ---------------------------------------------------------------------------------- */

typedef struct options {
    const char *model, *tokenizer;
    size_t tokens, window, sinks;
    posenc_cache_format format;
    posenc_pairing pairing;
    int reorder, ids;
} options;

static posenc_cache_format format_of(const char *name) {
    for (int i = 0; i < 16; i++) {
        const char *known = posenc_cache_format_name((posenc_cache_format)i);
        if (known && strcmp(known, name) == 0)
            return (posenc_cache_format)i;
    }
    die(name, "is no format of a cache: f32, f16, bf16, int8 or fp8_e4m3");
    return POSENC_CACHE_F32;
}

static size_t number_of(const char *text) {
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || value > 100000000)
        die(text, "is no number from 0 to 10^8");
    return value;
}

static options parse(int argc, char **argv) {
    options o = {.tokens = 256, .sinks = 4, .pairing = POSENC_PAIRING_INTERLEAVED};
    posenc_error error;
    if (argc < 3)
        die("usage", "example_tiny_llama MODEL.bin TOKENIZER.bin [--tokens N] [--cache FORMAT] "
                     "[--window W] [--sinks S] [--pairing P] [--reorder] [--ids]");
    o.model = argv[1];
    o.tokenizer = argv[2];
    for (int i = 3; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        int takes = 1;
        if (strcmp(argv[i], "--tokens") == 0)
            o.tokens = number_of(value);
        else if (strcmp(argv[i], "--window") == 0)
            o.window = number_of(value);
        else if (strcmp(argv[i], "--sinks") == 0)
            o.sinks = number_of(value);
        else if (strcmp(argv[i], "--cache") == 0)
            o.format = format_of(value);
        else if (strcmp(argv[i], "--pairing") == 0)
            must(posenc_pairing_parse(value, &o.pairing, &error), &error);
        else if (strcmp(argv[i], "--reorder") == 0)
            o.reorder = 1, takes = 0;
        else if (strcmp(argv[i], "--ids") == 0)
            o.ids = 1, takes = 0;
        else
            die(argv[i], "is no option");
        i += takes;
    }
    return o;
}

int main(int argc, char **argv) {
    enum { BEGIN = 1 };
    options o = parse(argc, argv);
    model m = load_model(o.model);
    char **pieces = load_pieces(o.tokenizer, m.vocabulary);
    size_t token = BEGIN;
    o.window = o.window ? o.window : m.most_tokens;
    if (o.window <= o.sinks)
        die("--window", "must be larger than the number of sinks");
    if (m.head_dim > 512)
        die(o.model, "has heads that are too wide for this example");
    if (o.reorder) {
        reorder_rows(&m, m.wq, m.heads);
        reorder_rows(&m, m.wk, m.kv_heads);
    }
    memory k = new_memory(&m, o.format, o.pairing, o.window, o.sinks);
    work w = new_work(&m, o.window);
    if (o.ids)
        printf("%zu\n", token);
    for (size_t position = 0; position + 1 < o.tokens; position++) {
        size_t next = next_token(&m, &k, &w, token, position);
        if (o.ids)
            printf("%zu\n", next);
        else if (next == BEGIN)
            puts("\n---");
        else
            print_piece(pieces[next], token == BEGIN);
        token = next;
    }
    putchar('\n');
    posenc_frequencies_destroy(k.frequencies);
    leave_rooms();
    return 0;
}
