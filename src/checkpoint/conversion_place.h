/* Where the files of a converted checkpoint go. SPDX-License-Identifier: MIT */
#ifndef PENC_CONVERSION_PLACE_H
#define PENC_CONVERSION_PLACE_H

#include "checkpoint/conversion.h"

typedef struct penc_conversion_place {
    const posenc_conversion *conversion;
    const char *out;
    int is_folder;    /* `out` holds files under their old names; else it is the file itself */
    int takes_others; /* what stands beside the weights goes there too */
    char *from;       /* the folder of the inputs; NULL where `out` is a file */
} penc_conversion_place;

/* Finds out whether `out` is a file or a folder, and refuses folders that cannot be: that of the inputs if several
 * files are to be replaced, one inside it, one that holds other weights. Writes nothing. */
posenc_status penc_conversion_place_of(const posenc_conversion *conversion, const char *out,
                                       penc_conversion_place *place, posenc_error *error);
void penc_conversion_place_free(penc_conversion_place *place);

/* The path of a new file, to be freed; NULL if memory is out. */
char *penc_conversion_target(const penc_conversion_place *place, size_t file);

/* Whether a file of the inputs' folder is one of the inputs. */
int penc_conversion_is_input(const penc_conversion_place *place, const char *name);

/* Whether a name is that of weights, or of an index of weights. Projectors of images are no such. */
int penc_is_name_of_weights(const char *name);

/* The end of a path. */
const char *penc_conversion_name(const char *path);

#endif
