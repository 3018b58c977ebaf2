/* posenc vectors. SPDX-License-Identifier: MIT */
#include "commands.h"
#include "output.h"

#include "embedded_vectors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const cli_option options[] = {
    {"o", "DIR", "where index.json and the arrays go; made if missing"},
    {NULL, NULL, NULL},
};

/* Writes beside the target and renames, so that nobody ever reads half a file. */
static int write_file(const char *folder, const char *name, const unsigned char *bytes,
                      size_t size) {
    size_t length = strlen(folder) + strlen(name) + sizeof "/.new";
    char *path = malloc(length), *fresh = malloc(length);
    int done = 0;
    if (path && fresh) {
        snprintf(path, length, "%s/%s", folder, name);
        snprintf(fresh, length, "%s.new", path);
        FILE *file = fopen(fresh, "wb");
        done = file && fwrite(bytes, 1, size, file) == size;
        if (file && fclose(file))
            done = 0;
        done = done && rename(fresh, path) == 0;
        if (file && !done) {
            int why = errno;
            unlink(fresh);
            errno = why;
        }
    }
    free(path);
    free(fresh);
    return done;
}

static int write_all(const cli_arguments *arguments, const char *folder) {
    if (mkdir(folder, 0777) && errno != EEXIST)
        return cli_fail(arguments, "%s: the folder cannot be made: %s", folder, strerror(errno));
    for (size_t i = 0; i < COUNT(embedded_vector_files); i++) {
        const unsigned char *bytes = embedded_vector_bytes + embedded_vector_files[i].offset;
        if (!write_file(folder, embedded_vector_files[i].name, bytes,
                        embedded_vector_files[i].size))
            return cli_fail(arguments, "%s/%s: cannot be written: %s", folder,
                            embedded_vector_files[i].name, strerror(errno));
    }
    return CLI_DONE;
}

static void report_json(const char *folder) {
    json_open(NULL, '{');
    json_integer("format", EMBEDDED_VECTORS_FORMAT);
    json_integer("content", EMBEDDED_VECTORS_CONTENT);
    json_string("licence", "MIT");
    if (folder)
        json_string("output", folder);
    json_integer("files", (int64_t)COUNT(embedded_vector_files));
    json_integer("bytes", (int64_t)sizeof embedded_vector_bytes);
    json_open("cases", '[');
    for (size_t i = 0; i < COUNT(embedded_vector_cases); i++) {
        json_open(NULL, '{');
        json_string("name", embedded_vector_cases[i].name);
        json_string("kind", embedded_vector_cases[i].kind);
        json_string("catches", embedded_vector_cases[i].catches);
        json_close();
    }
    json_close();
    json_close();
    json_end();
}

static void report_text(const char *folder) {
    if (folder) {
        printf("%s: %zu cases in %zu files, %zu bytes (format %d, content %d, MIT licence).\n"
               "index.json says how each case is run and what it catches.\n",
               folder, COUNT(embedded_vector_cases), COUNT(embedded_vector_files),
               sizeof embedded_vector_bytes, EMBEDDED_VECTORS_FORMAT, EMBEDDED_VECTORS_CONTENT);
        return;
    }
    for (size_t i = 0; i < COUNT(embedded_vector_cases); i++)
        printf("%-13s %-33s %s\n", embedded_vector_cases[i].kind, embedded_vector_cases[i].name,
               embedded_vector_cases[i].catches);
}

static int run(const cli_arguments *arguments) {
    const char *folder = cli_value(arguments, "o");
    if (folder && !*folder)
        return cli_fail(arguments, "-o is empty but must name a folder");
    int status = folder ? write_all(arguments, folder) : CLI_DONE;
    if (status)
        return status;
    if (cli_wants_json(arguments))
        report_json(folder);
    else
        report_text(folder);
    return CLI_DONE;
}

const cli_command command_vectors = {
    "vectors",
    "",
    0,
    "frozen inputs and right outputs, for other people's tests",
    "Lists the cases: rotations, rows, frequencies, sinusoids and ALiBi in every\n"
    "convention, and what each case catches. With -o all of them are written as .npy\n"
    "files with a JSON index, to be kept beside the tests of any implementation.\n\n"
    "  posenc vectors\n"
    "  posenc vectors -o tests/vectors",
    options,
    NULL,
    run};
