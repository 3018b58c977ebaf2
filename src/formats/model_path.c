/* Files and folders of models. SPDX-License-Identifier: MIT */
#include "formats/model_path.h"

#include "base/fail.h"
#include "formats/model_names.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int penc_name_ends_with(const char *name, const char *end) {
    size_t length = strlen(name), end_length = strlen(end);
    return length >= end_length && strcmp(name + length - end_length, end) == 0;
}

static posenc_status penc_path_no_memory(posenc_error *error) {
    return penc_fail(error, POSENC_OUT_OF_MEMORY, "path", "fit into memory");
}

/* ---- Folders ---- */

/* What a folder may hold, the most telling first. */
enum { PENC_FIND_INDEX, PENC_FIND_MODEL, PENC_FIND_SAFETENSORS, PENC_FIND_GGUF, PENC_FINDS };

/* For each the first name (in order of bytes) and how many there are. */
typedef struct penc_findings {
    char *names[PENC_FINDS];
    size_t counts[PENC_FINDS];
    int is_adapter, is_pipeline; /* there is an adapter_config.json, a model_index.json */
} penc_findings;

/* Of a split GGUF only the first part counts: NAME-00001-of-00003.gguf. */
static int penc_is_later_part(const char *name) {
    static const char end[] = "-00001-of-00003.gguf";
    size_t length = strlen(name), end_length = sizeof end - 1;
    if (length < end_length)
        return 0;
    const char *part = name + length - end_length;
    return part[0] == '-' && strncmp(part + 6, "-of-", 4) == 0 &&
           strncmp(part + 1, "00001", 5) != 0;
}

/* Which of the findings a name is; -1 for none. */
static int penc_finding_of(const char *name) {
    if (name[0] == '.')
        return -1;
    if (penc_name_ends_with(name, ".safetensors.index.json"))
        return PENC_FIND_INDEX;
    if (strcmp(name, "model.safetensors") == 0)
        return PENC_FIND_MODEL;
    if (penc_name_ends_with(name, ".safetensors"))
        return PENC_FIND_SAFETENSORS;
    /* llama.cpp keeps vision projectors beside models, as mmproj-NAME.gguf. */
    if (!penc_name_ends_with(name, ".gguf") || penc_is_later_part(name) ||
        strncmp(name, "mmproj", 6) == 0)
        return -1;
    return PENC_FIND_GGUF;
}

/* Returns 0 where memory is out. */
static int penc_note_finding(penc_findings *findings, int kind, const char *name) {
    char **first = &findings->names[kind];
    findings->counts[kind]++;
    if (*first && strcmp(*first, name) <= 0)
        return 1;
    char *copy = penc_path_join(name, NULL);
    if (!copy)
        return 0;
    free(*first);
    *first = copy;
    return 1;
}

static posenc_status penc_list_folder(const char *folder, penc_findings *findings,
                                      posenc_error *error) {
    posenc_status status = POSENC_OK;
    DIR *list = opendir(folder);
    if (!list) {
        status = penc_fail_system(error, errno, "path", "name a folder that can be listed");
        penc_fail_file(error, folder);
        return status;
    }
    for (struct dirent *entry = readdir(list); entry && !status; entry = readdir(list)) {
        int kind = penc_finding_of(entry->d_name);
        findings->is_adapter |= strcmp(entry->d_name, "adapter_config.json") == 0;
        findings->is_pipeline |= strcmp(entry->d_name, "model_index.json") == 0;
        if (kind >= 0 && !penc_note_finding(findings, kind, entry->d_name))
            status = penc_path_no_memory(error);
    }
    closedir(list);
    return status;
}

/* Takes a file of the folder if it is there. */
static posenc_status penc_take_config(const char *folder, const char *name, penc_model_path *path,
                                      posenc_error *error) {
    struct stat file;
    if (path->config)
        return POSENC_OK;
    char *config = penc_path_join(folder, "/", name, NULL);
    if (!config)
        return penc_path_no_memory(error);
    penc_model_path_look(path, config);
    if (stat(config, &file) == 0)
        path->config = config;
    else
        free(config);
    return POSENC_OK;
}

/* The first kind that there is says what the weights are, if there is one of it. */
static posenc_status penc_take_weights(const char *folder, const penc_findings *findings,
                                       penc_model_path *path, posenc_error *error) {
    int kind = 0;
    while (kind < PENC_FINDS && !findings->counts[kind])
        kind++;
    if (kind == PENC_FINDS)
        return POSENC_OK;
    path->many_weights = findings->counts[kind] > 1;
    if (path->many_weights)
        return POSENC_OK;
    path->weights = penc_path_join(folder, "/", findings->names[kind], NULL);
    return path->weights ? POSENC_OK : penc_path_no_memory(error);
}

static posenc_status penc_resolve_folder(const char *folder, penc_model_path *path,
                                         posenc_error *error) {
    penc_findings findings = {0};
    posenc_status status = penc_take_config(folder, "config.json", path, error);
    if (!status)
        status = penc_take_config(folder, "params.json", path, error);
    if (!status)
        status = penc_list_folder(folder, &findings, error);
    if (!status)
        status = penc_take_weights(folder, &findings, path, error);
    for (int kind = 0; kind < PENC_FINDS; kind++)
        free(findings.names[kind]);
    if (status || path->config || path->weights)
        return status;
    status = penc_fail(
        error, POSENC_FORMAT, "folder",
        path->many_weights    ? "have one GGUF or safetensors file: name the one meant"
        : findings.is_adapter ? "hold a model, not only an adapter: name the model that its "
                                "adapter_config.json calls base_model_name_or_path"
        : findings.is_pipeline
            ? "hold a model, not a pipeline of diffusers: name the folder of a part of it"
            : "hold config.json, params.json, a GGUF or safetensors");
    penc_fail_file(error, folder);
    return status;
}

/* ---- Files ---- */

/* Only the first part of a split GGUF has the keys of the model. Where it is missing the name stays, so that
 * whoever opens the parts says which one is not there. */
static void penc_name_first_part(char *name) {
    struct stat file;
    char number[5];
    if (!penc_is_later_part(name))
        return;
    char *at = name + strlen(name) - strlen("00001-of-00003.gguf");
    memcpy(number, at, sizeof number);
    memcpy(at, "00001", sizeof number);
    if (stat(name, &file) != 0)
        memcpy(at, number, sizeof number);
}

static posenc_status penc_resolve_file(const char *name, penc_model_path *path,
                                       posenc_error *error) {
    int is_index = penc_name_ends_with(name, ".index.json");
    char *copy = penc_path_join(name, NULL);
    if (!copy)
        return penc_path_no_memory(error);
    if (penc_name_ends_with(name, ".json") && !is_index) {
        path->config = copy;
        return POSENC_OK;
    }
    path->weights = copy;
    penc_name_first_part(copy);
    if (!is_index && !penc_name_ends_with(name, ".safetensors"))
        return POSENC_OK;
    char *slash = strrchr(copy, '/');
    char *folder = penc_path_join(slash ? copy : ".", NULL);
    if (!folder)
        return penc_path_no_memory(error);
    if (slash)
        folder[slash - copy] = '\0';
    posenc_status status = penc_take_config(folder, "config.json", path, error);
    free(folder);
    return status;
}

/* ---- Names ---- */

/* What to do about a name that is nowhere, by its form. Nothing is ever downloaded. */
static const char *penc_what_to_name(const char *name) {
    static const char *const endings[] = {".json", ".gguf", ".safetensors", ".bin", ".pt", ".pth"};
    static const char *const hosts[] = {"hf.co/", "huggingface.co/", "www.", "ollama.com/"};
    if (strstr(name, "://"))
        return "be on this machine: nothing is downloaded; fetch its config.json and name that";
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        if (strncmp(name, hosts[i], strlen(hosts[i])) == 0)
            return "be on this machine: nothing is downloaded; fetch its config.json and name that";
    }
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (penc_name_ends_with(name, endings[i]))
            return "be a file that is there";
    }
    const char *slash = strchr(name, '/');
    if (!*name || strchr("/.~", *name) || (slash && strchr(slash + 1, '/')))
        return "be a file or a folder that is there";
    if (slash)
        return "be a file, a folder, org/model in the Hugging Face cache, or namespace/name in Ollama's "
               "store; nothing is downloaded: fetch its config.json and name that";
    return "be a file, a folder, org/model in the Hugging Face cache, or name[:tag] in Ollama's store";
}

static posenc_status penc_resolve_name(const char *name, penc_model_path *path,
                                       posenc_error *error) {
    char *found;
    posenc_status status = penc_hugging_face_folder(name, path, &found, error);
    if (!status && found) {
        path->origin = PENC_MODEL_HUGGING_FACE;
        status = penc_resolve_folder(found, path, error);
        free(found);
        return status;
    }
    if (!status)
        status = penc_ollama_file(name, path, &found, error);
    if (!status && found) {
        path->origin = PENC_MODEL_OLLAMA;
        path->weights = found;
        return POSENC_OK;
    }
    return status ? status : penc_fail_system(error, ENOENT, "model", penc_what_to_name(name));
}

posenc_status penc_model_path_resolve(const char *name, penc_model_path *path,
                                      posenc_error *error) {
    struct stat file;
    posenc_status status;
    memset(path, 0, sizeof *path);
    penc_model_path_look(path, name);
    if (stat(name, &file) != 0) {
        status = errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG
                     ? penc_resolve_name(name, path, error)
                     : penc_fail_system(error, errno, "path", "name a file that can be looked at");
    } else if (S_ISDIR(file.st_mode)) {
        path->origin = PENC_MODEL_FOLDER;
        status = penc_resolve_folder(name, path, error);
    } else {
        status = penc_resolve_file(name, path, error);
    }
    if (status) {
        penc_fail_name(error, name, strlen(name));
        penc_model_path_free(path);
    }
    return status;
}

void penc_model_path_free(penc_model_path *path) {
    free(path->config);
    free(path->weights);
    path->config = NULL;
    path->weights = NULL;
}
