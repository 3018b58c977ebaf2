/* The frequencies object of the C library. SPDX-License-Identifier: MIT */
#pragma once

#include <posenc/posenc.h>

#include <memory>

struct destroy_frequencies {
    void operator()(posenc_frequencies *made) const { posenc_frequencies_destroy(made); }
};

struct frequencies {
    std::unique_ptr<posenc_frequencies, destroy_frequencies> made;

    size_t pairs() const { return posenc_frequencies_pairs(made.get()); }
    const posenc_spec &spec() const { return *posenc_frequencies_spec(made.get()); }
};
