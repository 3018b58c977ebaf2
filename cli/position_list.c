/* Lists of positions as people write them. SPDX-License-Identifier: MIT */
#include "position_list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char grammar[] = "must be N, START:STOP, START:STOP:STEP or a list such as 3,5,-2 "
                              "(for one position P write P:P+1)";

/* Reads numbers separated by ':' up to `end`; returns how many (0 if the text is no such thing). */
static int read_numbers(const char *text, const char *end, double numbers[3]) {
    int count = 0;
    for (;;) {
        char *after;
        if (text == end || count == 3 || strchr(" \t\n+", *text))
            return 0;
        numbers[count++] = strtod(text, &after);
        if (after == text || after > end)
            return 0;
        if (after == end)
            return count;
        if (*after != ':')
            return 0;
        text = after + 1;
    }
}

static int piece_of_numbers(const double numbers[3], int count, position_piece *piece) {
    *piece = (position_piece){numbers[0], 1.0, 1};
    if (count == 1)
        return 1;
    piece->step = count == 3 ? numbers[2] : 1.0;
    double steps = ceil((numbers[1] - numbers[0]) / piece->step);
    if (piece->step == 0.0 || !(steps < 0x1p52))
        return 0;
    piece->count = steps > 0 ? (uint64_t)steps : 0;
    return 1;
}

static int numbers_are_valid(const double numbers[3], int count, int whole) {
    for (int i = 0; i < count; i++) {
        if (!(fabs(numbers[i]) <= 0x1p40) || (whole && numbers[i] != floor(numbers[i])))
            return 0;
    }
    return 1;
}

static int parse_piece(const cli_arguments *arguments, const char *text, const char *end, int whole,
                       position_piece *piece) {
    double numbers[3];
    int count = read_numbers(text, end, numbers);
    int length = (int)(end - text);
    if (count == 0)
        return cli_fail(arguments, "--positions: \"%.*s\" %s", length, text, grammar);
    if (!numbers_are_valid(numbers, count, whole))
        return cli_fail(arguments, "--positions: \"%.*s\" must be made of %snumbers within +-2^40",
                        length, text, whole ? "whole " : "");
    if (!piece_of_numbers(numbers, count, piece))
        return cli_fail(arguments, "--positions: \"%.*s\" must have a step that is not 0", length,
                        text);
    return CLI_DONE;
}

/* A number alone is a count. */
static int parse_count(const cli_arguments *arguments, const char *text, const char *end,
                       position_list *list) {
    position_piece *piece = &list->pieces[0];
    if (piece->start < 0 || piece->start != floor(piece->start))
        return cli_fail(arguments, "--positions: \"%.*s\" is one number and so a count: it %s",
                        (int)(end - text), text, grammar);
    *piece = (position_piece){0.0, 1.0, (uint64_t)piece->start};
    list->count = piece->count;
    return CLI_DONE;
}

/* Room for one piece more than there are commas in [text, end). */
static int make_pieces(const cli_arguments *arguments, const char *text, const char *end,
                       position_list *list) {
    size_t pieces = 1;
    for (const char *at = text; at < end; at++)
        pieces += *at == ',';
    *list = (position_list){.pieces = calloc(pieces, sizeof *list->pieces)};
    return list->pieces ? CLI_DONE : cli_fail(arguments, "no memory for %zu positions", pieces);
}

/* The list in [text, end). */
static int parse_list(const cli_arguments *arguments, const char *text, const char *end, int whole,
                      position_list *list) {
    int status = make_pieces(arguments, text, end, list);
    for (const char *at = text; !status && at <= end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;
        position_piece *piece = &list->pieces[list->piece_count++];
        status = parse_piece(arguments, at, stop, whole, piece);
        list->count += piece->count;
        at = stop + 1;
    }
    if (!status && list->piece_count == 1 && !memchr(text, ':', (size_t)(end - text)))
        status = parse_count(arguments, text, end, list);
    return status;
}

/* The lists of all axes in [text, end), separated by ';'. */
static int parse_axes(const cli_arguments *arguments, const char *text, const char *end, int whole,
                      position_list *first) {
    position_list *last = first;
    for (const char *at = text;;) {
        const char *mark = memchr(at, ';', (size_t)(end - at)), *stop = mark ? mark : end;
        int status = parse_list(arguments, at, stop, whole, last);
        if (!status && last->count != first->count)
            status = cli_fail(arguments, "--positions: the lists of all axes must be equally long");
        if (status || !mark)
            return status;
        last->next = calloc(1, sizeof *last->next);
        if (!last->next)
            return cli_fail(arguments, "no memory for positions");
        last = last->next;
        at = mark + 1;
    }
}

static int count_up(const cli_arguments *arguments, uint64_t count, position_list *list) {
    int status = make_pieces(arguments, "", "", list);
    if (status)
        return status;
    list->pieces[0] = (position_piece){0.0, 1.0, count};
    list->piece_count = 1;
    list->count = count;
    return CLI_DONE;
}

int position_list_get(const cli_arguments *arguments, uint64_t default_count, int whole,
                      position_list *list) {
    const char *text = cli_value(arguments, "positions");
    if (!text)
        return count_up(arguments, default_count, list);
    *list = (position_list){0};
    int status = parse_axes(arguments, text, text + strlen(text), whole, list);
    if (status)
        position_list_free(list);
    return status;
}

position_list *position_lists_get(const cli_arguments *arguments, uint64_t default_count,
                                  size_t *count) {
    const char *text = cli_value(arguments, "positions");
    size_t given = 1;
    for (const char *at = text; at && *at; at++)
        given += *at == '/';
    if (given != 1 && given != *count) {
        cli_fail(arguments,
                 "--positions has %zu lists separated by '/' but there are %zu sequences", given,
                 *count);
        return NULL;
    }
    *count = given;
    position_list *lists = calloc(given, sizeof *lists);
    int status = lists ? CLI_DONE : cli_fail(arguments, "no memory for positions");
    if (!status && !text)
        status = count_up(arguments, default_count, lists);
    for (size_t i = 0; !status && text && i < given; i++) {
        const char *end = text + strcspn(text, "/");
        status = parse_axes(arguments, text, end, 1, &lists[i]);
        if (!status && lists[i].count != lists[0].count)
            status =
                cli_fail(arguments, "--positions: the lists of all sequences must be equally long");
        text = *end ? end + 1 : end;
    }
    if (!status)
        return lists;
    position_lists_free(lists, given);
    return NULL;
}

void position_lists_free(position_list *lists, size_t count) {
    for (size_t i = 0; lists && i < count; i++)
        position_list_free(&lists[i]);
    free(lists);
}

void position_list_free(position_list *list) {
    if (list->next)
        position_list_free(list->next);
    free(list->next);
    free(list->pieces);
    *list = (position_list){0};
}

uint64_t position_list_length(const position_list *list) {
    double largest = 0.0;
    for (; list; list = list->next) {
        for (size_t i = 0; i < list->piece_count; i++) {
            const position_piece *piece = &list->pieces[i];
            double last =
                piece->start + piece->step * (double)(piece->count ? piece->count - 1 : 0);
            if (piece->count)
                largest = fmax(largest, fmax(piece->start, last));
        }
    }
    return (uint64_t)largest + 1;
}

void position_list_reals(const position_list *list, uint64_t first, size_t count, double *to) {
    for (size_t i = 0; count; i++) {
        const position_piece *piece = &list->pieces[i];
        for (; first < piece->count && count; first++, count--)
            *to++ = piece->start + piece->step * (double)first;
        first -= piece->count;
    }
}

void position_list_integers(const position_list *list, uint64_t first, size_t count, int64_t *to) {
    for (size_t i = 0; count; i++) {
        const position_piece *piece = &list->pieces[i];
        for (; first < piece->count && count; first++, count--)
            *to++ = (int64_t)piece->start + (int64_t)piece->step * (int64_t)first;
        first -= piece->count;
    }
}
