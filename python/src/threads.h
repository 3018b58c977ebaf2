/* Splitting a call of the C library among threads, without the GIL. SPDX-License-Identifier: MIT */
#pragma once

#include "errors.h"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

/* Calls work(first, count, error) on disjoint ranges that cover 0 ... items - 1, and waits. The caller's own
 * thread takes the last range, and those whose thread cannot be started. Every range runs all checks, so
 * that none is written if one is refused. Throws the first range's error. */
template <class Work> void run_ranges(size_t items, size_t threads, bool release, Work work) {
    threads = std::max<size_t>(1, std::min({threads, items, static_cast<size_t>(1024)}));
    struct outcome {
        posenc_status status = POSENC_OK;
        posenc_error error;
    };
    auto run = [&](outcome *outcomes) {
        std::vector<std::thread> others;
        size_t first = 0;
        for (size_t i = 0; i < threads; i++) {
            size_t share = (items - first) / (threads - i);
            auto part = [&work, first, share, to = &outcomes[i]] {
                to->status = work(first, share, &to->error);
            };
            first += share;
            try {
                if (i + 1 < threads) {
                    others.emplace_back(part);
                    continue;
                }
            } catch (const std::system_error &) {
            }
            part();
        }
        for (std::thread &other : others)
            other.join();
    };
    if (threads == 1) {
        outcome only;
        if (release) {
            nanobind::gil_scoped_release without;
            run(&only);
        } else {
            run(&only);
        }
        return check(only.status, only.error);
    }
    std::vector<outcome> outcomes(threads);
    {
        nanobind::gil_scoped_release without;
        run(outcomes.data());
    }
    for (const outcome &one : outcomes)
        check(one.status, one.error);
}
