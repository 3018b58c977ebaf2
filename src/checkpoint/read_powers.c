/* Row powers of q and k from a checkpoint. SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "base/struct_size.h"
#include "checkpoint/attention_rows.h"
#include "checkpoint/pair_data.h"
#include "checkpoint/row_powers.h"
#include "formats/model_path.h"

#include <stdlib.h>
#include <string.h>

/* What reading takes. */
typedef struct penc_powers_job {
    penc_tensor_set *set;
    penc_attention_names names;
    posenc_attention_shape shape;
    posenc_read_options options;
    penc_row_buffer *buffer;
    double *powers[2]; /* [heads][rotary_dim] of q, of k */
    float *numbers;    /* of a bias, of gains, of scales */
    size_t numbers_room;
    uint64_t done, total; /* bytes of weights */
    int tied;             /* the layer's gains are shared by its heads */
} penc_powers_job;

/* ---- What stands beside the weights ---- */

/* Reads the tensor "LAYER.PART END" of `count` elements into job->numbers; *found says whether there is one. */
static posenc_status penc_job_vector(penc_powers_job *job, uint32_t layer, const char *part,
                                     const char *end, penc_tensor *tensor, uint64_t *count,
                                     int *found, posenc_error *error) {
    char name[PENC_NAME_BYTES];
    const penc_tensor_source *file = NULL;
    *found = 0;
    if (!penc_attention_name(&job->names, layer, part, end, name))
        return POSENC_OK;
    posenc_status status = penc_tensor_set_find(job->set, name, tensor, &file, error);
    if (status || !file)
        return status;
    if (!penc_tensor_count(tensor, count) || *count > job->numbers_room) {
        status = penc_fail_size(error, "elements", *count, "be at most the projection's rows");
        penc_fail_limit(error, "rows", job->numbers_room);
        penc_fail_name(error, name, strlen(name));
        penc_fail_file(error, file->input.path);
        return status;
    }
    *found = 1;
    return penc_tensor_numbers(file, tensor, *count, job->numbers, error);
}

/* Fails for a tensor beside the weights. */
static posenc_status penc_job_refuse(const penc_side_rows *side, const penc_tensor *tensor,
                                     posenc_status status, posenc_error *error) {
    penc_fail_name(error, tensor->name, tensor->name_length);
    penc_fail_file(error, side->file->input.path);
    return status;
}

/* Adds squared biases, one for each row of the tensor. */
static posenc_status penc_job_bias(penc_powers_job *job, uint32_t layer, const penc_side_rows *side,
                                   double *powers, posenc_error *error) {
    penc_tensor tensor;
    uint64_t count;
    int found;
    posenc_status status =
        penc_job_vector(job, layer, side->part, ".bias", &tensor, &count, &found, error);
    if (status || !found)
        return status;
    if (count != side->tensor.shape[0]) {
        status = penc_fail_size(error, "elements", count, "be as many as the weights have rows");
        penc_fail_limit(error, "rows", side->tensor.shape[0]);
        return penc_job_refuse(side, &tensor, status, error);
    }
    const penc_head_rows *heads = &side->heads;
    for (size_t head = 0; head < heads->heads; head++) {
        const float *bias = job->numbers + penc_head_rows_of(heads, head);
        for (size_t j = 0; j < heads->rotary_dim; j++)
            powers[head * heads->rotary_dim + j] += (double)bias[j] * (double)bias[j];
    }
    return POSENC_OK;
}

/* Scales of quantised weights: one for the tensor changes nothing, one for each row is multiplied in, those of
 * blocks are refused. */
static posenc_status penc_job_scale(penc_powers_job *job, uint32_t layer,
                                    const penc_side_rows *side, double *powers,
                                    posenc_error *error) {
    static const char *const ends[] = {".weight_scale", ".weight_scale_inv"};
    const penc_head_rows *heads = &side->heads;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        penc_tensor tensor;
        uint64_t count;
        int found;
        posenc_status status =
            penc_job_vector(job, layer, side->part, ends[i], &tensor, &count, &found, error);
        if (status)
            return status;
        if (!found || count == 1)
            continue;
        if (count != side->tensor.shape[0] || tensor.shape[0] != count)
            return penc_job_refuse(side, &tensor,
                                   penc_fail(error, POSENC_UNSUPPORTED, "scales",
                                             "be one for each row, not for blocks"),
                                   error);
        for (size_t head = 0; head < heads->heads; head++) {
            const float *scale = job->numbers + penc_head_rows_of(heads, head);
            for (size_t j = 0; j < heads->rotary_dim; j++)
                powers[head * heads->rotary_dim + j] *= (double)scale[j] * (double)scale[j];
        }
    }
    return POSENC_OK;
}

/* Multiplies squared gains, of one head for all alike or of all, into the powers of `heads` heads. */
static void penc_job_multiply(const penc_powers_job *job, const penc_head_rows *gains, size_t heads,
                              double *powers) {
    for (size_t head = 0; head < heads; head++) {
        const float *gain = job->numbers + penc_head_rows_of(gains, gains->heads == 1 ? 0 : head);
        for (size_t j = 0; j < gains->rotary_dim; j++) {
            double full = (double)gain[j] + job->shape.gain_offset;
            powers[head * gains->rotary_dim + j] *= full * full;
        }
    }
}

/* Multiplies the squares of norm gains in, where there are any. */
static posenc_status penc_job_gains(penc_powers_job *job, uint32_t layer, int which,
                                    const penc_side_rows *side, double *powers,
                                    posenc_error *error) {
    for (size_t i = 0; i < PENC_GAIN_PARTS; i++) {
        penc_tensor tensor;
        uint64_t count;
        int found;
        posenc_status status = penc_job_vector(job, layer, penc_gain_parts[i][which], ".weight",
                                               &tensor, &count, &found, error);
        if (status)
            return status;
        if (!found)
            continue;
        penc_head_rows gains;
        if (!penc_head_rows_fill_gains(job->names.scheme->layout, &job->shape, which, count,
                                       &gains)) {
            status = penc_fail_size(error, "elements", count, "be head_dim or heads * head_dim");
            penc_fail_limit(error, "head_dim", job->shape.head_dim);
            return penc_job_refuse(side, &tensor, status, error);
        }
        job->tied |= gains.heads < side->heads.heads;
        penc_job_multiply(job, &gains, side->heads.heads, powers);
        return POSENC_OK;
    }
    return POSENC_OK;
}

/* ---- A layer ---- */

static uint64_t penc_side_bytes(const penc_side_rows *side) {
    return (uint64_t)side->heads.heads * side->heads.rotary_dim *
           penc_tensor_row_bytes(&side->tensor);
}

/* One side of a layer: its rotary rows, and what stands beside them. */
static posenc_status penc_job_side(penc_powers_job *job, uint32_t layer, int which,
                                   const penc_side_rows *side, posenc_error *error) {
    const penc_head_rows *heads = &side->heads;
    double *powers = job->powers[which];
    for (size_t head = 0; head < heads->heads; head++) {
        posenc_status status = penc_rows_powers(
            side->file, &side->tensor, penc_head_rows_of(heads, head), heads->rotary_dim,
            job->buffer, powers + head * heads->rotary_dim, error);
        if (status)
            return status;
        job->done += heads->rotary_dim * penc_tensor_row_bytes(&side->tensor);
        if (job->options.progress)
            job->options.progress(job->options.context, job->done, job->total);
    }
    posenc_status status = penc_job_scale(job, layer, side, powers, error);
    if (!status)
        status = penc_job_bias(job, layer, side, powers, error);
    return status ? status : penc_job_gains(job, layer, which, side, powers, error);
}

static posenc_status penc_job_layer(penc_powers_job *job, uint32_t layer,
                                    posenc_pair_powers *powers, posenc_error *error) {
    penc_side_rows sides[2];
    job->tied = 0;
    posenc_status status =
        penc_attention_rows_of(job->set, &job->names, layer, &job->shape, sides, error);
    for (int which = 0; which < 2 && !status; which++)
        status = penc_job_side(job, layer, which, &sides[which], error);
    if (status)
        return status;
    return posenc_pair_powers_add(powers, sides[0].heads.heads, sides[1].heads.heads,
                                  job->powers[0], job->powers[1], job->tied, error);
}

/* ---- The whole ---- */

/* Keeps at most options.layers of them, spread evenly. */
static void penc_job_choose(penc_powers_job *job) {
    size_t all = job->names.count, wanted = job->options.layers;
    if (!wanted || wanted >= all)
        return;
    for (size_t i = 0; i < wanted; i++)
        job->names.layers[i] = job->names.layers[(2 * i + 1) * all / (2 * wanted)];
    job->names.count = wanted;
}

/* Checks every layer before anything is read, and counts bytes and room. */
static posenc_status penc_job_plan(penc_powers_job *job, posenc_error *error) {
    penc_side_rows sides[2];
    for (size_t i = 0; i < job->names.count; i++) {
        posenc_status status = penc_attention_rows_of(job->set, &job->names, job->names.layers[i],
                                                      &job->shape, sides, error);
        for (int which = 0; which < 2 && !status; which++) {
            status = penc_rows_check(sides[which].file, &sides[which].tensor, error);
            if (status)
                break;
            job->total += penc_side_bytes(&sides[which]);
            if (sides[which].tensor.shape[0] > job->numbers_room)
                job->numbers_room = (size_t)sides[which].tensor.shape[0];
        }
        if (status)
            return status;
    }
    return POSENC_OK;
}

static posenc_status penc_job_allocate(penc_powers_job *job, posenc_error *error) {
    size_t rotary = job->shape.rotary_dim;
    job->buffer = malloc(sizeof *job->buffer);
    job->numbers = malloc((job->numbers_room + 1) * sizeof *job->numbers);
    job->powers[0] = malloc(job->shape.heads * rotary * sizeof *job->powers[0]);
    job->powers[1] = malloc(job->shape.kv_heads * rotary * sizeof *job->powers[1]);
    if (job->buffer && job->numbers && job->powers[0] && job->powers[1])
        return POSENC_OK;
    return penc_fail(error, POSENC_OUT_OF_MEMORY, "rows", "fit into memory");
}

/* Opens the weights that a path stands for. */
static posenc_status penc_job_open(penc_powers_job *job, const char *path, posenc_error *error) {
    penc_model_path found;
    posenc_status status = penc_model_path_resolve(path, &found, error);
    if (status)
        return status;
    if (found.weights) {
        status = penc_tensor_set_open(found.weights, &job->set, error);
    } else {
        status = penc_fail(error, POSENC_UNSUPPORTED, "path",
                           found.many_weights ? "name one of the files of weights there"
                                              : "have weights: safetensors, GGUF or llama2.c");
        penc_fail_file(error, path);
    }
    penc_model_path_free(&found);
    return status;
}

static posenc_status penc_job_run(penc_powers_job *job, const char *path,
                                  posenc_pair_powers *powers, posenc_error *error) {
    posenc_status status = penc_job_open(job, path, error);
    if (!status)
        status = penc_attention_names_find(job->set, &job->names, error);
    if (status)
        return status;
    penc_job_choose(job);
    status = penc_job_plan(job, error);
    if (!status)
        status = penc_job_allocate(job, error);
    for (size_t i = 0; i < job->names.count && !status; i++)
        status = penc_job_layer(job, job->names.layers[i], powers, error);
    if (!status) {
        powers->numbers = job->names.layers;
        powers->numbered = job->names.count;
        job->names.layers = NULL;
    }
    return status;
}

static void penc_job_free(penc_powers_job *job) {
    penc_attention_names_free(&job->names);
    penc_tensor_set_close(job->set);
    free(job->buffer);
    free(job->numbers);
    free(job->powers[0]);
    free(job->powers[1]);
}

posenc_status posenc_pair_powers_read(const char *path, const posenc_attention_shape *shape,
                                      const posenc_read_options *options,
                                      posenc_pair_powers **powers, posenc_error *error) {
    static const posenc_read_options defaults = POSENC_READ_OPTIONS_INIT;
    penc_powers_job job = {0};
    posenc_pair_powers *made = NULL;
    if (!powers)
        return penc_fail_null(error, "powers");
    *powers = NULL;
    if (!path)
        return penc_fail_null(error, "path");
    options = options ? options : &defaults;
    posenc_status status = penc_check_struct(options, sizeof *options, "options", error);
    if (!status)
        status = penc_attention_shape_check(shape, &job.shape, error);
    if (!status)
        status = posenc_pair_powers_create(job.shape.rotary_dim, &made, error);
    if (status)
        return status;
    job.options = *options;
    status = penc_job_run(&job, path, made, error);
    penc_job_free(&job);
    if (status)
        posenc_pair_powers_free(made);
    else
        *powers = made;
    return status;
}
