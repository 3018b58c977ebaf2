/* From what people call a model to its files: a file, a folder, a name in a Hugging Face cache, a name of Ollama.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_MODEL_PATH_H
#define PENC_MODEL_PATH_H

#include "posenc/status.h"

/* Where a name was found. */
typedef enum penc_model_origin {
    PENC_MODEL_FILE,
    PENC_MODEL_FOLDER,
    PENC_MODEL_HUGGING_FACE, /* a snapshot in the cache */
    PENC_MODEL_OLLAMA        /* a blob of the store */
} penc_model_origin;

typedef struct penc_model_path {
    penc_model_origin origin;
    char *
        config; /* config.json or params.json; NULL where there is none: a GGUF or llama2.c file tells by itself */
    char *weights; /* what penc_tensor_set_open takes; NULL where there is none */
    int many_weights; /* a folder has several files of weights and nothing that says which: weights is NULL */
    char looked_for
        [1024]; /* the places that were tried, one a line, for messages; set on failure too */
} penc_model_path;

/* Resolves a name. In this order:
 *  - a file: a configuration (.json) or weights; safetensors take the config.json beside them, and for a later part of a
 *    split GGUF the first one stands, if it is there;
 *  - a folder: config.json, else params.json; as weights *.safetensors.index.json, model.safetensors or the only file
 *    of safetensors, else the only GGUF (of a split one the first part);
 *  - org/model or model[@revision] in $HF_HUB_CACHE, else $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else
 *    ~/.cache/huggingface/hub: the snapshot that refs/main (or refs/revision) names, or revision itself;
 *  - [[host/]namespace/]name[:tag] in $OLLAMA_MODELS, else ~/.ollama/models, else /usr/share/ollama/.ollama/models (where a
 *    system service keeps them): the blob of the manifest's model layer.
 * Fails with IO or FORMAT, `file` being the last place, and the error's `name` what was asked for. */
posenc_status penc_model_path_resolve(const char *name, penc_model_path *path, posenc_error *error);

/* Frees what a path holds, not the struct; one that failed to resolve holds nothing. */
void penc_model_path_free(penc_model_path *path);

#endif
