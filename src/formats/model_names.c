/* The local stores of Hugging Face and Ollama. SPDX-License-Identifier: MIT */
#include "formats/model_names.h"

#include "base/fail.h"
#include "formats/input_file.h"
#include "formats/json_file.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

char *penc_path_join(const char *first, ...) {
    size_t length = 0;
    va_list parts;
    va_start(parts, first);
    for (const char *part = first; part; part = va_arg(parts, const char *))
        length += strlen(part);
    va_end(parts);
    char *path = malloc(length + 1);
    if (!path)
        return NULL;
    *path = '\0';
    va_start(parts, first);
    for (const char *part = first; part; part = va_arg(parts, const char *))
        strcat(path, part);
    va_end(parts);
    return path;
}

void penc_model_path_look(penc_model_path *path, const char *place) {
    size_t used = strlen(path->looked_for), length = strlen(place);
    if (used + length + 2 > sizeof path->looked_for)
        return;
    memcpy(path->looked_for + used, place, length);
    memcpy(path->looked_for + used + length, "\n", 2);
}

static posenc_status penc_names_no_memory(posenc_error *error) {
    return penc_fail(error, POSENC_OUT_OF_MEMORY, "path", "fit into memory");
}

/* The value of an environment variable that is set and not empty, else NULL. */
static const char *penc_environment(const char *variable) {
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}

/* Letters, digits and "._-", no two dots in a row: nothing that could leave a folder. */
static int penc_is_plain_name(const char *name, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i]))
            return 0;
        if (name[i] == '.' && (i == 0 || name[i - 1] == '.'))
            return 0;
    }
    return length > 0;
}

static int penc_is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* ---- Hugging Face ---- */

static char *penc_hugging_face_root(void) {
    const char *cache = penc_environment("HF_HUB_CACHE"), *home = penc_environment("HF_HOME");
    const char *base = penc_environment("XDG_CACHE_HOME"), *user = penc_environment("HOME");
    if (cache)
        return penc_path_join(cache, NULL);
    if (home)
        return penc_path_join(home, "/hub", NULL);
    if (base)
        return penc_path_join(base, "/huggingface/hub", NULL);
    return penc_path_join(user ? user : "", "/.cache/huggingface/hub", NULL);
}

/* "org/model" or "model" becomes the folder models--org--model; *revision what stands after @. NULL if the name is
 * none, or memory is out: `status` tells. */
static char *penc_hugging_face_model(const char *root, const char *name, const char **revision,
                                     posenc_status *status, posenc_error *error) {
    char model[256], organisation[256] = "";
    const char *slash = strchr(name, '/'), *at = strchr(name, '@');
    const char *second = slash ? slash + 1 : name;
    size_t length = at ? (size_t)(at - second) : strlen(second);
    size_t first = slash ? (size_t)(slash - name) : 0;
    *status = POSENC_OK;
    *revision = at ? at + 1 : "main";
    if ((at && at < second) || length >= sizeof model || first >= sizeof organisation ||
        !penc_is_plain_name(second, length) || (slash && !penc_is_plain_name(name, first)) ||
        !penc_is_plain_name(*revision, strlen(*revision)))
        return NULL;
    memcpy(organisation, name, first);
    organisation[first] = '\0';
    memcpy(model, second, length);
    model[length] = '\0';
    char *folder = penc_path_join(root, "/models--", organisation, slash ? "--" : "", model, NULL);
    if (!folder)
        *status = penc_names_no_memory(error);
    return folder;
}

/* The commit that a reference names: the first word of its file. */
static posenc_status penc_read_reference(const char *path, char commit[128], posenc_error *error) {
    penc_input input;
    posenc_status status = penc_input_open(path, &input, error);
    if (status)
        return status;
    size_t length = input.size < 127 ? (size_t)input.size : 127;
    status = penc_input_read(&input, 0, commit, length, error);
    commit[length] = '\0';
    length = strcspn(commit, " \t\r\n");
    commit[length] = '\0';
    if (!status && !penc_is_plain_name(commit, length))
        status = penc_input_fail(&input, POSENC_FORMAT, "reference", "name a commit", 0, error);
    penc_input_close(&input);
    return status;
}

/* The snapshot of a revision, in the folder of a model that is there. */
static posenc_status penc_hugging_face_snapshot(const char *model, const char *revision,
                                                penc_model_path *path, char **folder,
                                                posenc_error *error) {
    char commit[128];
    char *reference = penc_path_join(model, "/refs/", revision, NULL);
    if (!reference)
        return penc_names_no_memory(error);
    struct stat status_of_reference;
    posenc_status status = POSENC_OK;
    const char *wanted = revision; /* a commit, where no reference has that name */
    penc_model_path_look(path, reference);
    if (stat(reference, &status_of_reference) == 0) {
        status = penc_read_reference(reference, commit, error);
        wanted = commit;
    }
    free(reference);
    if (status)
        return status;
    char *snapshot = penc_path_join(model, "/snapshots/", wanted, NULL);
    if (!snapshot)
        return penc_names_no_memory(error);
    penc_model_path_look(path, snapshot);
    if (penc_is_folder(snapshot))
        *folder = snapshot;
    else
        free(snapshot);
    return POSENC_OK;
}

posenc_status penc_hugging_face_folder(const char *name, penc_model_path *path, char **folder,
                                       posenc_error *error) {
    posenc_status status;
    const char *revision;
    *folder = NULL;
    char *root = penc_hugging_face_root();
    if (!root)
        return penc_names_no_memory(error);
    char *model = penc_hugging_face_model(root, name, &revision, &status, error);
    if (model) {
        if (penc_is_folder(model))
            status = penc_hugging_face_snapshot(model, revision, path, folder, error);
        else
            penc_model_path_look(path, model);
    }
    free(model);
    free(root);
    return status;
}

/* ---- Ollama ---- */

/* Where the store may be, one place after the other; *root is NULL behind the last one. */
static posenc_status penc_ollama_root(unsigned number, char **root, posenc_error *error) {
    const char *models = penc_environment("OLLAMA_MODELS"), *user = penc_environment("HOME");
    *root = NULL;
    if (number > 1 || (models && number > 0))
        return POSENC_OK;
    if (models)
        *root = penc_path_join(models, NULL);
    else if (number == 0)
        *root = penc_path_join(user ? user : "", "/.ollama/models", NULL);
    else
        *root = penc_path_join("/usr/share/ollama/.ollama/models", NULL);
    return *root ? POSENC_OK : penc_names_no_memory(error);
}

/* Whether there are up to three plain parts with "/" between them; *count says how many. */
static int penc_are_plain_parts(const char *name, size_t length, size_t *count) {
    const char *end = name + length;
    for (*count = 1; *count <= 3; ++*count) {
        const char *slash = memchr(name, '/', (size_t)(end - name));
        if (!penc_is_plain_name(name, (size_t)((slash ? slash : end) - name)))
            return 0;
        if (!slash)
            return 1;
        name = slash + 1;
    }
    return 0;
}

/* The manifest of "[[host/]namespace/]name[:tag]", where hosts have a dot; NULL as above. */
static char *penc_ollama_manifest(const char *root, const char *name, posenc_status *status,
                                  posenc_error *error) {
    static const char *const before[] = {"registry.ollama.ai/library/", "registry.ollama.ai/", ""};
    char model[256];
    const char *colon = strchr(name, ':'), *tag = colon ? colon + 1 : "latest";
    size_t length = colon ? (size_t)(colon - name) : strlen(name), parts;
    *status = POSENC_OK;
    if (length >= sizeof model || !penc_is_plain_name(tag, strlen(tag)) ||
        !penc_are_plain_parts(name, length, &parts) ||
        (parts == 3 && !memchr(name, '.', strcspn(name, "/"))))
        return NULL;
    memcpy(model, name, length);
    model[length] = '\0';
    char *manifest = penc_path_join(root, "/manifests/", before[parts - 1], model, "/", tag, NULL);
    if (!manifest)
        *status = penc_names_no_memory(error);
    return manifest;
}

static const char *penc_text_of(json_object *object, const char *key) {
    json_object *value = NULL;
    json_object_object_get_ex(object, key, &value);
    return json_object_get_type(value) == json_type_string ? json_object_get_string(value) : "";
}

/* The digest "sha256:..." of the first layer that is a model; "" if there is none. */
static const char *penc_ollama_digest(json_object *manifest) {
    json_object *layers = NULL;
    json_object_object_get_ex(manifest, "layers", &layers);
    size_t count =
        json_object_get_type(layers) == json_type_array ? json_object_array_length(layers) : 0;
    for (size_t i = 0; i < count; i++) {
        json_object *layer = json_object_array_get_idx(layers, i);
        if (json_object_get_type(layer) == json_type_object &&
            strcmp(penc_text_of(layer, "mediaType"), "application/vnd.ollama.image.model") == 0)
            return penc_text_of(layer, "digest");
    }
    return "";
}

/* The blob that a manifest names. */
static posenc_status penc_ollama_blob(const char *root, const char *manifest, penc_model_path *path,
                                      char **file, posenc_error *error) {
    static const char algorithm[] = "sha256:";
    json_object *json;
    posenc_status status = penc_json_read_file(manifest, &json, error);
    if (status)
        return status;
    const char *digest = penc_ollama_digest(json), *hash = digest + sizeof algorithm - 1;
    if (strncmp(digest, algorithm, sizeof algorithm - 1) != 0 ||
        !penc_is_plain_name(hash, strlen(hash))) {
        status = penc_fail(error, POSENC_FORMAT, "layers", "have a model with a sha256 digest");
        penc_fail_file(error, manifest);
    } else {
        *file = penc_path_join(root, "/blobs/sha256-", hash, NULL);
        status = *file ? POSENC_OK : penc_names_no_memory(error);
        if (*file)
            penc_model_path_look(path, *file);
    }
    json_object_put(json);
    return status;
}

static posenc_status penc_ollama_file_of(const char *root, const char *name, penc_model_path *path,
                                         char **file, posenc_error *error) {
    posenc_status status;
    struct stat status_of_manifest;
    char *manifest = penc_ollama_manifest(root, name, &status, error);
    if (!manifest)
        return status;
    penc_model_path_look(path, manifest);
    if (stat(manifest, &status_of_manifest) == 0)
        status = penc_ollama_blob(root, manifest, path, file, error);
    free(manifest);
    return status;
}

posenc_status penc_ollama_file(const char *name, penc_model_path *path, char **file,
                               posenc_error *error) {
    posenc_status status = POSENC_OK;
    *file = NULL;
    for (unsigned number = 0; !status && !*file; number++) {
        char *root;
        status = penc_ollama_root(number, &root, error);
        if (status || !root)
            break;
        status = penc_ollama_file_of(root, name, path, file, error);
        free(root);
    }
    return status;
}
