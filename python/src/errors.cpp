/* What the C library refuses, as Python exceptions. SPDX-License-Identifier: MIT */
#include "errors.h"

#include <nanobind/nanobind.h>

#include <cstring>
#include <new>
#include <string>

namespace nb = nanobind;

namespace {

struct renamed {
    const char *prefix; /* of the C library's name */
    const char *python; /* what stands in its place */
};

/* The first prefix that fits is replaced; the longer stand before the shorter. */
constexpr renamed names[] = {
    {"rotation.tokens", "rotation's number of rows"},
    {"rotation.batch", "rotation's batch"},
    {"rotation.rotary_", "rotation.rotary_"},
    {"rotation.attention_factor", "attention_factor"},
    {"rotation.", ""},
    {"tensor", "x"},
    {"options.output_pairing", "output_pairing"},
    {"options.output", "out"},
    {"options.", ""},
    {"output", "out"},
    {"input", "x"},
    {"positions", "positions"},
    {"spec.", ""},
    {"cache.", ""},
    {"slots.", ""},
    {"shift.", ""},
    {"norm.", ""},
    {"stages.", ""},
    {"query_scale.", ""},
    {"rows.", ""},
    {"tile.", ""},
    {"table", "out"},
    {"bias", "out"},
};

std::string python_name(const char *argument) {
    for (const renamed &name : names)
        if (!std::strncmp(argument, name.prefix, std::strlen(name.prefix)))
            return name.python + std::string(argument + std::strlen(name.prefix));
    return argument;
}

} // namespace

void check(posenc_status status, const posenc_error &error) {
    if (status == POSENC_OK)
        return;
    if (status == POSENC_OUT_OF_MEMORY)
        throw std::bad_alloc();
    posenc_error told = error;
    std::string name = error.argument ? error.argument : "an argument";
    if (!error.file[0]) /* what stands in a file is called as the file calls it */
        name = python_name(name.c_str());
    told.argument = name.c_str();
    char sentence[1024];
    posenc_error_text(&told, sentence, sizeof sentence);
    if (status == POSENC_IO &&
        error.os_error) { /* OSError chooses FileNotFoundError and the like */
        nb::object raised = nb::borrow(PyExc_OSError)(error.os_error, sentence);
        PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(raised.ptr())), raised.ptr());
        throw nb::python_error();
    }
    throw nb::value_error(sentence);
}
