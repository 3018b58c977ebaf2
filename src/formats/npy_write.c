/* Writing .npy files: into a nameless file beside the target, which takes its name only when whole.
 * SPDX-License-Identifier: MIT */
#include "posenc/npy.h"

#include "base/byte_order.h"
#include "base/fail.h"
#include "formats/npy_header.h"
#include "formats/output_file.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct posenc_npy_writer {
    posenc_npy_info info;
    penc_output output;
    uint64_t
        in_order; /* special outputs: the element that must come next, UINT64_MAX after a failure */
    atomic_uint_fast64_t written;
};

static posenc_status penc_npy_open_target(posenc_npy_writer *writer, const char *path,
                                          posenc_error *error) {
    int os_error = penc_output_find(path, &writer->output);
    if (!os_error)
        os_error = penc_output_open(&writer->output, 0666);
    if (os_error)
        return penc_fail_system(error, os_error, "path", "name a file that can be written");
    return POSENC_OK;
}

static posenc_status penc_npy_fail_write(posenc_error *error, int os_error) {
    return penc_fail_system(error, os_error, "file", "be writable");
}

posenc_status posenc_npy_create(const char *path, const posenc_npy_info *info,
                                posenc_npy_writer **writer, posenc_error *error) {
    unsigned char header[PENC_NPY_MADE];
    size_t size;
    if (!writer)
        return penc_fail_null(error, "writer");
    *writer = NULL;
    if (!path)
        return penc_fail_null(error, "path");
    if (!info)
        return penc_fail_null(error, "info");
    posenc_status status = penc_npy_header_make(info, header, &size, error);
    if (status)
        return status;
    posenc_npy_writer *made = calloc(1, sizeof *made);
    if (!made)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "writer", "fit into memory");
    made->info = *info;
    made->info.data_offset = size;
    made->output.file = made->output.folder = -1;
    (void)penc_npy_measure(info, &made->info.count); /* header_make has checked it */
    status = penc_npy_open_target(made, path, error);
    if (!status) {
        int os_error = penc_output_write(&made->output, header, size, 0);
        if (os_error)
            status = penc_npy_fail_write(error, os_error);
    }
    if (status) {
        posenc_npy_discard(made);
        return status;
    }
    *writer = made;
    return POSENC_OK;
}

static posenc_status penc_npy_check_write(const posenc_npy_writer *writer, uint64_t first,
                                          size_t count, const void *from, posenc_error *error) {
    if (!writer)
        return penc_fail_null(error, "writer");
    if (!from && count)
        return penc_fail_null(error, "from");
    if (first > writer->info.count || count > writer->info.count - first) {
        penc_fail_size(error, "first", first, "with count be inside the array");
        penc_fail_limit(error, "elements of the array", writer->info.count);
        return POSENC_OUT_OF_RANGE;
    }
    if (writer->output.is_special && first != writer->in_order) {
        penc_fail_size(error, "first", first,
                       "follow the element written last, in a pipe or device");
        penc_fail_limit(error, "the next element", writer->in_order);
        return POSENC_OUT_OF_RANGE;
    }
    if (count > SIZE_MAX / posenc_dtype_bytes(writer->info.dtype)) /* where size_t has 32 bits */
        return penc_fail(error, POSENC_OVERFLOW, "count",
                         "give a number of bytes that fits size_t");
    return POSENC_OK;
}

/* Files are little-endian: a machine that is not turns the bytes in a small buffer. */
static int penc_npy_put_elements(const posenc_npy_writer *writer, const unsigned char *from,
                                 size_t element, size_t count, uint64_t offset) {
    unsigned char turned[4096];
    if (!penc_machine_is_big())
        return penc_output_write(&writer->output, from, count * element, offset);
    int os_error = 0;
    while (count && !os_error) {
        size_t take = count < sizeof turned / element ? count : sizeof turned / element;
        memcpy(turned, from, take * element);
        penc_swap_bytes(turned, element, take);
        os_error = penc_output_write(&writer->output, turned, take * element, offset);
        from += take * element;
        offset += take * element;
        count -= take;
    }
    return os_error;
}

posenc_status posenc_npy_write(posenc_npy_writer *writer, uint64_t first, size_t count,
                               const void *from, posenc_error *error) {
    posenc_status status = penc_npy_check_write(writer, first, count, from, error);
    if (status)
        return status;
    size_t element = posenc_dtype_bytes(writer->info.dtype);
    int os_error = penc_npy_put_elements(writer, from, element, count,
                                         writer->info.data_offset + first * element);
    if (writer->output
            .is_special) /* nobody knows what a pipe took before it failed: no element fits */
        writer->in_order = os_error ? UINT64_MAX : first + count;
    if (os_error)
        return penc_npy_fail_write(error, os_error);
    atomic_fetch_add(&writer->written, count);
    return POSENC_OK;
}

posenc_status posenc_npy_commit(posenc_npy_writer *writer, posenc_error *error) {
    if (!writer)
        return penc_fail_null(error, "writer");
    uint64_t written = atomic_load(&writer->written);
    posenc_status status = POSENC_OK;
    if (written < writer->info.count) {
        status = penc_fail_size(error, "elements written", written, "be all that the shape says");
        penc_fail_limit(error, "elements of the array", writer->info.count);
    } else {
        int os_error = penc_output_commit(&writer->output);
        if (os_error)
            status = penc_npy_fail_write(error, os_error);
    }
    posenc_npy_discard(writer);
    return status;
}

void posenc_npy_discard(posenc_npy_writer *writer) {
    if (!writer)
        return;
    penc_output_close(&writer->output);
    free(writer);
}
