/* Adding to a caller's list of notes; a NULL list takes nothing. SPDX-License-Identifier: MIT */
#ifndef PENC_NOTES_H
#define PENC_NOTES_H

#include "posenc/status.h"

void penc_note(posenc_notes *notes, posenc_note_kind kind, const char *argument);
void penc_note_real(posenc_notes *notes, posenc_note_kind kind, const char *argument, double value);
void penc_note_size(posenc_notes *notes, posenc_note_kind kind, const char *argument,
                    uint64_t value);

#endif
