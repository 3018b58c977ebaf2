/* Where the files of a converted checkpoint go. SPDX-License-Identifier: MIT */
#include "checkpoint/conversion_place.h"

#include "base/fail.h"
#include "formats/folder_copy.h"
#include "formats/model_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *penc_conversion_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int penc_name_begins(const char *name, const char *begin) {
    return strncmp(name, begin, strlen(begin)) == 0;
}

static int penc_name_ends(const char *name, const char *end) {
    size_t length = strlen(name), end_length = strlen(end);
    return length >= end_length && strcmp(name + length - end_length, end) == 0;
}

int penc_is_name_of_weights(const char *name) {
    static const char *const ends[] = {".safetensors", ".safetensors.index.json",
                                       ".gguf",        ".pth",
                                       ".pt",          ".ckpt",
                                       ".h5",          ".msgpack",
                                       ".onnx"};
    if (penc_name_begins(name, "mmproj"))
        return 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (penc_name_ends(name, ends[i]))
            return 1;
    }
    return penc_name_begins(name, "pytorch_model") || penc_name_begins(name, "adapter_model");
}

int penc_conversion_is_input(const penc_conversion_place *place, const char *name) {
    for (size_t i = 0; i < penc_conversion_files(place->conversion); i++) {
        if (strcmp(penc_conversion_name(penc_conversion_path(place->conversion, i)), name) == 0)
            return 1;
    }
    return 0;
}

char *penc_conversion_target(const penc_conversion_place *place, size_t file) {
    const char *name = penc_conversion_name(penc_conversion_path(place->conversion, file));
    return place->is_folder ? penc_path_join(place->out, "/", name, NULL)
                            : penc_path_join(place->out, NULL);
}

void penc_conversion_place_free(penc_conversion_place *place) {
    free(place->from);
    place->from = NULL;
}

/* ---- Refusals ---- */

static posenc_status penc_place_fail(const penc_conversion_place *place, const char *must,
                                     posenc_error *error) {
    penc_fail(error, POSENC_UNSUPPORTED, "out", must);
    penc_fail_file(error, place->out);
    return POSENC_UNSUPPORTED;
}

static posenc_status penc_place_no_memory(posenc_error *error) {
    return penc_fail(error, POSENC_OUT_OF_MEMORY, "out", "fit into memory");
}

static int penc_is_same(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The folder that holds `path`, whether it is there or not; to be freed. NULL if memory is out. */
static char *penc_parent_of(const char *path) {
    size_t length = strlen(path);
    while (length && path[length - 1] == '/')
        length--;
    while (length && path[length - 1] != '/')
        length--;
    char *parent = penc_path_join(length ? path : "./", NULL);
    if (parent && length)
        parent[length] = '\0';
    return parent;
}

/* Goes up from the folder that holds `out` to the root. */
static posenc_status penc_place_check_inside(const penc_conversion_place *place,
                                             const struct stat *from, posenc_error *error) {
    posenc_status status = POSENC_OK;
    char *path = penc_parent_of(place->out);
    struct stat above, last = {0};
    while (path && !status && stat(path, &above) == 0 && !penc_is_same(&above, &last)) {
        if (penc_is_same(&above, from))
            status = penc_place_fail(place, "not lie in the folder that is converted", error);
        last = above;
        char *next = penc_path_join(path, "/..", NULL);
        free(path);
        path = next;
    }
    if (!path)
        status = penc_place_no_memory(error);
    free(path);
    return status;
}

/* Programs that look for weights by their names must not find others than these. */
static posenc_status penc_place_see(void *context, const char *name, posenc_error *error) {
    const penc_conversion_place *place = context;
    if (name[0] == '.' || !penc_is_name_of_weights(name) || penc_conversion_is_input(place, name) ||
        strcmp(name, penc_conversion_name(place->conversion->path.weights)) == 0)
        return POSENC_OK;
    penc_fail(error, POSENC_UNSUPPORTED, "out",
              "hold no other weights, which programs could take for these");
    penc_fail_file(error, place->out);
    penc_fail_name(error, name, strlen(name));
    return POSENC_UNSUPPORTED;
}

static posenc_status penc_place_check_folder(penc_conversion_place *place, posenc_error *error) {
    struct stat from, out;
    if (stat(place->from, &from) != 0) {
        penc_fail_system(error, errno, "path", "name a folder that can be read");
        penc_fail_file(error, place->from);
        return POSENC_IO;
    }
    int is_there = stat(place->out, &out) == 0;
    if (is_there && penc_is_same(&from, &out)) {
        place->takes_others = 0; /* they are there */
        return penc_conversion_files(place->conversion) < 2
                   ? POSENC_OK
                   : penc_place_fail(
                         place,
                         "be another folder than that of the checkpoint, which has several files: "
                         "a stop in between would leave it half converted",
                         error);
    }
    posenc_status status = penc_place_check_inside(place, &from, error);
    if (!status && is_there && S_ISDIR(out.st_mode))
        status = penc_folder_walk(place->out, penc_place_see, place, error);
    return status;
}

posenc_status penc_conversion_place_of(const posenc_conversion *conversion, const char *out,
                                       penc_conversion_place *place, posenc_error *error) {
    const penc_model_path *path = &conversion->path;
    int is_index = penc_name_ends(path->weights, ".json");
    *place = (penc_conversion_place){.conversion = conversion, .out = out};
    place->takes_others =
        is_index || path->origin == PENC_MODEL_FOLDER || path->origin == PENC_MODEL_HUGGING_FACE;
    place->is_folder = place->takes_others || penc_conversion_files(conversion) > 1;
    if (!place->is_folder)
        return POSENC_OK;
    place->from = penc_parent_of(path->weights);
    posenc_status status =
        place->from ? penc_place_check_folder(place, error) : penc_place_no_memory(error);
    if (status)
        penc_conversion_place_free(place);
    return status;
}
