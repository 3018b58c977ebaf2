/* adapter_config.json of PEFT: base_model_name_or_path. SPDX-License-Identifier: MIT */
#include "checkpoint/adapter_base.h"

#include "base/fail.h"
#include "formats/json_file.h"
#include "formats/model_names.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static posenc_status penc_base_no_memory(posenc_error *error) {
    return penc_fail(error, POSENC_OUT_OF_MEMORY, "path", "fit into memory");
}

/* "FOLDER/adapter_config.json" of the folder that the weights are in. */
static char *penc_adapter_config(const char *weights) {
    const char *slash = strrchr(weights, '/');
    char *folder = penc_path_join(weights, NULL);
    if (folder)
        folder[slash ? slash - weights + 1 : 0] = '\0';
    char *path = folder ? penc_path_join(folder, "adapter_config.json", NULL) : NULL;
    free(folder);
    return path;
}

/* The configuration of a model that is at hand. */
static posenc_status penc_base_resolve(const char *name, char **config, posenc_error *error) {
    penc_model_path found;
    posenc_status status = penc_model_path_resolve(name, &found, error);
    if (status) /* it is somewhere else: the caller has to say what it is like */
        return status == POSENC_OUT_OF_MEMORY ? status : POSENC_OK;
    const char *tells = found.config ? found.config : found.weights;
    if (tells) {
        *config = penc_path_join(tells, NULL);
        status = *config ? POSENC_OK : penc_base_no_memory(error);
    }
    penc_model_path_free(&found);
    return status;
}

posenc_status penc_adapter_base(const char *weights, char **config, posenc_error *error) {
    json_object *object, *name;
    *config = NULL;
    char *path = penc_adapter_config(weights);
    if (!path)
        return penc_base_no_memory(error);
    posenc_status status = POSENC_OK;
    if (access(path, F_OK) == 0) {
        status = penc_json_read_file(path, &object, error);
        if (!status) {
            if (json_object_object_get_ex(object, "base_model_name_or_path", &name) &&
                json_object_is_type(name, json_type_string) && json_object_get_string_len(name) > 0)
                status = penc_base_resolve(json_object_get_string(name), config, error);
            json_object_put(object);
        }
    }
    free(path);
    return status;
}
