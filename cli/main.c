/* posenc: the program. SPDX-License-Identifier: MIT */
#include "commands.h"
#include "posenc/cpu.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const cli_command *const commands[] = {
#define CLI_ENTRY(name) &command_##name,
    CLI_COMMANDS(CLI_ENTRY)
#undef CLI_ENTRY
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void print_usage(FILE *to) {
    fprintf(to,
            "posenc %s: positional encodings for transformers\n\n"
            "usage: posenc COMMAND [options]\n\ncommands:\n",
            posenc_version());
    for (int i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-12s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(to, "\nposenc COMMAND --help tells a command's options; posenc --version the version.\n"
                "Exit status: 0 done, 1 the answer is no, 2 bad usage or input.\n");
}

int main(int argc, char **argv) {
    (void)signal(SIGXFSZ, SIG_IGN); /* files that grow beyond a limit are an error that is told */
    if (argc < 2) {
        print_usage(stderr);
        return CLI_BAD_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_usage(stdout);
        return CLI_DONE;
    }
    if (strcmp(name, "--version") == 0) {
        printf("posenc %s\n", posenc_version());
        return CLI_DONE;
    }
    posenc_error error;
    if (posenc_cpu_check(&error)) {
        char text[256];
        posenc_error_text(&error, text, sizeof text);
        fprintf(stderr, "posenc: %s\n", text);
        return CLI_BAD_USAGE;
    }
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(name, commands[i]->name) == 0)
            return cli_command_main(commands[i], argc - 1, argv + 1);
    }
    fprintf(stderr, "posenc: \"%s\" is not a command; there are:", name);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(stderr, " %s", commands[i]->name);
    fputc('\n', stderr);
    return CLI_BAD_USAGE;
}
