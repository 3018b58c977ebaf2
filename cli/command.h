/* Commands and their options: one table serves parsing and --help. SPDX-License-Identifier: MIT */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "posenc/dtype.h"
#include "posenc/status.h"

/* Exit statuses that scripts rely on. */
enum { CLI_DONE = 0, CLI_NO = 1, CLI_BAD_USAGE = 2 };

typedef struct cli_option {
    const char *name;        /* without dashes; a single letter is a short option */
    const char *placeholder; /* what its value is called; NULL: the option takes none */
    const char *help;
} cli_option;

typedef struct cli_arguments cli_arguments;

typedef struct cli_command {
    const char *name;
    const char
        *operands; /* what stands beside options, as in usage; "" for none; [OUT] may be left out */
    int operand_count;         /* how many it takes */
    const char *summary;       /* one line, for the list of commands */
    const char *description;   /* paragraphs of --help */
    const cli_option *options; /* ends with a NULL name */
    const cli_option *more;    /* a second list that several commands share; NULL for none */
    int (*run)(const cli_arguments *arguments);
} cli_command;

/* Parses, answers --help, runs the command. argv[0] is the command's name. Returns the exit status. */
int cli_command_main(const cli_command *command, int argc, char **argv);

/* The value of an option of the command's table; "" if it takes none; NULL if it was not given. */
const char *cli_value(const cli_arguments *arguments, const char *name);
const char *cli_operand(const cli_arguments *arguments, int index); /* NULL if it was left out */
int cli_wants_json(const cli_arguments *arguments);
unsigned cli_threads(const cli_arguments *arguments);

/* Prints "posenc COMMAND: ..." on stderr and returns CLI_BAD_USAGE. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int cli_fail(const cli_arguments *arguments, const char *format, ...);

/* The same for an error of the library; `subject` (a path, or NULL) comes first. */
int cli_fail_error(const cli_arguments *arguments, const char *subject, const posenc_error *error);

/* Read the option `name` where it was given; *value keeps its default otherwise. They return CLI_DONE, or
 * print what is wrong and return CLI_BAD_USAGE. Sizes are whole numbers from `least` on. */
int cli_get_size(const cli_arguments *arguments, const char *name, uint64_t least, uint64_t *value);
int cli_get_integer(const cli_arguments *arguments, const char *name, int64_t *value);
int cli_get_real(const cli_arguments *arguments, const char *name, double *value);
/* One of `count` words; *value gets its index. */
int cli_get_word(const cli_arguments *arguments, const char *name, const char *const *words,
                 int count, int *value);

/* The option --dtype. */
int cli_get_dtype(const cli_arguments *arguments, posenc_dtype *dtype);

#endif
