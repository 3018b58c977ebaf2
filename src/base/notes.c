/* Adding to a caller's list of notes. SPDX-License-Identifier: MIT */
#include "base/notes.h"

static void penc_note_add(posenc_notes *notes, posenc_note note) {
    if (!notes)
        return;
    if (notes->count < notes->capacity && notes->notes)
        notes->notes[notes->count] = note;
    notes->count++;
}

void penc_note(posenc_notes *notes, posenc_note_kind kind, const char *argument) {
    posenc_note note = {kind, argument, {POSENC_NUMBER_NONE, {0}}};
    penc_note_add(notes, note);
}

void penc_note_real(posenc_notes *notes, posenc_note_kind kind, const char *argument,
                    double value) {
    posenc_note note = {kind, argument, {POSENC_NUMBER_REAL, {.real = value}}};
    penc_note_add(notes, note);
}

void penc_note_size(posenc_notes *notes, posenc_note_kind kind, const char *argument,
                    uint64_t value) {
    posenc_note note = {kind, argument, {POSENC_NUMBER_SIZE, {.size = value}}};
    penc_note_add(notes, note);
}
