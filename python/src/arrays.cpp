/* Arrays of NumPy, PyTorch and whatever speaks DLPack. SPDX-License-Identifier: MIT */
#include "arrays.h"

#include <nanobind/stl/string.h>

#include <cstring>
#include <string>

namespace nb = nanobind;

namespace {

/* An element of Python's struct module; "<f" and the like are native here. */
number number_of_format(const char *format, ptrdiff_t bytes) {
    const int one = 1;
    const bool little = *reinterpret_cast<const char *>(&one) == 1;
    if (!format)
        return number::other;
    if (*format == '@' || *format == '=' || *format == (little ? '<' : '>'))
        format++;
    if (std::strlen(format) != 1)
        return number::other;
    switch (*format) {
    case 'e':
        return number::f16;
    case 'f':
        return number::f32;
    case 'd':
        return number::f64;
    case 'b':
    case 'B':
        return number::i8;
    case 'i':
    case 'l':
    case 'q':
        return bytes == 8 ? number::i64 : bytes == 4 ? number::i32 : number::other;
    default:
        return number::other;
    }
}

number number_of_dlpack(nb::dlpack::dtype type) {
    if (type.lanes != 1)
        return number::other;
    switch (static_cast<nb::dlpack::dtype_code>(type.code)) {
    case nb::dlpack::dtype_code::Float:
        return type.bits == 32   ? number::f32
               : type.bits == 64 ? number::f64
               : type.bits == 16 ? number::f16
                                 : number::other;
    case nb::dlpack::dtype_code::Bfloat:
        return type.bits == 16 ? number::bf16 : number::other;
    case nb::dlpack::dtype_code::UInt:
        return type.bits == 8 ? number::i8 : number::other;
    case nb::dlpack::dtype_code::Int:
        if (type.bits == 8)
            return number::i8;
        return type.bits == 64 ? number::i64 : type.bits == 32 ? number::i32 : number::other;
    default:
        return number::other;
    }
}

/* For people: a capsule has no dtype to ask. */
std::string name_of_dlpack(nb::dlpack::dtype type) {
    static const char *const kinds[] = {"int",    "uint",    "float", "an opaque type of bits ",
                                        "bfloat", "complex", "bool"};
    std::string kind =
        type.code < sizeof kinds / sizeof *kinds ? kinds[type.code] : "a type of bits ";
    return kind + std::to_string(type.bits);
}

bool is_bfloat16(nb::handle object) {
    nb::object dtype = nb::getattr(object, "dtype", nb::none());
    nb::object name = nb::getattr(dtype, "name", nb::none());
    return nb::isinstance<nb::str>(name) && !std::strcmp(nb::cast<const char *>(name), "bfloat16");
}

/* Asking for a buffer that is not there raises an exception, which takes microseconds: the dtype that did it
 * once is remembered, and that of its bits, uint16. Written with the GIL held. */
PyObject *bfloat16_dtype = nullptr, *bits_dtype = nullptr;

bool is_known_bfloat16(nb::handle object) {
    if (!bfloat16_dtype)
        return false;
    static PyObject *const name = PyUnicode_InternFromString("dtype");
    nb::object dtype = nb::steal(PyObject_GetAttr(object.ptr(), name));
    if (!dtype.is_valid())
        PyErr_Clear();
    return dtype.ptr() == bfloat16_dtype;
}

nb::object bits_of(nb::handle object) {
    static PyObject *const name = PyUnicode_InternFromString("view");
    if (bits_dtype)
        return nb::steal(PyObject_CallMethodObjArgs(object.ptr(), name, bits_dtype, nullptr));
    nb::object bits = object.attr("view")("uint16");
    bits_dtype = nb::object(bits.attr("dtype")).release().ptr();
    return bits;
}

size_t bytes_of(number type) {
    switch (type) {
    case number::i8:
        return 1;
    case number::i32:
        return 4;
    case number::i64:
        return 8;
    case number::other:
        return 0;
    default:
        return posenc_dtype_bytes(static_cast<posenc_dtype>(type));
    }
}

} // namespace

array::array(nb::handle object, const char *name_, use how)
    : name(name_), object_(nb::borrow(object)) {
    if (PyObject_CheckBuffer(object.ptr()))
        take_buffer(object, how);
    else
        take_dlpack(object, how);
    size_t bytes = bytes_of(type);
    if (bytes && reinterpret_cast<uintptr_t>(data) % bytes)
        throw nb::value_error(
            (std::string(name) + " is not aligned to the size of its elements; make a copy of it")
                .c_str());
}

array::~array() {
    if (has_buffer_)
        PyBuffer_Release(&buffer_);
}

void array::refuse_object() const {
    std::string type =
        nb::cast<std::string>(nb::getattr(object_.type(), "__name__", nb::str("object")));
    throw nb::type_error(
        (std::string(name) + " is of type " + type +
         " but must be an array in the CPU's memory that has the buffer protocol or "
         "DLPack (NumPy, PyTorch, ...)")
            .c_str());
}

void array::refuse_dtype(const char *allowed) const {
    nb::object dtype = nb::getattr(object_, "dtype", nb::none());
    std::string found =
        dtype.is_none() ? name_of_dlpack(dlpack_dtype_) : nb::cast<std::string>(nb::str(dtype));
    throw nb::type_error(
        (std::string(name) + " has dtype " + found + " but must have " + allowed).c_str());
}

void array::set_rank(size_t found) {
    if (found > max_rank)
        throw nb::value_error((std::string(name) + " has " + std::to_string(found) +
                               " axes but must have at most " + std::to_string(max_rank))
                                  .c_str());
    rank = static_cast<int>(found);
}

void array::take_buffer(nb::handle object, use how) {
    bool narrow = is_known_bfloat16(object); /* ml_dtypes' bfloat16 has no buffer; its bits have */
    if (!narrow && PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_RECORDS_RO)) {
        PyErr_Clear();
        if (!is_bfloat16(object))
            refuse_dtype("float32, float64, float16 or bfloat16");
        if (!bfloat16_dtype)
            bfloat16_dtype = nb::object(object.attr("dtype")).release().ptr();
        narrow = true;
    }
    if (narrow) {
        object_ = bits_of(object);
        if (!object_.is_valid() || PyObject_GetBuffer(object_.ptr(), &buffer_, PyBUF_RECORDS_RO))
            throw nb::python_error();
    }
    has_buffer_ = true;
    if (how == use::write && buffer_.readonly)
        throw nb::value_error((std::string(name) + " is read-only but must be writable").c_str());
    set_rank(static_cast<size_t>(buffer_.ndim));
    data = buffer_.buf;
    type = narrow ? number::bf16 : number_of_format(buffer_.format, buffer_.itemsize);
    for (int i = 0; i < rank; i++) {
        shape[i] = buffer_.shape[i];
        if (shape[i] > 1 && buffer_.strides[i] % buffer_.itemsize)
            throw nb::value_error((std::string(name) + " has a stride of " +
                                   std::to_string(buffer_.strides[i]) +
                                   " bytes but must have strides of "
                                   "whole elements; make a copy of it")
                                      .c_str());
        strides[i] = buffer_.strides[i] / buffer_.itemsize;
    }
}

void array::take_dlpack(nb::handle object, use how) {
    bool ok =
        how == use::read ? nb::try_cast(object, read_, false) : nb::try_cast(object, write_, false);
    if (!ok && how == use::write && nb::try_cast(object, read_, false))
        throw nb::value_error((std::string(name) + " is read-only but must be writable").c_str());
    if (!ok)
        refuse_object();
    auto take = [this](auto &from) {
        if (from.device_type() != nb::device::cpu::value &&
            from.device_type() != nb::device::cuda_host::value)
            refuse_object();
        set_rank(from.ndim());
        data = const_cast<void *>(static_cast<const void *>(from.data()));
        dlpack_dtype_ = from.dtype();
        type = number_of_dlpack(dlpack_dtype_);
        for (int i = 0; i < rank; i++) {
            shape[i] = static_cast<ptrdiff_t>(from.shape(static_cast<size_t>(i)));
            strides[i] = static_cast<ptrdiff_t>(from.stride(static_cast<size_t>(i)));
        }
    };
    if (how == use::read)
        take(read_);
    else
        take(write_);
}

size_t array::count() const {
    size_t all = 1;
    for (int i = 0; i < rank; i++)
        all *= static_cast<size_t>(shape[i]);
    return all;
}

posenc_dtype array::dtype() const {
    if (type > number::bf16)
        refuse_dtype("float32, float64, float16 or bfloat16 in the machine's byte order");
    return static_cast<posenc_dtype>(type);
}

void array::expect(number wanted, const char *called) const {
    if (type != wanted)
        refuse_dtype(called);
    ptrdiff_t step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        if (shape[i] != 1 && strides[i] != step && count())
            throw nb::value_error((std::string(name) + " must lie in memory without gaps").c_str());
        step *= shape[i];
    }
}
