/* Any bytes as somebody's dump, compared with another: the first byte tells the file's ending.
 * SPDX-License-Identifier: MIT */
#include "posenc/compare.h"
#include "posenc/npy.h"

#include "fuzz_folder.h"

static const char *const endings[] = {"a.npy", "a.npz", "a.safetensors", "a.json"};
enum { JSON = 3, ENDINGS = sizeof endings / sizeof *endings, POSITIONS = 5 };

/* Four frequencies, as a dump too: where a side has a spec, compare looks for causes, which takes a hundred times as
 * long as what is tried here. */
static posenc_side *known(void) {
    static posenc_side *side;
    static const double ladder[] = {1.0, 0.1, 0.01, 0.001};
    const posenc_npy_info info = {.dtype = POSENC_F64, .rank = 1, .shape = {4}, .count = 4};
    posenc_npy_writer *writer;
    posenc_error error;
    if (side)
        return side;
    FUZZ_CHECK(!posenc_npy_create(fuzz_path("known.npy"), &info, &writer, &error));
    FUZZ_CHECK(!posenc_npy_write(writer, 0, 4, ladder, &error));
    FUZZ_CHECK(!posenc_npy_commit(writer, &error));
    FUZZ_CHECK(!posenc_side_open(fuzz_path("known.npy"), &side, &error));
    return side;
}

/* Both ways, at as many positions as the dump has rows. */
static void use(const posenc_side *side) {
    static const int64_t positions[POSITIONS] = {0, 1, 2, 1000, 1 << 20};
    size_t rows = posenc_side_rows(side), count = rows && rows < POSITIONS ? rows : POSITIONS;
    posenc_comparison there, back;
    posenc_error error;
    FUZZ_CHECK(!posenc_compare(side, known(), positions, 0, count, &there, &error));
    FUZZ_CHECK(!posenc_compare(known(), side, positions, 0, count, &back, &error));
    FUZZ_CHECK(there.pairs_a == back.pairs_b && there.pairs_b == back.pairs_a);
    FUZZ_CHECK(posenc_agreement_name(there.agreement) && there.agreement == back.agreement);
    FUZZ_CHECK(!rows || posenc_compare(side, known(), positions, 0, rows + 1, &there, &error));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    posenc_side *side;
    posenc_error error;
    if (!size)
        return -1;
    if (fuzz_make_folder()) {
        const char *file = fuzz_file(data, 0);
        for (size_t i = 0; i < ENDINGS; i++)
            FUZZ_CHECK(symlink(file, fuzz_path(endings[i])) == 0);
    }
    fuzz_file(data + 1, size - 1);
    posenc_status status = posenc_side_open(fuzz_path(endings[data[0] % ENDINGS]), &side, &error);
    if (status) {
        fuzz_check_error(status, &error);
        FUZZ_CHECK(!side);
        return 0;
    }
    if (data[0] % ENDINGS != JSON)
        use(side);
    posenc_side_free(side);
    return 0;
}
