/* Checkpoints brought into the other pairing, and two of them compared. SPDX-License-Identifier: MIT */
#include "bindings.h"
#include "errors.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <posenc/convert.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace nb = nanobind;

namespace {

struct free_conversion {
    void operator()(posenc_conversion *conversion) const { posenc_conversion_free(conversion); }
};

/* heads, kv_heads, head_dim, rotary_dim, rotary_start; 0: the checkpoint says it. */
using sizes = std::tuple<size_t, size_t, size_t, size_t, size_t>;

posenc_attention_shape shape_of(const sizes &given) {
    posenc_attention_shape shape = POSENC_ATTENTION_SHAPE_INIT;
    std::tie(shape.heads, shape.kv_heads, shape.head_dim, shape.rotary_dim, shape.rotary_start) =
        given;
    return shape;
}

nb::object pairing_or_none(posenc_detected pairing) {
    return pairing ? nb::object(nb::str(posenc_detected_name(pairing))) : nb::none();
}

void add_facts(nb::dict &all, const posenc_conversion_facts &facts) {
    all["from"] = posenc_pairing_name(facts.from);
    all["to"] = posenc_pairing_name(facts.to);
    all["format"] = facts.format;
    all["model_type"] = text(facts.model_type);
    all["implied"] = pairing_or_none(facts.implied);
    all["recorded"] = pairing_or_none(facts.recorded);
    all["judged"] = pairing_or_none(facts.judged);
    all["statistic"] = facts.statistic;
    all["records"] = facts.records != 0;
    all["heads"] = facts.shape.heads;
    all["kv_heads"] = facts.shape.kv_heads;
    all["head_dim"] = facts.shape.head_dim;
    all["rotary_dim"] = facts.shape.rotary_dim;
    all["rotary_start"] = facts.shape.rotary_start;
    all["files"] = facts.files;
    all["changed_files"] = facts.changed_files;
    all["tensors"] = facts.tensors;
    all["moved_tensors"] = facts.moved_tensors;
    all["bytes"] = facts.bytes;
    all["moved_bytes"] = facts.moved_bytes;
}

nb::list moves_of(const posenc_conversion *conversion) {
    nb::list all;
    for (size_t i = 0; i < posenc_conversion_about(conversion)->moved_tensors; i++) {
        posenc_conversion_move move;
        posenc_error error;
        check(posenc_conversion_move_at(conversion, i, &move, &error), error);
        nb::dict one;
        one["file"] = text(move.file);
        one["tensor"] = text(move.tensor);
        one["what"] = move.what;
        one["side"] = move.side;
        one["rows"] = move.rows;
        one["moving"] = move.moving;
        one["heads"] = move.heads;
        one["rotary_dim"] = move.rotary_dim;
        one["bytes"] = move.bytes;
        all.append(one);
    }
    return all;
}

nb::list remarks_of(const posenc_conversion *conversion) {
    nb::list all;
    for (size_t i = 0; i < posenc_conversion_remark_count(conversion); i++) {
        const posenc_conversion_remark *remark = posenc_conversion_remark_at(conversion, i);
        nb::dict one;
        one["code"] = remark->code;
        one["text"] = text(remark->text);
        one["warning"] = remark->warning != 0;
        all.append(one);
    }
    return all;
}

/* Without the GIL: names are kept as they are. */
void note_name(void *context, const char *name) {
    static_cast<std::vector<std::string> *>(context)->emplace_back(name);
}

/* What `posenc convert --json` prints, and the names that were left out. `from` 0: not given; `out` none: a dry run;
 * parts 0: all files. */
nb::dict convert_checkpoint(nb::bytes path, std::optional<nb::bytes> out, int to, int from,
                            const sizes &shape, bool force, size_t part, size_t parts) {
    posenc_conversion_options options = POSENC_CONVERSION_OPTIONS_INIT;
    posenc_conversion_write_options write = POSENC_CONVERSION_WRITE_OPTIONS_INIT;
    posenc_conversion_outcome outcome = {};
    std::vector<std::string> left_out;
    posenc_conversion *made = nullptr;
    posenc_error error;
    posenc_status status;
    options.to = static_cast<posenc_pairing>(to);
    options.from = static_cast<posenc_detected>(from);
    options.shape = shape_of(shape);
    options.force = force;
    write.part = part;
    write.parts = parts;
    write.left_out = note_name;
    write.context = &left_out;
    write.outcome = &outcome;
    {
        const char *in = path.c_str(), *target = out ? out->c_str() : nullptr;
        nb::gil_scoped_release without;
        status = posenc_conversion_create(in, &options, &made, &error);
        if (!status && target)
            status = posenc_conversion_write(made, target, &write, &error);
    }
    std::unique_ptr<posenc_conversion, free_conversion> conversion(made);
    check(status, error);
    nb::dict all;
    add_facts(all, *posenc_conversion_about(made));
    all["written"] = out.has_value();
    all["files_written"] = outcome.files_written;
    all["files_missing"] = outcome.files_missing;
    all["others_written"] = outcome.others_written;
    all["complete"] = outcome.complete != 0;
    all["moves"] = moves_of(made);
    all["remarks"] = remarks_of(made);
    nb::list names;
    for (const std::string &name : left_out)
        names.append(text(name.c_str()));
    all["left_out"] = names;
    return all;
}

/* ---- Two checkpoints ---- */

struct match {
    std::string tensor, tensor_b;
    posenc_tensor_match of;
};

void note_match(void *context, const posenc_tensor_match *found) {
    static_cast<std::vector<match> *>(context)->push_back({found->tensor, found->tensor_b, *found});
}

nb::dict match_dict(const match &found) {
    nb::dict one;
    one["tensor"] = text(found.tensor.c_str());
    one["tensor_b"] = text(found.tensor_b.c_str());
    one["relation"] = posenc_relation_name(found.of.relation);
    if (found.of.why)
        one["why"] = found.of.why;
    if (found.of.relation == POSENC_RELATION_PERMUTED) {
        one["from"] = pairing_or_none(found.of.from);
        one["to"] = pairing_or_none(found.of.to);
        one["rows"] = found.of.rows;
        one["moved"] = found.of.moved;
        one["heads"] = found.of.heads;
        one["rotary_dim"] = found.of.rotary_dim;
        one["first"] = found.of.first;
        one["stride"] = found.of.stride;
    }
    return one;
}

/* What `posenc convert --check --json` prints. */
nb::dict compare_checkpoints(nb::bytes a, nb::bytes b, const sizes &shape) {
    static const char *const keys[] = {"identical", "permuted", "different", "only_a", "only_b"};
    posenc_check_options options = POSENC_CHECK_OPTIONS_INIT;
    posenc_check_summary summary;
    std::vector<match> matches;
    posenc_error error;
    posenc_status status;
    options.shape = shape_of(shape);
    options.report = note_match;
    options.context = &matches;
    {
        const char *first = a.c_str(), *second = b.c_str();
        nb::gil_scoped_release without;
        status = posenc_checkpoints_compare(first, second, &options, &summary, &error);
    }
    check(status, error);
    nb::dict all;
    nb::list tensors;
    for (const match &found : matches)
        tensors.append(match_dict(found));
    all["tensors"] = tensors;
    for (int i = 0; i < 5; i++)
        all[keys[i]] = summary.counts[i];
    all["same"] = !summary.counts[POSENC_RELATION_DIFFERENT] &&
                  !summary.counts[POSENC_RELATION_ONLY_A] &&
                  !summary.counts[POSENC_RELATION_ONLY_B];
    all["from"] = pairing_or_none(summary.from);
    all["to"] = pairing_or_none(summary.to);
    return all;
}

} // namespace

void bind_conversions(nb::module_ &m) {
    m.def("convert_checkpoint", &convert_checkpoint, nb::arg(), nb::arg().none(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
    m.def("compare_checkpoints", &compare_checkpoints);
}
