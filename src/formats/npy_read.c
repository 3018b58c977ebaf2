/* Reading .npy files by pread, so that a reader has no position and threads can share it.
 * SPDX-License-Identifier: MIT */
#include "posenc/npy.h"

#include "base/byte_order.h"
#include "base/fail.h"
#include "formats/input_file.h"
#include "formats/npy_header.h"

#include <stdlib.h>

struct posenc_npy_reader {
    penc_input input;
    posenc_npy_info info;
};

/* Reads and parses the header, `size` bytes long, of a file that is at least as long. */
static posenc_status penc_npy_read_text(const penc_input *input, size_t size, posenc_npy_info *info,
                                        posenc_error *error) {
    unsigned char *bytes = malloc(size);
    if (!bytes)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "header", "fit into memory");
    posenc_status status = penc_input_read(input, 0, bytes, size, error);
    if (!status) {
        status = penc_npy_header_parse(bytes, size, info, error);
        if (status)
            penc_fail_file(error, input->path);
    }
    free(bytes);
    return status;
}

static posenc_status penc_npy_read_header(const penc_input *input, posenc_npy_info *info,
                                          posenc_error *error) {
    unsigned char prefix[PENC_NPY_PREFIX];
    size_t count = input->size < sizeof prefix ? (size_t)input->size : sizeof prefix, size;
    posenc_status status = penc_input_read(input, 0, prefix, count, error);
    if (status)
        return status;
    status = penc_npy_header_size(prefix, count, &size, error);
    if (status) {
        penc_fail_file(error, input->path);
        return status;
    }
    if (size > input->size)
        return penc_input_short(input, input->size, size, error);
    status = penc_npy_read_text(input, size, info, error);
    if (status)
        return status;
    uint64_t needed = info->data_offset + info->count * posenc_dtype_bytes(info->dtype);
    return needed > input->size ? penc_input_short(input, input->size, needed, error) : POSENC_OK;
}

posenc_status posenc_npy_open(const char *path, posenc_npy_reader **reader, posenc_npy_info *info,
                              posenc_error *error) {
    if (!reader)
        return penc_fail_null(error, "reader");
    *reader = NULL;
    if (!path)
        return penc_fail_null(error, "path");
    posenc_npy_reader *made = malloc(sizeof *made);
    if (!made)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "reader", "fit into memory");
    posenc_status status = penc_input_open(path, &made->input, error);
    if (!status)
        status = penc_npy_read_header(&made->input, &made->info, error);
    if (status) {
        posenc_npy_close(made);
        return status;
    }
    if (info)
        *info = made->info;
    *reader = made;
    return POSENC_OK;
}

static posenc_status penc_npy_check_read(const posenc_npy_reader *reader, uint64_t first,
                                         size_t count, const void *to, posenc_error *error) {
    if (!reader)
        return penc_fail_null(error, "reader");
    if (!to && count)
        return penc_fail_null(error, "to");
    if (first > reader->info.count || count > reader->info.count - first) {
        if (first > reader->info.count)
            penc_fail_size(error, "first", first, "be inside the array");
        else
            penc_fail_size(error, "count", count, "end inside the array");
        penc_fail_limit(error, "elements of the array", reader->info.count);
        return POSENC_OUT_OF_RANGE;
    }
    if (count > SIZE_MAX / posenc_dtype_bytes(reader->info.dtype)) /* where size_t has 32 bits */
        return penc_fail(error, POSENC_OVERFLOW, "count",
                         "give a number of bytes that fits size_t");
    return POSENC_OK;
}

posenc_status posenc_npy_read(const posenc_npy_reader *reader, uint64_t first, size_t count,
                              void *to, posenc_error *error) {
    posenc_status status = penc_npy_check_read(reader, first, count, to, error);
    if (status)
        return status;
    size_t element_bytes = posenc_dtype_bytes(reader->info.dtype), bytes = count * element_bytes;
    uint64_t offset = reader->info.data_offset + first * element_bytes;
    status = penc_input_read(&reader->input, offset, to, bytes, error);
    if (!status && reader->info.big_endian != penc_machine_is_big())
        penc_swap_bytes(to, element_bytes, count);
    return status;
}

void posenc_npy_close(posenc_npy_reader *reader) {
    if (!reader)
        return;
    penc_input_close(&reader->input);
    free(reader);
}
