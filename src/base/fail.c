/* Filling a caller's error object. SPDX-License-Identifier: MIT */
#include "base/fail.h"

#include "base/utf8.h"

#include <string.h>

posenc_status penc_fail(posenc_error *error, posenc_status status, const char *argument,
                        const char *must) {
    if (error) {
        memset(error, 0, sizeof *error);
        error->status = status;
        error->argument = argument;
        error->must = must;
    }
    return status;
}

posenc_status penc_fail_null(posenc_error *error, const char *argument) {
    return penc_fail(error, POSENC_NULL_POINTER, argument, "not be NULL");
}

posenc_status penc_fail_size(posenc_error *error, const char *argument, uint64_t value,
                             const char *must) {
    penc_fail(error, POSENC_OUT_OF_RANGE, argument, must);
    if (error) {
        error->value.kind = POSENC_NUMBER_SIZE;
        error->value.as.size = value;
    }
    return POSENC_OUT_OF_RANGE;
}

posenc_status penc_fail_integer(posenc_error *error, const char *argument, int64_t value,
                                const char *must) {
    penc_fail(error, POSENC_OUT_OF_RANGE, argument, must);
    if (error) {
        error->value.kind = POSENC_NUMBER_INTEGER;
        error->value.as.integer = value;
    }
    return POSENC_OUT_OF_RANGE;
}

posenc_status penc_fail_real(posenc_error *error, const char *argument, double value,
                             const char *must) {
    penc_fail(error, POSENC_OUT_OF_RANGE, argument, must);
    if (error) {
        error->value.kind = POSENC_NUMBER_REAL;
        error->value.as.real = value;
    }
    return POSENC_OUT_OF_RANGE;
}

posenc_status penc_fail_system(posenc_error *error, int os_error, const char *argument,
                               const char *must) {
    penc_fail(error, POSENC_IO, argument, must);
    if (error)
        error->os_error = os_error;
    return POSENC_IO;
}

void penc_fail_limit(posenc_error *error, const char *limit_name, uint64_t limit) {
    if (error) {
        error->limit_name = limit_name;
        error->limit.kind = POSENC_NUMBER_SIZE;
        error->limit.as.size = limit;
    }
}

void penc_fail_place(posenc_error *error, const char *place_name, int64_t place) {
    if (error) {
        error->place_name = place_name;
        error->place = place;
    }
}

/* Control characters, those of two bytes (U+0080 to U+009F) among them, could command a terminal. */
static int penc_is_control(const unsigned char *character) {
    return character[0] < ' ' || character[0] == 0x7f ||
           (character[0] == 0xc2 && character[1] < 0xa0);
}

/* Copies `length` bytes so that a terminal can show them. */
static void penc_copy_shown(char *to, const char *from, size_t length) {
    for (size_t i = 0; i < length;) {
        const unsigned char *character = (const unsigned char *)from + i;
        size_t step = penc_utf8_step(character, length - i);
        int shown = step && !penc_is_control(character);
        if (shown)
            memcpy(to, from + i, step);
        else
            *to = '?';
        to += shown ? step : 1;
        i += step ? step : 1;
    }
    *to = '\0';
}

void penc_fail_name(posenc_error *error, const char *name, size_t length) {
    if (error)
        penc_copy_shown(error->name, name,
                        length < sizeof error->name ? length : sizeof error->name - 1);
}

void penc_fail_file(posenc_error *error, const char *path) {
    if (!error)
        return;
    static const char cut[] = "...";
    size_t length = strlen(path), room = sizeof error->file - 1, mark = sizeof cut - 1;
    if (length <= room) {
        penc_copy_shown(error->file, path, length);
        return;
    }
    memcpy(error->file, cut, mark);
    penc_copy_shown(error->file + mark, path + length - (room - mark), room - mark);
}

posenc_status penc_fail_listed(posenc_error *error, const char *list, int64_t value,
                               const char *must, const char *limit_name, uint64_t limit,
                               size_t index) {
    penc_fail_integer(error, list, value, must);
    penc_fail_limit(error, limit_name, limit);
    penc_fail_place(error, "index", (int64_t)index);
    return POSENC_OUT_OF_RANGE;
}
