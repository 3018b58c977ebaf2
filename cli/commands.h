/* The list of commands. SPDX-License-Identifier: MIT */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "command.h"

#define CLI_COMMANDS(X)                                                                            \
    X(demo)                                                                                        \
    X(sinusoidal)                                                                                  \
    X(frequencies)                                                                                 \
    X(angles)                                                                                      \
    X(rotate)                                                                                      \
    X(alibi)                                                                                       \
    X(inspect)                                                                                     \
    X(compare)                                                                                     \
    X(diagnose)                                                                                    \
    X(detect)                                                                                      \
    X(convert)                                                                                     \
    X(vectors)                                                                                     \
    X(bench)

#define CLI_DECLARE(name) extern const cli_command command_##name;
CLI_COMMANDS(CLI_DECLARE)
#undef CLI_DECLARE

#endif
