/* Arrays of NumPy, PyTorch and whatever speaks DLPack, as pointer, shape and strides: nothing is copied.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <posenc/dtype.h>

enum class number {
    f32 = POSENC_F32,
    f64 = POSENC_F64,
    f16 = POSENC_F16,
    bf16 = POSENC_BF16,
    i8, /* a byte, signed or not */
    i32,
    i64,
    other
};

/* The memory of one Python object, held until this is gone. Memory comes through the buffer protocol where
 * there is one (read-only arrays included), else through DLPack. */
class array {
  public:
    static constexpr int max_rank = 16;
    enum class use { read, write };

    /* Throws TypeError or ValueError that calls the argument `name`. */
    array(nanobind::handle object, const char *name, use how);
    ~array();
    array(const array &) = delete;
    array &operator=(const array &) = delete;

    const char *name;
    void *data = nullptr;
    number type = number::other;
    int rank = 0;
    ptrdiff_t shape[max_rank];
    ptrdiff_t strides[max_rank]; /* in elements */

    size_t count() const;

    /* The dtype; TypeError unless it is one of the four that posenc computes with. */
    posenc_dtype dtype() const;

    /* Throws TypeError unless the elements are of `wanted`, ValueError unless they lie without gaps. */
    void expect(number wanted, const char *called) const;

  private:
    void take_buffer(nanobind::handle object, use how);
    void take_dlpack(nanobind::handle object, use how);
    [[noreturn]] void refuse_object() const;
    [[noreturn]] void refuse_dtype(const char *allowed) const;
    void set_rank(size_t found);

    nanobind::object object_; /* what came, or a view of it */
    Py_buffer buffer_;
    bool has_buffer_ = false;
    nanobind::dlpack::dtype dlpack_dtype_{};
    nanobind::ndarray<nanobind::ro> read_;
    nanobind::ndarray<> write_;
};
