/* Reading dumps: which array is what. SPDX-License-Identifier: MIT */
#include "diagnosis/dump.h"

#include "base/byte_order.h"
#include "base/fail.h"
#include "base/number_access.h"
#include "formats/npy_header.h"
#include "formats/npz_read.h"
#include "formats/safetensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PENC_DUMP_MAX_NUMBERS = 1 << 27, PENC_DUMP_STEP = 1 << 16 };

/* An array in a file, whatever the format. */
typedef struct penc_stored {
    const penc_input *input;
    uint64_t place;
    posenc_dtype dtype;
    int big_endian, fortran_order;
    size_t rank;
    uint64_t shape[POSENC_NPY_MAX_RANK];
} penc_stored;

static void penc_dump_array_free(penc_dump_array *array) {
    free(array->numbers);
    array->numbers = NULL;
}

void penc_dump_free(penc_dump *dump) {
    penc_dump_array_free(&dump->cos);
    penc_dump_array_free(&dump->sin);
    penc_dump_array_free(&dump->both);
    penc_dump_array_free(&dump->inv_freq);
}

/* --- Numbers ------------------------------------------------------------------------------------ */

static void penc_widen_bytes(const penc_stored *stored, const unsigned char *bytes, size_t count,
                             double *to) {
    size_t width = posenc_dtype_bytes(stored->dtype);
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = penc_load_unsigned(bytes + i * width, width, stored->big_endian);
        if (width == 8)
            to[i] = penc_double_of_bits(bits);
        else if (width == 4)
            to[i] = (double)penc_float_of_bits((uint32_t)bits);
        else
            to[i] = (double)(stored->dtype == POSENC_F16 ? penc_float_of_f16((uint16_t)bits)
                                                         : penc_float_of_bf16((uint16_t)bits));
    }
}

static posenc_status penc_read_numbers(const penc_stored *stored, uint64_t count, double *to,
                                       posenc_error *error) {
    unsigned char buffer[PENC_DUMP_STEP];
    size_t width = posenc_dtype_bytes(stored->dtype);
    for (uint64_t done = 0; done < count;) {
        uint64_t step = PENC_DUMP_STEP / width;
        if (step > count - done)
            step = count - done;
        posenc_status status = penc_input_read(stored->input, stored->place + done * width, buffer,
                                               (size_t)step * width, error);
        if (status)
            return status;
        penc_widen_bytes(stored, buffer, (size_t)step, to + done);
        done += step;
    }
    return POSENC_OK;
}

/* Columns to rows, for a matrix that was written with its first axis fastest. */
static posenc_status penc_turn_matrix(penc_dump_array *array, posenc_error *error) {
    double *turned = malloc(array->rows * array->width * sizeof *turned);
    if (!turned)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "dump", "fit into memory");
    for (size_t i = 0; i < array->rows; i++) {
        for (size_t j = 0; j < array->width; j++)
            turned[i * array->width + j] = array->numbers[j * array->rows + i];
    }
    free(array->numbers);
    array->numbers = turned;
    return POSENC_OK;
}

/* Shape without axes of size 1; the last one is the width, a [2] behind it is a pair. */
static posenc_status penc_measure_stored(const penc_stored *stored, penc_dump_array *array,
                                         posenc_error *error) {
    uint64_t axes[POSENC_NPY_MAX_RANK], count = 1;
    size_t rank = 0;
    for (size_t i = 0; i < stored->rank; i++) {
        if (stored->shape[i] != 1)
            axes[rank++] = stored->shape[i];
        if (stored->shape[i] == 0 || stored->shape[i] > PENC_DUMP_MAX_NUMBERS / count)
            return penc_input_fail(stored->input, POSENC_UNSUPPORTED, "dump",
                                   "hold from 1 to 2^27 numbers", stored->place, error);
        count *= stored->shape[i];
    }
    array->is_split = rank == 3 && axes[2] == 2;
    if (array->is_split)
        axes[1] *= 2;
    array->width = rank == 0 ? 1 : (size_t)axes[array->is_split ? 1 : rank - 1];
    array->rows = (size_t)count / array->width;
    array->dtype = stored->dtype;
    if (stored->fortran_order && rank > 2)
        return penc_input_fail(stored->input, POSENC_UNSUPPORTED, "fortran_order",
                               "be False for more than two axes", stored->place, error);
    return POSENC_OK;
}

static posenc_status penc_load_array(const penc_stored *stored, penc_dump_array *array,
                                     posenc_error *error) {
    posenc_status status = penc_measure_stored(stored, array, error);
    if (status)
        return status;
    uint64_t count = (uint64_t)array->rows * array->width;
    if (stored->place > stored->input->size ||
        count * posenc_dtype_bytes(stored->dtype) > stored->input->size - stored->place)
        return penc_input_short(stored->input, stored->input->size,
                                stored->place + count * posenc_dtype_bytes(stored->dtype), error);
    array->numbers = malloc((size_t)count * sizeof *array->numbers);
    if (!array->numbers)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "dump", "fit into memory");
    status = penc_read_numbers(stored, count, array->numbers, error);
    if (!status && stored->fortran_order && array->rows > 1 && array->width > 1)
        status = penc_turn_matrix(array, error);
    if (status)
        penc_dump_array_free(array);
    return status;
}

/* --- Names -------------------------------------------------------------------------------------- */

static int penc_name_has(const char *name, const char *part) {
    size_t length = strlen(part);
    for (; *name; name++) {
        size_t i = 0;
        while (i < length && (name[i] == part[i] || name[i] == part[i] - 'a' + 'A'))
            i++;
        if (i == length)
            return 1;
    }
    return 0;
}

/* Where an array of this name goes; NULL: it is something else. */
static penc_dump_array *penc_place_of_name(penc_dump *dump, const char *name) {
    int has_cos = penc_name_has(name, "cos"), has_sin = penc_name_has(name, "sin");
    if (penc_name_has(name, "inv_freq"))
        return &dump->inv_freq;
    if (has_cos && has_sin)
        return &dump->both;
    return has_cos ? &dump->cos : has_sin ? &dump->sin : NULL;
}

static posenc_status penc_take_named(penc_dump *dump, const char *name, const penc_stored *stored,
                                     posenc_error *error) {
    penc_dump_array *place = penc_place_of_name(dump, name);
    if (!place)
        return POSENC_OK;
    if (place->numbers)
        return penc_input_fail(stored->input, POSENC_FORMAT, "arrays",
                               "hold one cos, one sin or one inv_freq, by their names",
                               stored->place, error);
    return penc_load_array(stored, place, error);
}

/* --- Formats ------------------------------------------------------------------------------------ */

/* The header of an .npy file that begins at `begin` of `input`. */
static posenc_status penc_stored_of_npy(const penc_input *input, uint64_t begin, uint64_t bytes,
                                        penc_stored *stored, posenc_error *error) {
    unsigned char prefix[PENC_NPY_PREFIX];
    size_t known = bytes < sizeof prefix ? (size_t)bytes : sizeof prefix, size = 0;
    posenc_npy_info info;
    posenc_status status = penc_input_read(input, begin, prefix, known, error);
    if (!status) {
        status = penc_npy_header_size(prefix, known, &size, error);
        if (status)
            penc_fail_file(error, input->path);
    }
    if (status)
        return status;
    if (size > bytes)
        return penc_input_short(input, bytes, size, error);
    unsigned char *header = malloc(size);
    if (!header)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "header", "fit into memory");
    status = penc_input_read(input, begin, header, size, error);
    if (!status) {
        status = penc_npy_header_parse(header, size, &info, error);
        if (status)
            penc_fail_file(error, input->path);
    }
    free(header);
    if (status)
        return status;
    *stored = (penc_stored){.input = input,
                            .place = begin + size,
                            .dtype = info.dtype,
                            .big_endian = info.big_endian,
                            .fortran_order = info.fortran_order,
                            .rank = info.rank};
    for (size_t i = 0; i < info.rank; i++)
        stored->shape[i] = info.shape[i];
    return POSENC_OK;
}

/* Without a name the shape tells: one axis is a list of frequencies, more are cos and sin in one. */
static posenc_status penc_dump_of_npy(const penc_input *input, penc_dump *dump,
                                      posenc_error *error) {
    penc_stored stored;
    penc_dump_array array = {0};
    posenc_status status = penc_stored_of_npy(input, 0, input->size, &stored, error);
    if (!status)
        status = penc_load_array(&stored, &array, error);
    if (!status)
        *(array.rows == 1 && !array.is_split ? &dump->inv_freq : &dump->both) = array;
    return status;
}

typedef struct penc_npz_context {
    const penc_input *input;
    penc_dump *dump;
} penc_npz_context;

static posenc_status penc_take_member(void *context, const penc_npz_member *member,
                                      posenc_error *error) {
    const penc_npz_context *npz = context;
    penc_stored stored;
    if (!penc_place_of_name(npz->dump, member->name))
        return POSENC_OK;
    posenc_status status =
        penc_stored_of_npy(npz->input, member->place, member->bytes, &stored, error);
    return status ? status : penc_take_named(npz->dump, member->name, &stored, error);
}

static int penc_dtype_of_tensor(penc_tensor_type type, posenc_dtype *dtype) {
    static const struct {
        penc_tensor_type type;
        posenc_dtype dtype;
    } known[] = {{PENC_TENSOR_F64, POSENC_F64},
                 {PENC_TENSOR_F32, POSENC_F32},
                 {PENC_TENSOR_F16, POSENC_F16},
                 {PENC_TENSOR_BF16, POSENC_BF16}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        *dtype = known[i].dtype;
        if (known[i].type == type)
            return 1;
    }
    return 0;
}

static posenc_status penc_take_tensor(penc_dump *dump, const penc_tensor_source *source,
                                      const penc_tensor *tensor, posenc_error *error) {
    penc_stored stored = {.input = &source->input,
                          .place = tensor->offset,
                          .big_endian = tensor->big_endian,
                          .rank = tensor->rank};
    if (!penc_place_of_name(dump, tensor->name))
        return POSENC_OK;
    if (!penc_dtype_of_tensor(tensor->type, &stored.dtype))
        return penc_input_fail(&source->input, POSENC_UNSUPPORTED, "dtype of a tensor",
                               "be one of F64, F32, F16, BF16", tensor->offset, error);
    for (size_t i = 0; i < tensor->rank; i++)
        stored.shape[i] = tensor->shape[i];
    return penc_take_named(dump, tensor->name, &stored, error);
}

static posenc_status penc_dump_of_safetensors(const char *path, penc_dump *dump,
                                              posenc_error *error) {
    penc_safetensors *file;
    posenc_status status = penc_safetensors_open(path, &file, error);
    if (status)
        return status;
    const penc_tensor_source *source = penc_safetensors_tensors(file);
    for (size_t i = 0; !status && i < source->count; i++) {
        penc_tensor tensor;
        status = source->format->read(source, &source->entries[i], &tensor, error);
        if (!status)
            status = penc_take_tensor(dump, source, &tensor, error);
    }
    penc_safetensors_close(file);
    return status;
}

static int penc_path_ends(const char *path, const char *ending) {
    size_t length = strlen(path), wanted = strlen(ending);
    return length >= wanted && strcmp(path + length - wanted, ending) == 0;
}

/* The arrays that belong together are there, and of one shape. */
static posenc_status penc_check_dump(penc_dump *dump, posenc_error *error) {
    const penc_dump_array *arrays[] = {&dump->cos, &dump->sin, &dump->both, &dump->inv_freq};
    static const double digits[] = {24, 53, 11, 8}; /* by posenc_dtype */
    if (!dump->cos.numbers != !dump->sin.numbers)
        return penc_fail(error, POSENC_FORMAT, "dump", "have both an array cos and an array sin");
    if (!dump->cos.numbers && !dump->both.numbers && !dump->inv_freq.numbers)
        return penc_fail(error, POSENC_FORMAT, "dump",
                         "have arrays whose names contain cos and sin, or inv_freq");
    if (dump->cos.numbers &&
        (dump->cos.rows != dump->sin.rows || dump->cos.width != dump->sin.width))
        return penc_fail(error, POSENC_FORMAT, "dump", "have cos and sin of the same shape");
    if (dump->both.numbers && dump->both.width % 2)
        return penc_fail_size(error, "width of the dump", dump->both.width,
                              "be even: cos and sin in one row");
    dump->dtype = POSENC_F64;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        if (arrays[i]->numbers && digits[arrays[i]->dtype] < digits[dump->dtype])
            dump->dtype = arrays[i]->dtype;
    }
    return POSENC_OK;
}

posenc_status penc_dump_read(const char *path, penc_dump *dump, posenc_error *error) {
    memset(dump, 0, sizeof *dump);
    penc_input input;
    posenc_status status = penc_input_open(path, &input, error);
    penc_npz_context npz = {&input, dump};
    if (!status && penc_path_ends(path, ".safetensors"))
        status = penc_dump_of_safetensors(path, dump, error);
    else if (!status && penc_path_ends(path, ".npz"))
        status = penc_npz_members(&input, penc_take_member, &npz, error);
    else if (!status)
        status = penc_dump_of_npy(&input, dump, error);
    penc_input_close(&input);
    if (!status)
        status = penc_check_dump(dump, error);
    if (status)
        penc_dump_free(dump);
    return status;
}
