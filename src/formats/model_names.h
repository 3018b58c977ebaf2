/* Names of models in local stores. SPDX-License-Identifier: MIT */
#ifndef PENC_MODEL_NAMES_H
#define PENC_MODEL_NAMES_H

#include "formats/model_path.h"

/* Makes a path of texts that end with NULL; NULL if memory is out. */
char *penc_path_join(const char *first, ...);

/* Notes a place that is being tried. */
void penc_model_path_look(penc_model_path *path, const char *place);

/* The folder of a model's snapshot in a Hugging Face cache; *folder is NULL if the name is none or is not there. */
posenc_status penc_hugging_face_folder(const char *name, penc_model_path *path, char **folder,
                                       posenc_error *error);

/* The file of an Ollama model's weights; *file is NULL if the name is none or is not there. */
posenc_status penc_ollama_file(const char *name, penc_model_path *path, char **file,
                               posenc_error *error);

#endif
