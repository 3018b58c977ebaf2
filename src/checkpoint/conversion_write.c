/* Writing a converted checkpoint. SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "base/struct_size.h"
#include "checkpoint/conversion.h"

posenc_status posenc_conversion_write(const posenc_conversion *conversion, const char *out,
                                      const posenc_conversion_write_options *options,
                                      posenc_error *error) {
    static const posenc_conversion_write_options defaults = POSENC_CONVERSION_WRITE_OPTIONS_INIT;
    if (!conversion || !out)
        return penc_fail_null(error, conversion ? "out" : "conversion");
    options = options ? options : &defaults;
    posenc_status status = penc_check_struct(options, sizeof *options, "options", error);
    if (status)
        return status;
    penc_rewrite_progress progress = {options->progress, options->context};
    if (penc_conversion_files(conversion) != 1)
        return penc_fail(error, POSENC_UNSUPPORTED, "path", "be one file");
    return penc_conversion_file(conversion, 0, out, options->progress ? &progress : NULL, error);
}
