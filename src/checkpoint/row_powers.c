/* Sums of squares of a tensor's rows, streamed. SPDX-License-Identifier: MIT */
#include "checkpoint/row_powers.h"

#include "base/fail.h"
#include "formats/dequantize.h"

#include <stdlib.h>

/* An error of this tensor. */
static posenc_status penc_rows_named(const penc_tensor_source *file, const penc_tensor *tensor,
                                     posenc_status status, posenc_error *error) {
    penc_fail_file(error, file->input.path);
    penc_fail_name(error, tensor->name, tensor->name_length);
    return status;
}

static posenc_status penc_type_check(const penc_tensor_source *file, const penc_tensor *tensor,
                                     posenc_error *error) {
    if (penc_can_dequantize(tensor->type))
        return POSENC_OK;
    penc_fail_size(
        error, "type number", tensor->type_number,
        "be of a type that can be read: f64, f32, f16, bf16, f8, q4_0, q4_1, q5_0, q5_1, "
        "q8_0, q4_K, q5_K, q6_K");
    if (error)
        error->status = POSENC_UNSUPPORTED;
    return penc_rows_named(file, tensor, POSENC_UNSUPPORTED, error);
}

posenc_status penc_rows_check(const penc_tensor_source *file, const penc_tensor *tensor,
                              posenc_error *error) {
    posenc_status status = penc_type_check(file, tensor, error);
    if (status)
        return status;
    uint64_t row_bytes = penc_tensor_row_bytes(tensor);
    if (tensor->rank != 2)
        status = penc_fail_size(error, "axes", tensor->rank, "be 2 in a projection's weights");
    else if (row_bytes < 1 || row_bytes > PENC_ROW_BUFFER)
        status = penc_fail_size(error, "row bytes", row_bytes, "be from 1 to 4 MiB");
    return status ? penc_rows_named(file, tensor, status, error) : POSENC_OK;
}

/* Sums in one written order: four partial sums, each over every fourth number of a piece. */
static double penc_sum_of_squares(const float *numbers, size_t count) {
    double sums[4] = {0.0};
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        for (size_t k = 0; k < 4; k++)
            sums[k] += (double)numbers[i + k] * (double)numbers[i + k];
    }
    for (; i < count; i++)
        sums[i % 4] += (double)numbers[i] * (double)numbers[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

static double penc_row_power(const penc_tensor *tensor, const unsigned char *row, float *numbers) {
    size_t columns = (size_t)tensor->shape[1];
    size_t elements = penc_tensor_block_elements(tensor->type);
    size_t bytes = penc_tensor_block_bytes(tensor->type);
    double power = 0.0;
    for (size_t done = 0; done < columns; done += PENC_ROW_PIECE) {
        size_t count = columns - done < PENC_ROW_PIECE ? columns - done : PENC_ROW_PIECE;
        penc_dequantize(tensor->type, tensor->big_endian, row + done / elements * bytes, count,
                        numbers);
        power += penc_sum_of_squares(numbers, count);
    }
    return power;
}

posenc_status penc_rows_powers(const penc_tensor_source *file, const penc_tensor *tensor,
                               uint64_t first, uint64_t rows, penc_row_buffer *buffer,
                               double *powers, posenc_error *error) {
    size_t row_bytes = (size_t)penc_tensor_row_bytes(tensor), room = PENC_ROW_BUFFER / row_bytes;
    for (uint64_t done = 0; done < rows;) {
        size_t take = rows - done < room ? (size_t)(rows - done) : room;
        posenc_status status =
            penc_tensor_read_rows(file, tensor, first + done, take, buffer->bytes, error);
        if (status)
            return status;
        for (size_t i = 0; i < take; i++, done++) {
            powers[done] = penc_row_power(tensor, buffer->bytes + i * row_bytes, buffer->numbers);
            if (powers[done] <= 1e300) /* no infinity, no NaN */
                continue;
            penc_fail_real(error, "sum of squares of a row", powers[done], "be finite");
            penc_fail_place(error, "row", (int64_t)(first + done));
            return penc_rows_named(file, tensor, POSENC_OUT_OF_RANGE, error);
        }
    }
    return POSENC_OK;
}

posenc_status penc_tensor_numbers(const penc_tensor_source *file, const penc_tensor *tensor,
                                  uint64_t count, float *numbers, posenc_error *error) {
    uint64_t there = 0;
    posenc_status status = penc_type_check(file, tensor, error);
    if (status)
        return status;
    if (!penc_tensor_count(tensor, &there) || there != count) {
        status = penc_fail_size(error, "elements", there, "fit the heads");
        penc_fail_limit(error, "elements wanted", count);
        return penc_rows_named(file, tensor, status, error);
    }
    if (tensor->bytes > PENC_ROW_BUFFER)
        return penc_rows_named(
            file, tensor, penc_fail_size(error, "bytes", tensor->bytes, "be at most 4 MiB"), error);
    unsigned char *bytes = malloc((size_t)tensor->bytes + 1);
    if (!bytes)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "tensor", "fit into memory");
    status = penc_input_read(&file->input, tensor->offset, bytes, (size_t)tensor->bytes, error);
    if (!status)
        penc_dequantize(tensor->type, tensor->big_endian, bytes, (size_t)count, numbers);
    free(bytes);
    return status ? penc_rows_named(file, tensor, status, error) : POSENC_OK;
}
