/* posenc/convert.h - a checkpoint's q and k rows brought into the order of the other pairing. (libposenc-model)
 *
 * "half" and "interleaved" models hold the same rows of W_q and W_k in different order. A conversion moves whole rows
 * and computes nothing: each head's rotary rows, with everything that has one row or one number for each of them
 * (biases, norm gains, scales, LoRA's B). All other tensors and metadata stay as they are.
 *
 *   posenc_conversion_options options = POSENC_CONVERSION_OPTIONS_INIT;
 *   options.to = POSENC_PAIRING_INTERLEAVED;
 *   if (posenc_conversion_create("models/mine", &options, &conversion, &error)) ...   all checks; nothing is written
 *   if (posenc_conversion_write(conversion, "models/other", NULL, &error)) ...
 *   posenc_conversion_free(conversion);
 *
 * A file with moved rows gets one metadata key, "posenc.pairing", that tells pairing and shape, and becomes 4096 bytes
 * longer by it. The conversion back takes it out: there and back gives the same bytes. docs/conversion.md has the rules.
 *
 * Thread-safety: a conversion is immutable; several threads may write it to different places.
 * SPDX-License-Identifier: MIT */
#ifndef POSENC_CONVERT_H
#define POSENC_CONVERT_H

#include "posenc/checkpoint.h"
#include "posenc/frequencies.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What to convert. */
typedef struct posenc_conversion_options {
    size_t size;
    posenc_pairing to;
    /* What the rows are in now. UNDETERMINED: what the file's record says; else the other one of `to`, unless
     * programs assume `to` already by the model's name. */
    posenc_detected from;
    /* Members that are 0 are read: from the record, the configuration beside the weights, the file. A member that
     * contradicts those is refused unless forced. */
    posenc_attention_shape shape;
    int force; /* 1: convert in spite of what docs/conversion.md lists as refused unless forced */
    size_t
        judge_layers; /* so many layers' weights are judged as posenc_pair_powers_judge does, to warn where they
                          * contradict `from`; 0: 4, POSENC_ALL_LAYERS: none */
} posenc_conversion_options;

#define POSENC_CONVERSION_OPTIONS_INIT                                                             \
    {                                                                                              \
        sizeof(posenc_conversion_options), POSENC_PAIRING_HALF, POSENC_DETECTED_UNDETERMINED,      \
            POSENC_ATTENTION_SHAPE_INIT, 0, 0                                                      \
    }

/* A conversion that has been checked. */
typedef struct posenc_conversion posenc_conversion;

/* Finds out what is to move and checks everything; writes nothing. `path` is as in posenc_pair_powers_read; adapters
 * (LoRA) are checkpoints too. On failure *conversion is NULL. Freed with posenc_conversion_free. Fails with IO, FORMAT,
 * OUT_OF_MEMORY; with OUT_OF_RANGE (a shape that contradicts the tensors: file, tensor and numbers are named; a
 * pairing that the record contradicts); with UNSUPPORTED (what cannot be converted, or only when forced: the error
 * says which). */
POSENC_API POSENC_CHECKED posenc_status
posenc_conversion_create(const char *path, const posenc_conversion_options *options,
                         posenc_conversion **conversion, posenc_error *error);

/* NULL is allowed. */
POSENC_API void posenc_conversion_free(posenc_conversion *conversion);

/* What it is. */
typedef struct posenc_conversion_facts {
    posenc_pairing from, to;
    char format[16];          /* "GGUF", "safetensors", "llama2.c" */
    char model_type[64];      /* or the GGUF's architecture, cut; "" if nothing says it */
    posenc_detected implied;  /* what programs assume by that name; UNDETERMINED: not known */
    posenc_detected recorded; /* what the record says; UNDETERMINED: there was none */
    posenc_detected
        judged;       /* what the weights show; UNDETERMINED: nothing, or they were not judged */
    double statistic; /* of that judgement */
    int records;      /* 1: new files get a record, 0: they lose it or cannot have one */
    posenc_attention_shape shape; /* of the first layers that rotate */
    size_t files, changed_files;  /* of weights */
    size_t tensors, moved_tensors;
    uint64_t bytes, moved_bytes; /* of the files; of the tensors that change */
} posenc_conversion_facts;

POSENC_API const posenc_conversion_facts *posenc_conversion_about(
    const posenc_conversion *conversion);

/* One tensor that changes; there are facts.moved_tensors of them, in the order of the files and their data. */
typedef struct posenc_conversion_move {
    const char *file; /* its path; lives as long as the conversion */
    char tensor[512];
    const char *what; /* "weights", "bias", "norm gain", "scales", "LoRA B" ... */
    const char *side; /* "q", "k", "q and k" */
    uint64_t rows;    /* in all; of biases and gains: numbers */
    uint64_t moving;  /* rows that get another place */
    size_t heads;     /* whose rows move: of q and k together where one tensor holds both */
    size_t rotary_dim;
    uint64_t bytes;
} posenc_conversion_move;

/* Fails with OUT_OF_RANGE, or with IO where the file has gone. */
POSENC_API POSENC_CHECKED posenc_status
posenc_conversion_move_at(const posenc_conversion *conversion, size_t index,
                          posenc_conversion_move *move, posenc_error *error);

/* What to know about the result: which programs will read it rightly or wrongly, what was forced, what stays though it
 * may look as if it should move. */
typedef struct posenc_conversion_remark {
    const char *code; /* stable: docs/conversion.md lists them */
    const char *text; /* a sentence */
    int warning;
} posenc_conversion_remark;

POSENC_API size_t posenc_conversion_remark_count(const posenc_conversion *conversion);

/* NULL if `index` is out of range. */
POSENC_API const posenc_conversion_remark *posenc_conversion_remark_at(
    const posenc_conversion *conversion, size_t index);

/* What a call of posenc_conversion_write has done. */
typedef struct posenc_conversion_outcome {
    size_t files_written;  /* of weights, by this call */
    size_t files_missing;  /* of weights, that other parts have not written yet */
    size_t others_written; /* what stands beside the weights, the index too */
    int complete; /* 1: nothing is missing, and this call has written what stands beside them */
} posenc_conversion_outcome;

/* How to write. */
typedef struct posenc_conversion_write_options {
    size_t size;
    /* Only every parts-th file of weights, from number `part` on, counted from 0 in the order of their numbers or
     * names: so that `parts` programs share the work, on machines that share the files. parts 0: all of them. */
    size_t part, parts;
    /* Called now and then with bytes written so far and of all of this part; NULL: not. */
    void (*progress)(void *context, uint64_t done, uint64_t total);
    /* Called for files beside the weights that are not copied since they are weights too, which keep the pairing
     * that they have; NULL: not. */
    void (*left_out)(void *context, const char *name);
    void *context;
    posenc_conversion_outcome *outcome; /* filled unless NULL, after failures too */
} posenc_conversion_write_options;

#define POSENC_CONVERSION_WRITE_OPTIONS_INIT                                                       \
    { sizeof(posenc_conversion_write_options), 0, 0, NULL, NULL, NULL, NULL }

/* Writes the converted checkpoint. `options` may be NULL.
 *
 * A checkpoint that is one file gives the file `out`; one that is a folder or an index the folder `out`, made if it
 * is not there, with the weights under their old names and everything beside them: files and folders, but no hidden
 * folders and no other weights. The parts of a split GGUF go to the folder `out` alone.
 *
 * Every file is written beside its target and takes its name only when whole and on the disk, so that whatever stops
 * a call leaves whole files, old or new. `out` may be the input itself, if that is one file: it is replaced. A call
 * for one part looks in the end whether all files of all parts are there as this conversion makes them (by their
 * sizes, headers and samples of their data); if so it writes what stands beside them, the index last. So whoever
 * finishes last does it, and several may. What a part has to write it writes anew in every call.
 *
 * Fails with IO (the file is named), FORMAT where an input has become shorter, OUT_OF_MEMORY; OUT_OF_RANGE for `part`;
 * UNSUPPORTED, before anything is written, if `out` is the folder of an input of several files, lies inside it, or
 * holds weights that are not of this checkpoint. */
POSENC_API POSENC_CHECKED posenc_status
posenc_conversion_write(const posenc_conversion *conversion, const char *out,
                        const posenc_conversion_write_options *options, posenc_error *error);

/* ---- Two checkpoints ---- */

/* How a tensor of one checkpoint relates to that of another: name, number, word. */
#define POSENC_RELATION_LIST(X)                                                                    \
    X(IDENTICAL, 0, "identical")                                                                   \
    X(PERMUTED, 1, "permuted")   /* the same rows in another order */                              \
    X(DIFFERENT, 2, "different") /* `why` says in what */                                          \
    X(ONLY_A, 3, "only in A")                                                                      \
    X(ONLY_B, 4, "only in B")

typedef enum posenc_relation {
#define POSENC_RELATION_ENTRY(name, number, word) POSENC_RELATION_##name = number,
    POSENC_RELATION_LIST(POSENC_RELATION_ENTRY)
#undef POSENC_RELATION_ENTRY
} posenc_relation;

/* "permuted"; NULL for other numbers. */
POSENC_API const char *posenc_relation_name(posenc_relation relation);

typedef struct posenc_tensor_match {
    const char *tensor, *tensor_b; /* its names; "" where there is none */
    posenc_relation relation;
    const char *
        why; /* DIFFERENT: "type", "shape", "values", "rows" (too many to look for an order); else NULL */
    uint64_t rows;  /* of a matrix along its first axis, of a vector numbers */
    uint64_t moved; /* rows that stand elsewhere in B */
    /* PERMUTED: A's rows, in the order of the pairing `from`, are in B in that of `to`; UNDETERMINED: another order.
     * With rotary_dim 4 the two orders are one another's inverse and cannot be told apart: `to` is interleaved. */
    posenc_detected from, to;
    size_t heads, rotary_dim;
    uint64_t first,
        stride; /* the first head's rotary row; from head to head, 0 where that varies or there is one */
} posenc_tensor_match;

typedef struct posenc_check_options {
    size_t size;
    posenc_attention_shape
        shape; /* of A, as in posenc_conversion_options; helps to name orders where rows are alike */
    /* Called for every tensor, in the order of A's files, then those that only B has; NULL: not. */
    void (*report)(void *context, const posenc_tensor_match *match);
    /* Called now and then with bytes of A that were compared; NULL: not. */
    void (*progress)(void *context, uint64_t done, uint64_t total);
    void *context;
} posenc_check_options;

#define POSENC_CHECK_OPTIONS_INIT                                                                  \
    { sizeof(posenc_check_options), POSENC_ATTENTION_SHAPE_INIT, NULL, NULL, NULL }

typedef struct posenc_check_summary {
    size_t counts[5];         /* of each relation */
    posenc_detected from, to; /* what all permuted tensors agree in; else UNDETERMINED */
} posenc_check_summary;

/* Says which tensors of two checkpoints are the same, which have the same rows in another order and in which, and
 * which differ. Tensors are matched by name; names of transformers, GGUF and llama2.c are translated. Metadata are
 * not compared. Rows are streamed: less than 48 MiB of memory. `options` may be NULL. Fails as opening does. */
POSENC_API POSENC_CHECKED posenc_status
posenc_checkpoints_compare(const char *a, const char *b, const posenc_check_options *options,
                           posenc_check_summary *summary, posenc_error *error);

#ifdef __cplusplus
}
#endif
#endif
