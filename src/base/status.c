/* Version, status names and the sentence of an error. SPDX-License-Identifier: MIT */
#include "posenc/status.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PENC_TEXT_OF(x) #x
#define PENC_TEXT(x)    PENC_TEXT_OF(x)

const char *posenc_version(void) {
    return PENC_TEXT(POSENC_VERSION_MAJOR) "." PENC_TEXT(POSENC_VERSION_MINOR) "." PENC_TEXT(
        POSENC_VERSION_PATCH);
}

const char *posenc_status_name(posenc_status status) {
    switch (status) {
#define PENC_NAME(name, number, sentence)                                                          \
    case POSENC_##name:                                                                            \
        return #name;
        POSENC_STATUS_LIST(PENC_NAME)
#undef PENC_NAME
    }
    return "UNKNOWN";
}

const char *posenc_status_sentence(posenc_status status) {
    switch (status) {
#define PENC_SENTENCE(name, number, sentence)                                                      \
    case POSENC_##name:                                                                            \
        return sentence;
        POSENC_STATUS_LIST(PENC_SENTENCE)
#undef PENC_SENTENCE
    }
    return "unknown status";
}

const char *posenc_note_sentence(posenc_note_kind kind) {
    switch (kind) {
#define PENC_SENTENCE(name, number, sentence)                                                      \
    case POSENC_NOTE_##name:                                                                       \
        return sentence;
        POSENC_NOTE_LIST(PENC_SENTENCE)
#undef PENC_SENTENCE
    }
    return "unknown note";
}

/* A text under construction in the caller's buffer: what does not fit is counted and dropped. */
typedef struct penc_text {
    char *buffer;
    size_t capacity, length;
} penc_text;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
penc_text_add(penc_text *text, const char *format, ...) {
    size_t room = text->capacity > text->length ? text->capacity - text->length : 0;
    va_list arguments;
    va_start(arguments, format);
    int added = vsnprintf(room ? text->buffer + text->length : NULL, room, format, arguments);
    va_end(arguments);
    if (added > 0)
        text->length += (size_t)added;
}

static void penc_text_number(penc_text *text, const posenc_number *number) {
    switch (number->kind) {
    case POSENC_NUMBER_INTEGER:
        penc_text_add(text, "%" PRId64, number->as.integer);
        break;
    case POSENC_NUMBER_SIZE:
        penc_text_add(text, "%" PRIu64, number->as.size);
        break;
    case POSENC_NUMBER_REAL:
        penc_text_add(text, "%.17g", number->as.real);
        break;
    case POSENC_NUMBER_NONE:
        break;
    }
}

size_t posenc_error_text(const posenc_error *error, char *buffer, size_t capacity) {
    penc_text text = {buffer, capacity, 0};
    if (capacity)
        buffer[0] = '\0';
    if (!error || error->status == POSENC_OK) {
        penc_text_add(&text, "no error");
        return text.length;
    }
    penc_text_add(&text, "%s", error->argument ? error->argument : "the call");
    if (error->name[0])
        penc_text_add(&text, " of %s", error->name);
    if (error->value.kind != POSENC_NUMBER_NONE) {
        penc_text_add(&text, " is ");
        penc_text_number(&text, &error->value);
        penc_text_add(&text, " but");
    }
    penc_text_add(&text, " must %s", error->must ? error->must : "be valid");
    if (error->limit_name) {
        penc_text_add(&text, " (%s is ", error->limit_name);
        penc_text_number(&text, &error->limit);
        penc_text_add(&text, ")");
    }
    if (error->place_name)
        penc_text_add(&text, ", at %s %" PRId64, error->place_name, error->place);
    if (error->file[0])
        penc_text_add(&text, "%s %s", error->place_name ? " of" : ", in", error->file);
    if (error->os_error)
        penc_text_add(&text, ": %s", strerror(error->os_error));
    return text.length;
}
