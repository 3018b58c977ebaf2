/* Keys that change the kind of encoding (alibi, position_embedding_type ...). SPDX-License-Identifier: MIT */
#ifndef PENC_KIND_SWITCH_H
#define PENC_KIND_SWITCH_H

#include "model/config_keys.h"

/* The kind by the rule's column `when`, else by its column `kind`. A switch may also replace the rule's
 * pairing and axes. */
posenc_encoding_kind penc_kind_of(penc_config *config);

#endif
