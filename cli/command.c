/* Parsing by getopt_long from a command's table, and --help from the same table.
 * SPDX-License-Identifier: MIT */
#include "command.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPTIONS = 40, MAX_OPERANDS = 4 };

struct cli_arguments {
    const cli_command *command;
    int option_count;
    const cli_option *option[MAX_OPTIONS];
    const char *value[MAX_OPTIONS];
    const char *operand[MAX_OPERANDS];
    unsigned threads;
};

static const cli_option common_options[] = {
    {"json", NULL, "print JSON instead of text"},
    {"threads", "N", "threads (1); the bytes are the same for any N"},
    {"help", NULL, "print this text"},
    {NULL, NULL, NULL},
};

int cli_fail(const cli_arguments *arguments, const char *format, ...) {
    fflush(stdout);
    fprintf(stderr, "posenc %s: ", arguments->command->name);
    va_list list;
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    return CLI_BAD_USAGE;
}

int cli_fail_error(const cli_arguments *arguments, const char *subject, const posenc_error *error) {
    char text[1024];
    posenc_error_text(error, text, sizeof text);
    /* The sentence may name it already. */
    if (subject && (strcmp(subject, error->file) == 0 || strcmp(subject, error->name) == 0))
        subject = NULL;
    return cli_fail(arguments, "%s%s%s", subject ? subject : "", subject ? ": " : "", text);
}

static int option_index(const cli_arguments *arguments, const char *name) {
    for (int i = 0; i < arguments->option_count; i++) {
        if (strcmp(arguments->option[i]->name, name) == 0)
            return i;
    }
    fprintf(stderr, "posenc: internal fault: no option %s in the table of %s\n", name,
            arguments->command->name);
    exit(CLI_BAD_USAGE);
}

const char *cli_value(const cli_arguments *arguments, const char *name) {
    return arguments->value[option_index(arguments, name)];
}

const char *cli_operand(const cli_arguments *arguments, int index) {
    return arguments->operand[index];
}

int cli_wants_json(const cli_arguments *arguments) {
    return cli_value(arguments, "json") != NULL;
}

unsigned cli_threads(const cli_arguments *arguments) {
    return arguments->threads;
}

static const char *dashes(const cli_option *option) {
    return option->name[1] ? "--" : "-";
}

static void add_options(cli_arguments *arguments, const cli_option *options) {
    for (; options && options->name; options++)
        arguments->option[arguments->option_count++] = options;
}

static void print_help(const cli_arguments *arguments) {
    const cli_command *command = arguments->command;
    printf("usage: posenc %s%s%s [options]\n\n%s\n\noptions:\n", command->name,
           *command->operands ? " " : "", command->operands, command->description);
    for (int i = 0; i < arguments->option_count; i++) {
        const cli_option *option = arguments->option[i];
        char head[64];
        snprintf(head, sizeof head, "%s%s%s%s", dashes(option), option->name,
                 option->placeholder ? " " : "", option->placeholder ? option->placeholder : "");
        if (strlen(head) > 22)
            printf("  %s\n  %-22s  ", head, "");
        else
            printf("  %-22s  ", head);
        for (const char *at = option->help; *at; at++) { /* continuation lines line up */
            putchar(*at);
            if (*at == '\n')
                printf("  %-22s  ", "");
        }
        putchar('\n');
    }
}

/* Tables for getopt_long: long options return 1000 + index, so that they never meet a letter. */
enum { LONG_OPTION = 1000 };

static void make_tables(const cli_arguments *arguments, struct option *longs, char *shorts) {
    *shorts++ = ':'; /* tells a missing value from an unknown option */
    for (int i = 0; i < arguments->option_count; i++) {
        const cli_option *option = arguments->option[i];
        if (option->name[1]) {
            *longs++ =
                (struct option){option->name, option->placeholder ? required_argument : no_argument,
                                NULL, LONG_OPTION + i};
        } else {
            *shorts++ = option->name[0];
            if (option->placeholder)
                *shorts++ = ':';
        }
    }
    *longs = (struct option){NULL, 0, NULL, 0};
    *shorts = '\0';
}

static int option_of_code(const cli_arguments *arguments, int code) {
    if (code >= LONG_OPTION)
        return code - LONG_OPTION;
    const char name[2] = {(char)code, '\0'};
    return option_index(arguments, name);
}

/* Those in brackets, the last ones. */
static int optional_operands(const cli_command *command) {
    int count = 0;
    for (const char *at = command->operands; *at; at++)
        count += *at == '[';
    return count;
}

static int parse(cli_arguments *arguments, int argc, char **argv) {
    struct option longs[MAX_OPTIONS + 1];
    char shorts[2 * MAX_OPTIONS + 2];
    make_tables(arguments, longs, shorts);
    opterr = 0;
    int code;
    while ((code = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        const char *given = argv[optind - 1];
        if (code == '?' || code == ':') {
            const char *fault = code == ':' ? "needs a value" : "is not an option of this command";
            return cli_fail(arguments, "%s %s; see posenc %s --help", given, fault,
                            arguments->command->name);
        }
        int i = option_of_code(arguments, code);
        if (arguments->value[i])
            return cli_fail(arguments, "%s%s is given twice", dashes(arguments->option[i]),
                            arguments->option[i]->name);
        arguments->value[i] = optarg ? optarg : "";
    }
    int operands = argc - optind;
    if (cli_value(arguments, "help"))
        return CLI_DONE;
    if (operands > arguments->command->operand_count)
        return cli_fail(arguments, "\"%s\" is one argument too many; see posenc %s --help",
                        argv[optind + arguments->command->operand_count], arguments->command->name);
    if (operands < arguments->command->operand_count - optional_operands(arguments->command))
        return cli_fail(arguments, "%s is missing; see posenc %s --help",
                        arguments->command->operands, arguments->command->name);
    for (int i = 0; i < operands; i++)
        arguments->operand[i] = argv[optind + i];
    return CLI_DONE;
}

int cli_command_main(const cli_command *command, int argc, char **argv) {
    cli_arguments arguments = {.command = command};
    add_options(&arguments, command->options);
    add_options(&arguments, command->more);
    add_options(&arguments, common_options);
    int status = parse(&arguments, argc, argv);
    if (status)
        return status;
    if (cli_value(&arguments, "help")) {
        print_help(&arguments);
        return CLI_DONE;
    }
    uint64_t threads = 1;
    status = cli_get_size(&arguments, "threads", 1, &threads);
    if (!status && threads > 1024)
        status = cli_fail(&arguments, "--threads is %s but must be from 1 to 1024",
                          cli_value(&arguments, "threads"));
    if (status)
        return status;
    arguments.threads = (unsigned)threads;
    status = command->run(&arguments);
    if (fflush(stdout) || ferror(stdout))
        return cli_fail(&arguments, "standard output cannot be written: %s", strerror(errno));
    return status;
}

int cli_get_size(const cli_arguments *arguments, const char *name, uint64_t least,
                 uint64_t *value) {
    const char *text = cli_value(arguments, name);
    if (!text)
        return CLI_DONE;
    char *end;
    errno = 0;
    unsigned long long parsed = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || parsed < least)
        return cli_fail(arguments, "--%s is \"%s\" but must be a whole number from %llu on", name,
                        text, (unsigned long long)least);
    *value = parsed;
    return CLI_DONE;
}

int cli_get_integer(const cli_arguments *arguments, const char *name, int64_t *value) {
    const char *text = cli_value(arguments, name);
    if (!text)
        return CLI_DONE;
    char *end;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (!*text || *end || errno)
        return cli_fail(arguments, "--%s is \"%s\" but must be a whole number", name, text);
    *value = parsed;
    return CLI_DONE;
}

int cli_get_real(const cli_arguments *arguments, const char *name, double *value) {
    const char *text = cli_value(arguments, name);
    if (!text)
        return CLI_DONE;
    char *end;
    double parsed = strtod(text, &end);
    if (!*text || *end || !(parsed - parsed == 0.0)) /* infinities and NaN fail the difference */
        return cli_fail(arguments, "--%s is \"%s\" but must be a finite number", name, text);
    *value = parsed;
    return CLI_DONE;
}

int cli_get_word(const cli_arguments *arguments, const char *name, const char *const *words,
                 int count, int *value) {
    const char *text = cli_value(arguments, name);
    if (!text)
        return CLI_DONE;
    char list[256] = "";
    for (int i = 0; i < count; i++) {
        if (strcmp(text, words[i]) == 0) {
            *value = i;
            return CLI_DONE;
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", words[i]);
    }
    return cli_fail(arguments, "--%s is \"%s\" but must be one of: %s", name, text, list);
}

int cli_get_dtype(const cli_arguments *arguments, posenc_dtype *dtype) {
    const char *text = cli_value(arguments, "dtype");
    posenc_error error;
    if (text && posenc_dtype_parse(text, dtype, &error))
        return cli_fail(arguments, "--dtype is \"%s\" but must be one of: f64, f32, f16, bf16",
                        text);
    return CLI_DONE;
}
