/* Lists of positions as people write them. SPDX-License-Identifier: MIT */
#ifndef CLI_POSITION_LIST_H
#define CLI_POSITION_LIST_H

#include "command.h"

#define CLI_POSITIONS_HELP                                                                         \
    "N for 0 ... N-1, START:STOP, START:STOP:STEP\n"                                               \
    "(STOP left out), or a list such as 3,5,1000000,-2"

/* Pieces of positions start, start + step, ...: a list takes no memory for the numbers themselves. */
typedef struct position_piece {
    double start, step;
    uint64_t count;
} position_piece;

typedef struct position_list {
    position_piece *pieces;
    size_t piece_count;
    uint64_t count;
    struct position_list *next; /* the list of the next axis; NULL: there is none */
} position_list;

/* Reads the option --positions (the lists of several axes, equally long, separated by ';'), or makes
 * 0 ... default_count - 1 where it was not given. `whole`: only
 * whole numbers. Prints what is wrong. Free with position_list_free. */
int position_list_get(const cli_arguments *arguments, uint64_t default_count, int whole,
                      position_list *list);

/* The same of `count` sequences, separated by '/': an array of as many lists, or NULL after a message. A single one is
 * for all of them: *count becomes 1. Free with position_lists_free. */
position_list *position_lists_get(const cli_arguments *arguments, uint64_t default_count,
                                  size_t *count);
void position_lists_free(position_list *lists, size_t count);
void position_list_free(position_list *list);

/* The largest position of all axes plus 1, at least 1: the sequence length that a list stands for. */
uint64_t position_list_length(const position_list *list);

/* Writes positions first ... first + count - 1 of the list. */
void position_list_reals(const position_list *list, uint64_t first, size_t count, double *to);
void position_list_integers(const position_list *list, uint64_t first, size_t count, int64_t *to);

#endif
