/* Writing a converted checkpoint: the files of one part, and, by whoever comes last, all that stands beside them.
 * SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "base/struct_size.h"
#include "checkpoint/conversion_place.h"
#include "formats/folder_copy.h"
#include "formats/model_names.h"
#include "formats/rewrite_check.h"

#include <stdlib.h>
#include <string.h>

typedef struct penc_write_job {
    penc_conversion_place place;
    posenc_conversion_write_options options;
    posenc_conversion_outcome outcome;
    uint64_t done, total; /* bytes of this part's files, those before the one at work */
    uint64_t file_bytes;  /* of that one */
} penc_write_job;

static int penc_write_is_ours(const penc_write_job *job, size_t file) {
    return file % job->options.parts == job->options.part;
}

static const penc_input *penc_write_input(const penc_write_job *job, size_t file) {
    return &penc_tensor_set_file(job->place.conversion->set, file)->input;
}

static posenc_status penc_write_no_memory(posenc_error *error) {
    return penc_fail(error, POSENC_OUT_OF_MEMORY, "out", "fit into memory");
}

/* ---- The files of a part ---- */

static void penc_write_report(void *context, uint64_t done, uint64_t total) {
    penc_write_job *job = context;
    job->file_bytes = total;
    job->options.progress(job->options.context, job->done + done, job->total);
}

/* Adds the size of a new file to the total. */
static posenc_status penc_write_measure(penc_write_job *job, size_t file, posenc_error *error) {
    penc_conversion_pieces pieces;
    posenc_status status = penc_conversion_pieces_make(job->place.conversion, file, &pieces, error);
    if (status)
        return status;
    job->total += pieces.bytes;
    penc_conversion_pieces_free(&pieces);
    return POSENC_OK;
}

static posenc_status penc_write_file(penc_write_job *job, size_t file, posenc_error *error) {
    const penc_rewrite_progress progress = {penc_write_report, job};
    char *target = penc_conversion_target(&job->place, file);
    if (!target)
        return penc_write_no_memory(error);
    posenc_status status = penc_conversion_file(job->place.conversion, file, target,
                                                job->options.progress ? &progress : NULL, error);
    free(target);
    job->done += job->file_bytes;
    job->outcome.files_written += !status;
    return status;
}

static posenc_status penc_write_part(penc_write_job *job, posenc_error *error) {
    size_t files = penc_conversion_files(job->place.conversion);
    posenc_status status = POSENC_OK;
    for (size_t i = 0; i < files && job->options.progress && !status; i++) {
        if (penc_write_is_ours(job, i))
            status = penc_write_measure(job, i, error);
    }
    for (size_t i = 0; i < files && !status; i++) {
        if (penc_write_is_ours(job, i))
            status = penc_write_file(job, i, error);
    }
    return status;
}

/* ---- What the last one does ---- */

static posenc_status penc_write_is_there(const penc_write_job *job, size_t file, int *is,
                                         posenc_error *error) {
    penc_conversion_pieces pieces;
    posenc_status status = penc_conversion_pieces_make(job->place.conversion, file, &pieces, error);
    if (status)
        return status;
    char *target = penc_conversion_target(&job->place, file);
    status = target ? penc_file_is_rewritten(penc_write_input(job, file), target, pieces.list,
                                             pieces.count, is, error)
                    : penc_write_no_memory(error);
    free(target);
    penc_conversion_pieces_free(&pieces);
    return status;
}

/* Counts files of other parts that are not there yet, or are those of another conversion. */
static posenc_status penc_write_count_missing(penc_write_job *job, posenc_error *error) {
    posenc_status status = POSENC_OK;
    for (size_t i = 0; i < penc_conversion_files(job->place.conversion) && !status; i++) {
        int is = 1;
        if (!penc_write_is_ours(job, i))
            status = penc_write_is_there(job, i, &is, error);
        job->outcome.files_missing += !is;
    }
    return status;
}

static int penc_write_wants(void *context, const char *name) {
    const penc_write_job *job = context;
    if (penc_conversion_is_input(&job->place, name) ||
        strcmp(name, penc_conversion_name(job->place.conversion->path.weights)) == 0)
        return 0;
    if (!penc_is_name_of_weights(name))
        return 1;
    if (job->options.left_out)
        job->options.left_out(job->options.context, name);
    return 0;
}

/* The index comes last: who finds it finds everything. */
static posenc_status penc_write_index(penc_write_job *job, posenc_error *error) {
    const char *index = job->place.conversion->path.weights;
    size_t length = strlen(index);
    if (length < 5 || strcmp(index + length - 5, ".json") != 0)
        return POSENC_OK;
    char *target = penc_path_join(job->place.out, "/", penc_conversion_name(index), NULL);
    posenc_status status =
        target ? penc_folder_copy_file(index, target, error) : penc_write_no_memory(error);
    free(target);
    job->outcome.others_written += !status;
    return status;
}

static posenc_status penc_write_others(penc_write_job *job, posenc_error *error) {
    penc_folder_copy copy = {penc_write_wants, job, 0};
    if (!job->place.takes_others)
        return POSENC_OK;
    posenc_status status = penc_folder_copy_files(job->place.from, job->place.out, &copy, error);
    job->outcome.others_written += copy.copied;
    return status ? status : penc_write_index(job, error);
}

static posenc_status penc_write_run(penc_write_job *job, posenc_error *error) {
    posenc_status status = POSENC_OK;
    if (job->place.is_folder)
        status = penc_folder_make(job->place.out, job->place.from, error);
    if (!status)
        status = penc_write_part(job, error);
    if (!status)
        status = penc_write_count_missing(job, error);
    if (!status && !job->outcome.files_missing) {
        status = penc_write_others(job, error);
        job->outcome.complete = !status;
    }
    return status;
}

static posenc_status penc_write_take_options(penc_write_job *job,
                                             const posenc_conversion_write_options *options,
                                             posenc_error *error) {
    static const posenc_conversion_write_options defaults = POSENC_CONVERSION_WRITE_OPTIONS_INIT;
    posenc_status status =
        penc_check_struct(options ? options : &defaults, sizeof *options, "options", error);
    if (status)
        return status;
    job->options = options ? *options : defaults;
    if (!job->options.parts)
        job->options.parts = 1;
    if (job->options.part < job->options.parts)
        return POSENC_OK;
    penc_fail_size(error, "part", job->options.part, "be from 0 to the number of parts - 1");
    penc_fail_limit(error, "the number of parts", job->options.parts);
    return POSENC_OUT_OF_RANGE;
}

posenc_status posenc_conversion_write(const posenc_conversion *conversion, const char *out,
                                      const posenc_conversion_write_options *options,
                                      posenc_error *error) {
    penc_write_job job = {.done = 0};
    if (!conversion)
        return penc_fail_null(error, "conversion");
    if (!out)
        return penc_fail_null(error, "out");
    posenc_status status = penc_write_take_options(&job, options, error);
    if (!status)
        status = penc_conversion_place_of(conversion, out, &job.place, error);
    if (status)
        return status;
    status = penc_write_run(&job, error);
    penc_conversion_place_free(&job.place);
    if (job.options.outcome)
        *job.options.outcome = job.outcome;
    return status;
}
