/* Which pairing trained weights use. SPDX-License-Identifier: MIT */
#include "bindings.h"
#include "errors.h"

#include <nanobind/stl/optional.h>

#include <posenc/checkpoint.h>

#include <memory>
#include <optional>

namespace nb = nanobind;

namespace {

struct free_powers {
    void operator()(posenc_pair_powers *powers) const { posenc_pair_powers_free(powers); }
};

nb::dict evidence_dict(const posenc_pair_evidence &evidence) {
    nb::dict all;
    all["pairing"] = posenc_detected_name(evidence.verdict);
    all["statistic"] = evidence.statistic;
    all["log_likelihood_ratio"] = evidence.ratio[0];
    all["log_likelihood_ratio_residual"] = evidence.ratio[1];
    all["exact_half"] = evidence.exact_half;
    all["exact_interleaved"] = evidence.exact_interleaved;
    return all;
}

posenc_judgement judge(const posenc_pair_powers *powers, size_t layer) {
    posenc_judgement judgement;
    posenc_error error;
    posenc_status status;
    {
        nb::gil_scoped_release without;
        status = posenc_pair_powers_judge(powers, layer, &judgement, &error);
    }
    check(status, error);
    return judgement;
}

nb::list layers_of(const posenc_pair_powers *powers) {
    nb::list all;
    for (size_t i = 0; i < posenc_pair_powers_count(powers); i++) {
        posenc_judgement layer = judge(powers, i);
        nb::dict one;
        one["layer"] = posenc_pair_powers_layer(powers, i);
        one["pairing"] = posenc_detected_name(layer.both.verdict);
        one["statistic"] = layer.both.statistic;
        one["q"] = posenc_detected_name(layer.q.verdict);
        one["k"] = posenc_detected_name(layer.k.verdict);
        all.append(one);
    }
    return all;
}

using given = std::optional<size_t>;

/* The checkpoint's own shape, then what was given. */
posenc_attention_shape shape_of(const char *path, given heads, given kv_heads, given head_dim,
                                given rotary_dim, given rotary_start, given gain_offset,
                                posenc_checkpoint_facts *facts) {
    posenc_attention_shape shape = POSENC_ATTENTION_SHAPE_INIT;
    posenc_error error;
    posenc_status status;
    {
        nb::gil_scoped_release without;
        status = posenc_attention_shape_read(path, &shape, facts, &error);
    }
    check(status, error);
    shape.heads = heads.value_or(shape.heads);
    shape.kv_heads = kv_heads.value_or(shape.kv_heads);
    shape.head_dim = head_dim.value_or(shape.head_dim);
    shape.rotary_dim = rotary_dim.value_or(shape.rotary_dim);
    shape.rotary_start = rotary_start.value_or(shape.rotary_start);
    if (gain_offset)
        shape.gain_offset = *gain_offset != 0;
    if (!shape.heads || !shape.head_dim)
        throw nb::value_error(
            "heads and head_dim are missing: the checkpoint does not say how wide its heads are");
    return shape;
}

/* What `posenc detect --json` prints; `layers` 0: all. */
nb::dict detect(nb::bytes path, given heads, given kv_heads, given head_dim, given rotary_dim,
                given rotary_start, given gain_offset, size_t layers) {
    posenc_checkpoint_facts facts;
    posenc_attention_shape shape = shape_of(path.c_str(), heads, kv_heads, head_dim, rotary_dim,
                                            rotary_start, gain_offset, &facts);
    posenc_read_options options = POSENC_READ_OPTIONS_INIT;
    options.layers = layers;
    posenc_error error;
    posenc_pair_powers *made = nullptr;
    posenc_status status;
    {
        const char *bytes = path.c_str();
        nb::gil_scoped_release without;
        status = posenc_pair_powers_read(bytes, &shape, &options, &made, &error);
    }
    std::unique_ptr<posenc_pair_powers, free_powers> powers(made);
    check(status, error);
    posenc_judgement judgement = judge(made, POSENC_ALL_LAYERS);
    posenc_detected found = judgement.both.verdict;
    nb::dict all;
    all["pairing"] = posenc_detected_name(found);
    all["statistic"] = judgement.both.statistic;
    all["both"] = evidence_dict(judgement.both);
    all["q"] = evidence_dict(judgement.q);
    all["k"] = evidence_dict(judgement.k);
    all["q_k_differ"] = judgement.q_k_differ != 0;
    all["exact_signs"] = judgement.exact_signs;
    all["format"] = facts.format;
    all["model_type"] = text(facts.model_type);
    all["implied"] =
        facts.implied ? nb::object(nb::str(posenc_detected_name(facts.implied))) : nb::none();
    all["contradicts"] = found && facts.implied && found != facts.implied;
    all["layers"] = layers_of(made);
    return all;
}

} // namespace

void bind_checkpoints(nb::module_ &m) {
    m.def("detect", &detect, nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none(),
          nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg());
}
