/* posenc._core: the C library as it is. The package around it is what people use; nothing here has defaults.
 * SPDX-License-Identifier: MIT */
#include "bindings.h"
#include "errors.h"

#include <posenc/posenc.h>

#include <cstring>

namespace nb = nanobind;

nb::object text(const char *given) {
    if (!given)
        return nb::none();
    return nb::steal(
        PyUnicode_DecodeUTF8(given, static_cast<Py_ssize_t>(std::strlen(given)), "replace"));
}

NB_MODULE(_core, m) {
    nb::set_leak_warnings(false); /* objects that a cache holds when Python ends are no leak */
    m.def("version", posenc_version);
    m.def("cpu", [] {
        posenc_error error;
        check(posenc_cpu_check(&error), error);
        return posenc_cpu();
    });
    m.def("dtype", [](const char *text) {
        posenc_dtype dtype;
        posenc_error error;
        check(posenc_dtype_parse(text, &dtype, &error), error);
        return posenc_dtype_name(dtype);
    });
    m.def("pairing", [](const char *text) {
        posenc_pairing pairing;
        posenc_error error;
        check(posenc_pairing_parse(text, &pairing, &error), error);
        return static_cast<int>(pairing);
    });
    bind_caches(m);
    bind_checkpoints(m);
    bind_conversions(m);
    bind_diagnoses(m);
    bind_frequencies(m);
    bind_models(m);
    bind_rows(m);
    bind_rotate(m);
    bind_tables(m);
}
