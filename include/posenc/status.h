/* posenc/status.h - how every function of posenc reports what went wrong.
 *
 * Every function that can fail returns a posenc_status and takes an optional
 * posenc_error, last. Nothing is printed, nothing aborts, no errno is left to
 * read. The error object is the caller's: it needs no initialisation, is written
 * only on failure, and NULL is allowed wherever one is taken. The texts that it
 * points to are constants of the library and live as long as the library does;
 * what comes from a file (a key, a tensor's name, a path) is copied into it.
 *
 * Thread-safety: no function here has state. One error object must not be
 * written by two threads at once.
 *
 * SPDX-License-Identifier: MIT */
#ifndef POSENC_STATUS_H
#define POSENC_STATUS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define POSENC_API     __attribute__((visibility("default")))
#define POSENC_CHECKED __attribute__((warn_unused_result))
#else
#define POSENC_API
#define POSENC_CHECKED
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of these headers; posenc_version() is the version of the library. */
#define POSENC_VERSION_MAJOR 0
#define POSENC_VERSION_MINOR 1
#define POSENC_VERSION_PATCH 0

/* Returns "MAJOR.MINOR.PATCH", a constant. */
POSENC_API const char *posenc_version(void);

/* Every status: name, number, sentence. Numbers never change; new ones are added at the end. */
#define POSENC_STATUS_LIST(X)                                                                      \
    X(OK, 0, "done")                                                                               \
    X(NULL_POINTER, 1, "a required pointer is NULL")                                               \
    X(OUT_OF_RANGE, 2, "an argument is outside its valid range")                                   \
    X(OVERFLOW, 3, "a size or an address computed from the arguments does not fit")                \
    X(OVERLAP, 4, "memory to be written overlaps other memory of the call")                        \
    X(UNSUPPORTED, 5, "this combination of arguments is not supported")                            \
    X(OUT_OF_MEMORY, 6, "memory could not be allocated")                                           \
    X(IO, 7, "the operating system refused to read or write a file")                               \
    X(FORMAT, 8, "a file's bytes are not what its format says")

typedef enum posenc_status {
#define POSENC_STATUS_ENTRY(name, number, sentence) POSENC_##name = number,
    POSENC_STATUS_LIST(POSENC_STATUS_ENTRY)
#undef POSENC_STATUS_ENTRY
} posenc_status;

/* Returns the status' name without prefix, such as "OUT_OF_RANGE"; "UNKNOWN" for other numbers. */
POSENC_API const char *posenc_status_name(posenc_status status);

/* Returns the status' sentence; "unknown status" for other numbers. */
POSENC_API const char *posenc_status_sentence(posenc_status status);

/* A number in an error: which member holds it is told by kind. */
typedef enum posenc_number_kind {
    POSENC_NUMBER_NONE = 0,
    POSENC_NUMBER_INTEGER = 1, /* integer */
    POSENC_NUMBER_SIZE = 2,    /* size */
    POSENC_NUMBER_REAL = 3     /* real */
} posenc_number_kind;

typedef struct posenc_number {
    posenc_number_kind kind;
    union {
        int64_t integer;
        uint64_t size;
        double real;
    } as;
} posenc_number;

/* Room for names and paths in an error, with the terminating NUL; longer ones are cut (names at the end,
 * paths at the front), and what is no printable ASCII or UTF-8 becomes '?'. */
#define POSENC_ERROR_NAME_BYTES 128
#define POSENC_ERROR_FILE_BYTES 256

/* What went wrong. It reads as a sentence: "<argument> of <name> is <value> but must <must> (<limit_name> is
 * <limit>), at <place_name> <place> of <file>". */
typedef struct posenc_error {
    posenc_status status;
    int os_error;           /* errno of the system call that failed, 0 where none did */
    const char *argument;   /* the argument's or field's name, such as "rotary_dim" */
    posenc_number value;    /* what came; kind NONE where it is not a number */
    const char *must;       /* what is valid, such as "be even and from 2 to head_dim" */
    const char *limit_name; /* the bound that `must` speaks of; NULL where it needs none */
    posenc_number limit;
    const char *place_name; /* "index", "byte"; NULL where there is no place */
    int64_t place;
    char name
        [POSENC_ERROR_NAME_BYTES]; /* the key, tensor or entry of the file; "" where there is none */
    char file[POSENC_ERROR_FILE_BYTES]; /* the path of the file at fault; "" where there is none */
    uint64_t reserved[4];
} posenc_error;

/* Writes the error as one sentence with a terminating NUL into `buffer`, cut to `capacity` bytes.
 * Returns the length of the whole sentence without the NUL (as snprintf does), so that a call with
 * capacity 0 tells how much is needed. `buffer` may be NULL if `capacity` is 0. */
POSENC_API size_t posenc_error_text(const posenc_error *error, char *buffer, size_t capacity);

/* What a note tells. */
#define POSENC_NOTE_LIST(X)                                                                        \
    X(DEFAULTED, 0, "was not given and took its default")                                          \
    X(UNKNOWN_KEY, 1, "is no key that is known here; it was not used")                             \
    X(NUMBER_IN_STRING, 2, "is a number written as a string")                                      \
    X(FACTOR_BELOW_1, 3, "is below 1, which shortens the context")                                 \
    X(ORIGINAL_NOT_BELOW_MAXIMUM, 4, "is not below the maximum length")                            \
    X(FACTOR_DIFFERS, 5, "does not follow from the two lengths; it is used as it stands")

typedef enum posenc_note_kind {
#define POSENC_NOTE_ENTRY(name, number, sentence) POSENC_NOTE_##name = number,
    POSENC_NOTE_LIST(POSENC_NOTE_ENTRY)
#undef POSENC_NOTE_ENTRY
} posenc_note_kind;

/* The note's sentence, to stand behind its argument; "unknown note" for other numbers. */
POSENC_API const char *posenc_note_sentence(posenc_note_kind kind);

/* Something that was assumed or looks odd, though it is no error. */
typedef struct posenc_note {
    posenc_note_kind kind;
    const char *argument; /* the member's or key's name */
    posenc_number value;  /* what it is or became; kind NONE where it is no number */
} posenc_note;

/* The caller's list for notes. `count` is set to how many there were, even if more than `capacity`. */
typedef struct posenc_notes {
    posenc_note *notes;
    size_t capacity;
    size_t count;
} posenc_notes;

#ifdef __cplusplus
}
#endif
#endif
