#!/usr/bin/env python3
"""Plants one fault at a time in a copy of the library and sees whether the unit tests notice.

    mutants.py [--jobs N] [--only WORD] [--every N] [--list]

A mutant is a name, a file, a text that stands in it exactly once, and what takes its place. The unit
tests must pass without a mutant and one of them must fail with it; a mutant that survives shows a
missing test. Whatever does not compile is a fault of the list. Prints TAP. SPDX-License-Identifier: MIT
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
from amalgamate import ROOT, library_lists  # noqa: E402 (beside this file)

TESTS = ("base", "wide", "memory_map", "frequencies", "angles", "fast_rows", "rotate",
         "rotate_kernels", "rotate_laws", "rotate_refused", "rotate_rows", "rotate_output",
         "rotate_all", "head_kernels", "norm_rotate", "query_scale", "cache_append", "cache_shift",
         "cache_refused", "table", "sinusoidal", "alibi", "gguf", "gguf_refused", "json", "safetensors", "tensor_set",
         "model_path", "entry_list")
# The test that notices most mutants of some files runs first; the others follow, quick ones before slow.
FIRST = {"src/absolute": "sinusoidal", "src/angles": "angles", "src/bias": "alibi",
         "src/frequencies": "frequencies", "src/kernels/bias": "alibi", "src/kernels/sincos": "fast_rows",
         "src/kernels/rotate": "rotate_kernels", "src/rope/rotate.c": "rotate_all",
         "src/rope/rotate_plan": "rotate_refused", "src/rope/rotate_run": "rotate_rows",
         "src/rope/row_finder": "rotate_rows", "src/rope/head_pass": "norm_rotate",
         "src/rope/norm_rotate": "norm_rotate", "src/kernels/head": "head_kernels",
         "src/base/fp8": "cache_append", "src/cache/cache_append": "cache_append",
         "src/cache/cache_shift": "cache_shift", "src/cache/cache_slots": "cache_refused",
         "src/cache/cache_view": "cache_refused", "src/cache/cache_read": "cache_append",
         "src/angles/query_scale": "query_scale", "src/rope/rotation": "rotate", "src/rope/table": "table",
         "src/formats/gguf": "gguf", "src/formats/json": "json", "src/formats/safetensors": "safetensors",
         "src/formats/tensor": "gguf", "src/formats/entry": "entry_list", "src/formats/input": "gguf",
         "src/formats/gguf_split": "tensor_set", "src/formats/safetensors_index": "tensor_set",
         "src/formats/tensor_set": "tensor_set", "src/formats/llama2c": "tensor_set",
         "src/formats/model": "model_path"}
# Kernels of other CPU levels than this machine's best run under POSENC_CPU; a mutant of a level that the machine
# lacks is skipped by name.
LEVELS = {"src/kernels/rotate_avx2": "avx2", "src/kernels/rotate_vector": "avx2",
          "src/kernels/rotate_avx512": "avx512bf16", "src/kernels/head_avx2": "avx2",
          "src/kernels/head_vector": "avx2", "src/kernels/head_avx512": "avx512bf16"}
PACKAGES = ("cmocka", "mpfr", "json-c")

MUTANTS = [
    # Frequencies
    ("exponent j/d in place of 2j/d", "src/frequencies/frequencies.c",
     ": penc_ladder_rung(&c->log2_base, c->place.rung, c->place.ladder);",
     ": penc_ladder_rung(&c->log2_base, c->place.rung, 2 * c->place.ladder);"),
    ("frequencies divide by head_dim in place of rotary_dim", "src/frequencies/frequencies.c",
     "penc_axis_map_start(c.spec.axes, c.pairs, &map, error);",
     "penc_axis_map_start(c.spec.axes, c.spec.head_dim / 2, &map, error);"),
    ("default base 100000", "src/frequencies/frequencies.c", "spec->base = 10000.0;",
     "spec->base = 100000.0;"),
    ("rotary_dim defaults to head_dim whatever rotary_start", "src/frequencies/frequencies.c",
     "spec->rotary_dim = spec->head_dim - spec->rotary_start;", "spec->rotary_dim = spec->head_dim;"),
    ("float32 factor from the exact frequency", "src/frequencies/frequencies.c",
     ": 1.0f / penc_framework_power(c);", ": (float)penc_real_round(&radians, 53, -1074);"),
    ("float32 factor from the float64 base", "src/frequencies/frequencies.c",
     "penc_log2((double)(float)c->spec.base)", "penc_log2(c->spec.base)"),
    ("attention factor 2", "src/frequencies/frequencies.c",
     "penc_attention attention = {{penc_wide_of_integer(1), 0}, 1.0};",
     "penc_attention attention = {{penc_wide_of_integer(2), 0}, 1.0};"),

    # Angles
    ("positions off by one", "src/angles/row_job.h",
     "return (double)((const int64_t *)positions->numbers)[index];",
     "return (double)((const int64_t *)positions->numbers)[index] + 1.0;"),
    ("the sign of a position ignored", "src/angles/phase.c",
     "penc_position result = {0, 0, position < 0};", "penc_position result = {0, 0, 0};"),
    ("the sign of a position ignored by vector kernels", "src/angles/fast_rows.c",
     "penc_position_number(fast->job->positions, token) + 0.0;",
     "fabs(penc_position_number(fast->job->positions, token));"),
    ("vector kernels: hard roundings are not computed again", "src/angles/fast_rows.c",
     "if (unsettled)\n        penc_settle(", "if (unsettled > ~UINT64_C(0) - 1)\n        penc_settle("),
    ("vector kernels: hard rows of runs are not computed again", "src/angles/fast_rows.c",
     "if (unsettled & 1)\n                penc_round_row(", "if (unsettled > ~UINT64_C(0) - 1)\n                penc_round_row("),
    ("vector kernels: every block of a run begins at its first position", "src/angles/fast_rows.c",
     "block.token += take;", "block.token += 0 * take;"),
    ("vector kernels: every axis has the first one's position", "src/angles/fast_rows.c",
     "fast->exact && fast->one_axis) {", "fast->exact) {"),
    ("16-bit rows rounded twice", "src/angles/row_spread.c", "if (middle && ", "if (middle > 1 && "),
    ("a middle of the last pair overlooked", "src/angles/row_spread.c",
     "middle |= narrow_kernel(sin", "middle = narrow_kernel(sin"),
    ("float32 to float16: denormals cut off", "src/base/half.h", "+ 0.5f) - 0x3f000000u",
     "+ 0.5f) - 0x3f000001u"),
    ("float16 denormals have no middles", "src/base/half.h",
     "penc_bits_of_float(halves) & (halves", "0u & (halves"),
    ("scattered positions taken for a run", "src/angles/fast_rows.c",
     "numbers[length] == first + (int64_t)length)", "numbers[length] >= first)"),
    ("scattered positions among eight taken for a run", "src/angles/fast_rows.c",
     "differ |= numbers[i] ^", "differ = numbers[i] ^"),
    ("float32 mode ignored", "src/angles/fast_rows.c", "fast->exact = rows->mode == POSENC_MODE_EXACT;",
     "fast->exact = 1;"),
    ("the second half of a frequency left out", "src/kernels/sincos_vector.inc",
     "V_FMA(p, V_LOAD(table.low + at), r[k]);", "V_FMA(p, V_SET(0.0), r[k]);"),
    ("angles near quarter turns trusted", "src/kernels/sincos_vector.inc", "V_SET(0x1p-52));", "V_SET(0x1p-120));"),
    ("float32 mode multiplies in float64", "src/angles/fast_rows.c",
     "frequency[j].factor * (float)position", "(float)((double)frequency[j].factor * position)"),
    ("float32 mode multiplies in float64, the slow way", "src/angles/row_job.c",
     "factor * (float)position", "(float)((double)factor * position)"),
    ("range reduction: the rest's sign flipped", "src/angles/sincos.c", "if (angle->rest_negative)",
     "if (!angle->rest_negative)"),
    ("range reduction: no quarter turns", "src/angles/phase.c",
     "angle.quarter = (eighth + 1) / 2 % 4;", "angle.quarter = (eighth + 1) / 2 % 2;"),
    ("range reduction: the carry into the upper limb lost", "src/angles/phase.c",
     "high += middle < carry;", ""),
    ("the sign of sin flipped", "src/angles/sincos.c", "result.sin = -result.sin;",
     "result.cos = -result.cos;"),
    ("hard roundings are not computed again", "src/angles/sincos.c",
     "return penc_narrow(value - margin, dtype) == *rounded;", "return 1;"),
    ("float64 rows rounded to float32", "src/angles/sincos.c",
     "penc_sincos_wide(angle, magnitude, dtype) : penc_sincos_double(angle);",
     "penc_sincos_wide(angle, magnitude, dtype) : penc_sincos_rounded(angle, NULL, POSENC_F32);"),
    ("row layout full_half repeats nothing", "src/angles/row_job.c",
     "return (penc_row_shape){1, pairs, 0};", "return (penc_row_shape){1, 0, 0};"),
    ("row layout full_half repeats nothing after vector kernels", "src/angles/row_spread.c",
     "memcpy(cos_to + all_pairs + pair, cos, bytes);", "(void)all_pairs;"),
    ("row layout pairs writes cos beside cos", "src/angles/row_job.c",
     "return (penc_row_shape){2, 0, 1};", "return (penc_row_shape){1, 0, pairs};"),
    ("row stride ignored", "src/angles/angles.c",
     "ptrdiff_t stride = rows->row_stride ? rows->row_stride : (ptrdiff_t)width;",
     "ptrdiff_t stride = (ptrdiff_t)width;"),
    ("positions beyond 2^40 accepted", "src/angles/angles.c",
     "good &= numbers[i] <= (most) &&", "good &= numbers[i] <= 2 * (most) &&"),

    # Rounding and memory
    ("16-bit stores truncate", "src/base/half.h",
     "return kept + (rest > half || (rest == half && (kept & 1)));",
     "return kept + (rest > half && rest < half);"),
    ("16-bit ties away from even", "src/base/half.h", "(rest == half && (kept & 1)));",
     "rest == half);"),
    ("float16 denormals flushed to zero", "src/base/half.h",
     "float magnitude = (float)fraction * 0x1p-24f;", "float magnitude = (float)fraction * 0.0f;"),
    ("penc_real_round without ties to even", "src/base/wide.c",
     "(rest == half && (m.limb[3] || (kept & 1)))", "rest == half"),
    ("the overlap check always passes", "src/base/memory_map.c",
     "    if (!penc_ranges_meet(a_low,", "    if (a_low || !penc_ranges_meet(a_low,"),
    ("strides that write twice accepted", "src/base/memory_map.c",
     "        if (stride < reach)\n            return 0;", "        if (stride < reach)\n            return 1;"),
    ("struct sizes not checked", "src/base/struct_size.h", "if (size < known || size > 4096) {",
     "if (size > 4096) {"),

    # Rotation: kernels
    ("the reference turns the other way", "src/kernels/rotate_scalar.c",
     "real u = job->transpose ?",
     "real u = !job->transpose ?"),
    ("the reference takes one number for both channels", "src/kernels/rotate_scalar.c",
     "second = first + job->table.second;",
     "second = first;"),
    ("the transpose of the reference is that of a rotation", "src/kernels/rotate_scalar.c",
     "? b * cos[second] - a * sin[first]",
     "? b * cos[second] - a * sin[second]"),
    ("the reference does not scale", "src/kernels/rotate_scalar.c",
     "v *= (real)job->scale;",
     "v *= 1;"),
    ("kernels: the sign of sin swapped", "src/kernels/rotate_vector.inc",
     "T##_VECTOR v = T##_ADD(T##_MUL(b, c), T##_MUL(a, s));",
     "T##_VECTOR v = T##_SUB(T##_MUL(b, c), T##_MUL(a, s));"),
    ("kernels: the rest of a head without scale", "src/kernels/rotate_vector.inc",
     "    rest.pairs -= done;",
     "    rest.pairs -= done, rest.scale = 1.0;"),
    ("kernels: the rest of the first head only", "src/kernels/rotate_vector.inc",
     "    rest.tokens = 1;",
     "    rest.tokens = rest.heads = 1;"),
    ("kernels: doubled rows do not reach the partner", "src/kernels/rotate_vector.inc",
     "F_MUL(F_SWAP(a), s[k])",
     "F_MUL(a, s[k])"),
    ("kernels: bfloat16 in twos with the sign swapped", "src/kernels/rotate_vector.inc",
     "u[odd] = F_SUB(F_MUL",
     "u[odd] = F_ADD(F_MUL"),
    ("kernels: chosen rows ignored", "src/kernels/rotate_vector.inc",
     "const ptrdiff_t row = penc_table_row(&job, token);",
     "const ptrdiff_t row = (ptrdiff_t)token * job.table.token;"),
    ("AVX2: bfloat16 ties away from even", "src/kernels/rotate_avx2_vocabulary.inc",
     "_mm256_set1_epi32(0x7fff)), even);",
     "_mm256_set1_epi32(0x8000)), _mm256_setzero_si256());"),
    ("AVX2: a NaN rounds to a number", "src/kernels/rotate_avx2_vocabulary.inc",
     "_mm256_castsi256_ps(quiet), nan)",
     "_mm256_castsi256_ps(sum), nan)"),
    ("AVX2: float16 truncates", "src/kernels/rotate_avx2_vocabulary.inc",
     "_mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT)",
     "_mm256_cvtps_ph(v, _MM_FROUND_TO_ZERO)"),
    ("AVX-512: denormal bfloat16 flushed to zero", "src/kernels/rotate_avx512_vocabulary.inc",
     "    return !(zero & (n",
     "    return 1 | !(zero & (n"),
    ("AVX-512: stores write whole vectors", "src/kernels/rotate_avx512_vocabulary.inc",
     "#define PENC_FIRST(n)        ((n) >= 32 ? 0xffffffffu : (1u << (n)) - 1)",
     "#define PENC_FIRST(n)        ((void)(n), 0xffffffffu)"),

    # Norm and scales of heads
    ("norm: lanes added in another order", "src/kernels/head_scalar.c",
     "lane[i] += lane[i + half];", "lane[i] += lane[2 * half - 1 - i];"),
    ("norm: epsilon outside of the root", "src/kernels/head_scalar.c",
     "root(lane[0] / (real)job->channels + (real)job->epsilon)",
     "(root(lane[0] / (real)job->channels) + (real)job->epsilon)"),
    ("norm: 1 not added to the weight", "src/rope/head_pass.c",
     "norm->weight_plus_one ? 1.0f + (float)weight : (float)weight;", "(float)weight;"),
    ("norm: all-in-one kernels take weights in the order of channels", "src/rope/head_pass.c",
     "if (!pass->all_in_one || pass->y_pairing == POSENC_PAIRING_HALF)", "if (pass->head_dim)"),
    ("norm: means of the heads ahead one head late", "src/kernels/head_turn_vector.inc",
     "            ahead += x_step;", "            ahead += head ? x_step : 0;"),
    ("norm before and after swapped", "src/rope/head_pass.c",
     "int before = pass->norm && pass->norm->order == POSENC_NORM_BEFORE;",
     "int before = pass->norm && pass->norm->order != POSENC_NORM_BEFORE;"),
    ("scales: not for channels that do not turn", "src/rope/head_pass.c",
     "int plain = from.format == to.format && (g->factor == 1.0 || !pass->to_y);",
     "int plain = from.format == to.format;"),
    ("scales: every sequence has the first one's", "src/rope/norm_rotate.c",
     "ptrdiff_t at = (ptrdiff_t)batch * stages->scales_stride + (ptrdiff_t)token;",
     "ptrdiff_t at = (ptrdiff_t)token;"),
    ("scales may lie in the output", "src/rope/norm_rotate.c",
     "if (!penc_maps_disjoint(written, output, &map, stages->scales))",
     "if (!stages->scales)"),
    ("query scales: floor left out", "src/angles/query_scale.c",
     "value = penc_log_of_integer(1 + n / s->length);",
     "value = penc_log_of_integer(1 + (n + s->length / 2) / s->length);"),
    ("query scales: the offset left out", "src/angles/query_scale.c",
     "uint64_t n = (uint64_t)(positions[i] + query_scale->offset);",
     "uint64_t n = (uint64_t)positions[i];"),

    ("AVX2: lanes added in another order", "src/kernels/head_avx2.c",
     "__m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));",
     "__m128 two = _mm_hadd_ps(four, four);"),
    ("AVX-512: lanes added in another order", "src/kernels/head_avx512_vocabulary.inc",
     "__m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));",
     "__m128 two = _mm_hadd_ps(four, four);"),
    ("kernels of heads: the rest of a head is not padded", "src/kernels/head_vector.inc",
     "        memcpy(padded, x, n * H_BYTES(format));",
     "        memset(padded, 1, 64), memcpy(padded, x, n * H_BYTES(format));"),
    ("kernels of heads: no factor in the search for the largest", "src/kernels/head_vector.inc",
     "NAME(head_inverse)(x, channels, scaled, factor, most, &scale);",
     "NAME(head_inverse)(x, channels, 0, factor, most, &scale);"),
    ("AVX2: fp8 denormals truncated", "src/kernels/head_avx2.c",
     "_mm256_add_ps(_mm256_castsi256_ps(least), _mm256_set1_ps(PENC_FP8_INTEGER));",
     "_mm256_add_ps(_mm256_sub_ps(_mm256_castsi256_ps(least), _mm256_set1_ps(0x1p-11f)), _mm256_set1_ps(PENC_FP8_INTEGER));"),
    ("AVX-512: fp8 NaN becomes a number", "src/kernels/head_avx512_vocabulary.inc",
     "code, _mm512_cmpgt_epi32_mask(all, _mm512_set1_epi32(0x7f800000)),", "code, 0,"),

    # Caches
    ("fp8: ties away from even", "src/base/fp8.h", "(magnitude + 0x7ffffu + (magnitude >> 20 & 1u)) >> 20;",
     "(magnitude + 0x80000u) >> 20;"),
    ("fp8: what is too large becomes NaN", "src/base/fp8.h", "magnitude = PENC_FP8_MOST_BITS;",
     "return PENC_FP8_NAN;"),
    ("int8: scale from 128", "src/kernels/head_scalar.c", "== PENC_FORMAT_INT8 ? 127.0f : PENC_FP8_MOST;",
     "== PENC_FORMAT_INT8 ? 128.0f : PENC_FP8_MOST;"),
    ("int8: a head with a NaN gets a number for its scale", "src/kernels/head_scalar.c",
     "*scale = largest >= 0x7f800000u ?", "*scale = largest > 0x7fffffffu ?"),
    ("caches: every head has the first one's scale", "src/rope/head_pass.c",
     "token->y_scales ? token->y_scales + at * y->scale_head : NULL;", "token->y_scales;"),
    ("caches: rows scattered to the wrong stride", "src/rope/head_pass.c",
     "penc_copy_spread(y_bytes, g->heads, pass->head_dim, g->y.data, dim, 1, to, y->head,",
     "penc_copy_spread(y_bytes, g->heads, pass->head_dim, g->y.data, dim, 1, to, dim,"),
    ("caches: the block's stride ignored", "src/cache/cache_view.c",
     "(block * c->block_stride + place * c->token_stride)", "((ptrdiff_t)slot * c->token_stride)"),
    ("caches: padding is written", "src/cache/cache_append.c", "    if (slot < 0)\n        return;",
     "    if (slot < 0)\n        slot = 0;"),
    ("caches: starts ignored", "src/cache/cache_slots.c",
     "size_t place = (s->starts ? (size_t)s->starts[batch] : 0) + token;", "size_t place = token;"),
    ("caches: slots named twice accepted where the list falls", "src/cache/cache_slots.c",
     "        if (marks[at / 64] & mark)\n            return i;\n", ""),
    ("caches: the first slots of a list are not compared with the rest", "src/cache/cache_slots.c",
     "    for (int64_t first = least; first <= most;", "    for (int64_t first = least + 64; first <= most;"),
    ("caches: blocks outside accepted", "src/cache/cache_slots.c",
     "if (block < 0 || (size_t)block >= view->cache.blocks)", "if (block < 0)"),
    ("caches: scales that are too few accepted", "src/cache/cache_view.c",
     "(size_t)view->scales.high / sizeof(float) > c->scale_count)",
     "(size_t)view->scales.high / sizeof(float) > c->scale_count + 1)"),
    ("caches: values may lie in the keys' scales", "src/cache/cache_append.c",
     "penc_check_cache_apart(&keys->view, &view->data, view->cache.data, \"values.cache\", error);",
     "penc_check_cache_apart(&keys->view, &view->data, error ? &error[1] : NULL, \"values.cache\", error);"),
    ("shift: the attention factor is applied again", "src/cache/cache_shift.c",
     "rows.without_attention = 1;", "rows.without_attention = 0;"),
    ("shift: attention factors do not change", "src/cache/cache_shift.c",
     "row->cos[j] = (float)(plan->ratio * along);", "row->cos[j] = (float)along;"),
    ("shift: the other way", "src/cache/cache_shift.c",
     "way[axis] = row->to[axis] - row->from[axis];", "way[axis] = row->from[axis] - row->to[axis];"),
    ("shift: a row made for another way is used again", "src/cache/cache_shift.c",
     "(plan->whole ? to - from == row->to[axis] - row->from[axis]", "(plan->whole ? 1"),
    ("shift: positions that stay are turned", "src/cache/cache_shift.c",
     "if (!moves && plan->shift.from == plan->shift.to", "if (moves > 1 && plan->shift.from == plan->shift.to"),
    ("shift: starts from the cache in place of the originals", "src/cache/cache_shift.c",
     ".x = penc_slot_data(&plan->source, from),", ".x = penc_slot_data(&plan->view, to),"),

    # Rotation: the run
    ("half and interleaved swapped", "src/rope/rotate_run.c",
     "    if (pairing == POSENC_PAIRING_INTERLEAVED) {",
     "    if (pairing == POSENC_PAIRING_HALF) {"),
    ("half pairs head_dim/2 apart in place of rotary_dim/2", "src/rope/rotate_run.c",
     "penc_side_of(x, rotation->pairing, pairs);",
     "penc_side_of(x, rotation->pairing, x->shape[POSENC_AXIS_HEAD_DIM] / 2);"),
    ("the output's pairing ignored", "src/rope/rotate_run.c",
     "penc_side_of(y, plan->y_pairing, pairs);",
     "penc_side_of(y, rotation->pairing, pairs);"),
    ("rotary_start ignored", "src/rope/rotate_run.c",
     "    size_t start = plan->rotation.rotary_start;\n    ptrdiff_t pair",
     "    size_t start = 0;\n    ptrdiff_t pair"),
    ("only the first head rotated", "src/rope/rotate_run.c",
     "call.job.heads = x->shape[POSENC_AXIS_HEADS];",
     "call.job.heads = x->shape[POSENC_AXIS_HEADS] > 0;"),
    ("copy of untouched channels left out", "src/rope/rotate_run.c",
     "            if (!plan->in_place) {",
     "            if (!plan->in_place && !plan) {"),
    ("copy of the channels behind left out", "src/rope/rotate_run.c",
     "penc_copy_channels(&call, &block, end,",
     "penc_copy_channels(&call, &block, plan->x->shape[POSENC_AXIS_HEAD_DIM],"),
    ("channels that are copied are not converted", "src/rope/rotate_run.c",
     "            if (alike)\n",
     "            if (call->from_bytes == call->to_bytes)\n"),
    ("batch stride ignored", "src/rope/row_finder.h",
     "rotation->batch > 1 ? (ptrdiff_t)batch * rotation->batch_stride : 0;",
     "0;"),
    ("row_ids: one list for all sequences", "src/rope/row_finder.h",
     "(ptrdiff_t)batch * rotation->row_ids_stride + (ptrdiff_t)token]",
     "(ptrdiff_t)token]"),
    ("row_starts: the first one for all sequences", "src/rope/row_finder.h",
     "rotation->row_starts[batch] : 0) + (ptrdiff_t)token;",
     "rotation->row_starts[0] : 0) + (ptrdiff_t)token;"),
    ("ragged sequences do not begin anew", "src/rope/row_finder.h",
     "return start + (ptrdiff_t)token - rotation->cu_seqlens[finder->sequence];",
     "return start + (ptrdiff_t)token - rotation->cu_seqlens[0];"),
    ("ragged sequences begin one token late", "src/rope/row_finder.h",
     "while (token >= (size_t)",
     "while (token > (size_t)"),
    ("row_starts of ragged sequences ignored", "src/rope/row_finder.h",
     "rotation->row_starts ? (ptrdiff_t)rotation->row_starts[finder->sequence] : 0;",
     "0;"),
    ("ranges of tokens begin at the first", "src/rope/rotate_run.c",
     "penc_next_block(&call, batch, plan->first + done, &block);",
     "penc_next_block(&call, batch, done, &block);"),
    ("the transpose ignored in vectors", "src/rope/rotate_run.c",
     "        real sign = call->plan->transpose ? -1 : 1;",
     "        real sign = call->plan->transpose ? 1 : 1;"),
    ("the transpose ignored with doubled rows", "src/rope/rotate_run.c",
     "const float sign = call->plan->transpose ? -1.0f : 1.0f;",
     "const float sign = 1.0f;"),
    ("every piece of a wide head takes its first row numbers", "src/rope/rotate_run.c",
     "ptrdiff_t row = block->rows[i] + (ptrdiff_t)first * rotation->pair_stride;",
     "ptrdiff_t row = block->rows[i];"),
    ("pairs that are not side by side taken to be so", "src/rope/rotate_run.c",
     "call.prepare = call.flat || plan->transpose || rotation->pair_stride != 1;",
     "call.prepare = call.flat || plan->transpose;"),
    ("halves that differ taken for a rotation", "src/rope/rotate_run.c",
     "rotation->second_stride == 0;",
     "1;"),
    ("streaming without alignment", "src/rope/rotate_run.c",
     "    return odd % 64 == 0;",
     "    return odd % 2 == 0;"),
    ("streaming whatever the second half's alignment", "src/rope/rotate_run.c",
     "        odd |= (uintptr_t)(call->job.y.gap * call->to_bytes);",
     "        odd |= 0;"),
    ("rearranged in place without a copy", "src/rope/rotate_run.c",
     "call->plan->in_place && call->plan->y_pairing !=",
     "!call->plan && call->plan->y_pairing !="),
    ("groups of heads overrun the last head", "src/rope/rotate_run.c",
     "some.heads = job->heads - head < GROUP ? job->heads - head : GROUP;",
     "some.heads = GROUP;"),

    # Rotation: the checks
    ("inverse ignored", "src/rope/rotate_plan.c",
     "plan->transpose = options->direction != POSENC_FORWARD;",
     "plan->transpose = 0;"),
    ("backward like forward", "src/rope/rotate_plan.c",
     "plan->transpose = options->direction != POSENC_FORWARD;",
     "plan->transpose = options->direction == POSENC_INVERSE;"),
    ("attention factor not squared", "src/rope/rotate_plan.c",
     "plan->scale = 1.0 / (factor * factor);",
     "plan->scale = 1.0 / factor;"),
    ("an inverse of no rotation accepted", "src/rope/rotate_plan.c",
     "if (plan->rotation.second_stride)",
     "if (plan->rotation.second_stride && !options)"),
    ("pair stride of a caller's table ignored", "src/rope/rotate_plan.c",
     "    if (rotation->pair_stride == 0)\n        rotation->pair_stride = 1;",
     "    rotation->pair_stride = 1;"),
    ("output strides are those of the input", "src/rope/rotate_plan.c",
     "plan->y = output;",
     "plan->y = item->tensor;"),
    ("16-bit tensors take float64 tables for granted", "src/rope/rotate_plan.c",
     "    if (rotation->dtype != needed)",
     "    if (rotation->dtype != needed && !tensor)"),
    ("another dtype at the same address taken for in place", "src/rope/rotate_plan.c",
     "plan->input == plan->output && plan->x->dtype == plan->y->dtype &&",
     "plan->input == plan->output &&"),
    ("second numbers not looked for in the output", "src/rope/rotate_plan.c",
     "rotation->second_stride ? 2 : 1,",
     "1,"),
    ("slices too wide to rearrange accepted", "src/rope/rotate_plan.c",
     "plan->rotation.rotary_dim <= room)",
     "plan->rotation.rotary_dim <= 2 * room)"),
    ("row id one beyond the table accepted", "src/rope/rotate_plan.c",
     "(uint64_t)id >= rotation->tokens)",
     "(uint64_t)id > rotation->tokens)"),
    ("only the first list of row ids looked at", "src/rope/rotate_plan.c",
     "size_t lists = rotation->row_ids_stride ? tensor->shape[POSENC_AXIS_BATCH] : 1;",
     "size_t lists = 1;"),
    ("overrunning row start accepted", "src/rope/rotate_plan.c",
     "length > rotation->tokens - (size_t)start)",
     "length > rotation->tokens)"),
    ("falling cu_seqlens accepted", "src/rope/rotate_plan.c",
     "if (ends[s + 1] < ends[s])",
     "if (ends[s + 1] < ends[s] && ends[s + 1] < 0)"),
    ("cu_seqlens of fewer tokens accepted", "src/rope/rotate_plan.c",
     "if ((size_t)ends[last] != tokens)",
     "if ((size_t)ends[last] > tokens)"),
    ("cu_seqlens from 1 accepted", "src/rope/rotate_plan.c",
     "if (ends[0] != 0)",
     "if (ends[0] < 0)"),
    ("ranges beyond the tokens accepted", "src/rope/rotate_plan.c",
     "options->token_count > tokens - options->first_token)",
     "options->token_count > tokens)"),

    # Rotation: the entry
    ("half and interleaved swapped in the row primitives", "src/rope/rotate.c",
     "{0, 0, interleaved ? 2 : 1, interleaved ? 1 : pairs}",
     "{0, 0, interleaved ? 1 : 2, interleaved ? pairs : 1}"),
    ("items not compared with earlier ones", "src/rope/rotate.c",
     "other < i && !status; other++)",
     "other + 1 < i && !status; other++)"),
    ("an item's input not compared with later outputs", "src/rope/rotate.c",
     "status = penc_check_items_apart(&plans[i], &plans[other], error);",
     "status = penc_check_items_apart(&plans[other], &plans[i], error);"),
    ("an earlier output not compared with later inputs", "src/rope/rotate.c",
     "status = penc_check_items_apart(&plans[other], &plans[i], error);",
     "status = penc_check_items_apart(&plans[i], &plans[other], error);"),
    ("errors name the wrong item", "src/rope/rotate.c",
     "penc_fail_place(error, \"item\", (int64_t)i);",
     "penc_fail_place(error, \"item\", 0);"),
    ("each item written once it is checked", "src/rope/rotate.c",
     "        if (status) {\n            penc_fail_place(",
     "        if (!status)\n            penc_run_plan(&plans[i]);\n        if (status) {\n            penc_fail_place("),
    ("only the first item rotated", "src/rope/rotate.c",
     "    for (size_t i = 0; i < count; i++)\n        penc_run_plan",
     "    for (size_t i = 0; i < count && i < 1; i++)\n        penc_run_plan"),
    ("rows in one array: sin taken for cos", "src/rope/rotation.c",
     "made.sin = (const char *)rows->cos + pairs * bytes;",
     "made.sin = rows->cos;"),

    # Tables of rows
    ("pieces of a table begin at its first position", "src/rope/table.c",
     "table->first + (int64_t)(done + i % PIECE);",
     "table->first + (int64_t)(i % PIECE);"),
    ("a table's rotation begins at its first row", "src/rope/table.c",
     "size_t skipped = (size_t)(start - table->first);",
     "size_t skipped = 0 * (size_t)(start - table->first);"),
    ("a table's rotation ends beyond it", "src/rope/table.c",
     "if (tokens > table->count - skipped) {",
     "if (tokens > table->count) {"),

    # Sinusoidal tables
    ("odd rules swapped", "src/absolute/sinusoidal.c", "spec->odd == POSENC_ODD_ZERO;",
     "spec->odd == POSENC_ODD_TRUNCATE;"),
    ("shift ignored", "src/absolute/sinusoidal.c",
     "plan.denominator = width - 2 * (size_t)spec->shift;", "plan.denominator = width;"),
    ("scale ignored", "src/absolute/sinusoidal.c", "penc_turns_of(&radians, resolved.scale)",
     "penc_turns_of(&radians, 1.0)"),
    ("the sign of scale ignored", "src/frequencies/ladder.c", "        scale < 0};", "        0};"),
    ("start ignored", "src/absolute/sinusoidal.c",
     "job->spec->start + penc_position_at(job->positions, row)",
     "penc_position_at(job->positions, row)"),
    ("padding row ignored", "src/absolute/sinusoidal.c", "return job->spec->has_padding &&",
     "return !job->spec->has_padding &&"),
    ("cos block before sin block swapped", "src/absolute/sinusoidal.c",
     "plan.sin_first = plan.cosines;", "plan.cos_first = plan.sines;"),
    ("fractions of positions cut off", "src/absolute/sinusoidal.c",
     "return positions ? positions[i] : (double)i;",
     "return positions ? trunc(positions[i]) : (double)i;"),
    ("the zero column left as it was", "src/absolute/sinusoidal.c",
     "for (size_t row = 0; plan.zero_column && row < count; row++)",
     "for (size_t row = count; plan.zero_column && row < count; row++)"),

    # ALiBi
    ("ALiBi exponent off by one", "src/bias/alibi.c",
     "uint64_t numerator = head + 1, denominator", "uint64_t numerator = head, denominator"),
    ("ALiBi plain for paper", "src/bias/alibi.c", "if (spec->slopes == POSENC_SLOPES_PAPER) {",
     "if (spec->slopes == POSENC_SLOPES_PLAIN) {"),
    ("ALiBi: the heads beyond a power of two off by one", "src/bias/alibi.c",
     "numerator = 2 * (head - denominator) + 1;", "numerator = 2 * (head - denominator) + 2;"),
    ("ALiBi max_bias ignored", "src/bias/alibi.c", "penc_exponent_of(spec->max_bias)",
     "penc_exponent_of(8.0)"),
    ("causal mask hides the query's own key", "src/kernels/bias_row.inc", "causal && place > 0;",
     "causal && place >= 0;"),
    ("symmetric bias rewards later keys", "src/kernels/bias_row.inc",
     "NAME(ramp)(to, count, -place, -1, slope, add);", "NAME(ramp)(to, count, place, 1, slope, add);"),
    ("symmetric bias of far rows rewards later keys", "src/bias/alibi_row.inc",
     "(distance < 0 ? distance : -distance)", "(-distance)"),
    ("distance 0 gives -0", "src/kernels/bias_row.inc",
     "slope * (REAL)(place > 0 ? -place : place)", "-(slope * (REAL)(place > 0 ? place : -place))"),
    ("the cache line with the query's own key hides nothing", "src/kernels/bias_row.inc",
     "NAME(any)(to + before, LINE, place + (int32_t)before, slope, causal, add);",
     "NAME(any)(to + before, LINE, place + (int32_t)before, slope, 0, add);"),
    ("a hidden NaN is written over", "src/kernels/bias_row.inc", "add && hidden && old != old", "add && hidden && 0"),
    ("int32 distances run over", "src/bias/alibi.c", "query <= INT32_MAX / 2", "query <= INT64_MAX / 2"),
    ("own slopes of one head serve all", "src/bias/alibi.c", "t.slopes ? t.slopes[head]", "t.slopes ? t.slopes[0]"),
    ("query_offset's default off by one", "src/bias/alibi.c",
     "(int64_t)tile->keys - (int64_t)tile->queries;",
     "(int64_t)tile->keys - (int64_t)tile->queries + 1;"),
    ("query_offset ignored", "src/bias/alibi.c", "if (!tile->has_query_offset)",
     "if (tile->has_query_offset >= 0)"),
    ("first_head ignored", "src/bias/alibi.c", "penc_alibi_slope(&alibi, t.first_head + head)",
     "penc_alibi_slope(&alibi, head)"),
    ("first_head of the slopes ignored", "src/bias/alibi.c",
     "penc_alibi_slope(&resolved, first_head + i)", "penc_alibi_slope(&resolved, i)"),
    ("bias written where it should be added", "src/kernels/bias_row.inc",
     "STORE(add ? LOAD(to[i]) + value : value)", "STORE(add && !count ? LOAD(to[i]) + value : value)"),
    ("bias of far rows written where it should be added", "src/bias/alibi_row.inc",
     "add ? LOAD(to[key]) + value : value", "add && !row ? LOAD(to[key]) + value : value"),
    # GGUF
    ("big-endian files read as little-endian", "src/formats/gguf_open.c",
     "cursor->big = version && (version & 0xffff) == 0;", "cursor->big = 0;"),
    ("lengths of version 1 taken as 64 bits", "src/formats/gguf_open.c", "version == 1 ? 4 : 8;", "8;"),
    ("signed integers read as unsigned", "src/formats/gguf_cursor.c",
     "return number & sign ? -(int64_t)", "return number & sign & 0 ? -(int64_t)"),
    ("arrays may reach beyond the file", "src/formats/gguf_cursor.c",
     "*count <= (input->size - cursor->at) / least)", "*count <= (input->size - cursor->at))"),
    ("arrays nest without limit", "src/formats/gguf_cursor.c", "nesting + 1);", "nesting);"),
    ("any byte is a bool", "src/formats/gguf_cursor.c", "number > 1)", "number > 255)"),
    ("names with NUL accepted", "src/formats/gguf_cursor.c", "valid < *length || memchr(name, 0, *length)",
     "valid < *length"),
    ("names that are no UTF-8 accepted", "src/formats/gguf_cursor.c", "valid < *length || memchr", "memchr"),
    ("two keys of a name accepted", "src/formats/gguf_open.c", "if (status || !found)", "if (status || found)"),
    ("alignments that are no power of 2 accepted", "src/formats/gguf_open.c",
     "(alignment & (alignment - 1)) != 0)", "alignment % 8 != 0)"),
    ("the data begin where the descriptions end", "src/formats/gguf_open.c",
     "(cursor->at + mask) & ~mask;", "cursor->at;"),
    ("unaligned tensors accepted", "src/formats/gguf_tensors.c", "tensor->offset & (alignment - 1))",
     "tensor->offset & (alignment - 1) & 0)"),
    ("shapes in the file's order", "src/formats/gguf_tensors.c", "&tensor->shape[i - 1]);",
     "&tensor->shape[tensor->rank - i]);"),
    ("texts cut at a NUL", "src/formats/gguf_keys.c", "strlen(text) < valid ? strlen(text) : valid;", "valid;"),
    ("walks begin anew at each window", "src/formats/gguf_keys.c", "walk->place = cursor.at;",
     "walk->place = cursor.at & ~UINT64_C(4095) ? cursor.at - 1 : cursor.at;"),
    ("reals from the beginning of an array", "src/formats/gguf_keys.c", "walk.place += first * bytes;", ""),
    ("parts of a split GGUF in any order", "src/formats/gguf_split.c", '"split.no", part - 1, error);',
     '"split.count", count, error);'),
    ("a part of a split GGUF alone", "src/formats/gguf_split.c", "if (status || count <= 1)", "if (status || count)"),

    # JSON
    ("keys may stand twice", "src/formats/json_file.c", "scan->text, NULL)) {", 'scan->text, NULL) && !scan->at) {'),
    ("reals overflow to infinity", "src/formats/json_file.c", "if (isinf(number) &&", "if (0 &&"),
    ("integers beyond int64 are cut", "src/formats/json_file.c", "if (!errno) {", "if (errno || !errno) {"),
    ("leading zeros accepted", "src/formats/json_scan.c", "first == '0' && json->length >",
     "first == '0' && json->length > 100 +"),
    ("lone surrogates accepted", "src/formats/json_scan.c", "if (low < 0xdc00 || low >= 0xe000)",
     "if (low >= 0xe000)"),
    ("windows cut characters", "src/formats/json_scan.c", "json->at - json->window.place < json->window.count)",
     "json->at - json->window.place <= json->window.count)"),
    ("text after the value accepted", "src/formats/json_scan.c", "return next == -1 && !json->status ?",
     "return !json->status ?"),
    ("brackets close each other", "src/formats/json_scan.c",
     "next == (penc_json_in_object(json) ? '}' : ']');", "(next == '}' || next == ']');"),
    ("overlong UTF-8 accepted", "src/base/utf8.h", "first < 0xc2 ||", "first < 0xc0 ||"),
    ("surrogates in UTF-8 accepted", "src/base/utf8.h", "if (first == 0xed)", "if (first == 0xee)"),

    # safetensors
    ("data may overlap", "src/formats/tensor_source.c", "if (entry->begin < end ||", "if (entry->begin + 1 < end ||"),
    ("gaps between data accepted", "src/formats/tensor_source.c", "(closed && entry->begin > end))",
     "(closed && entry->begin > end + 1))"),
    ("bytes after the data accepted", "src/formats/tensor_source.c", "if (!closed || end == size)",
     "if (!closed || end <= size)"),
    ("data may end behind the file", "src/formats/tensor_source.c", "entry->bytes > size - entry->begin)",
     "entry->bytes > size)"),
    ("two tensors of a name accepted", "src/formats/entry_list.c", "order->twins = 1;", "order->twins = 0;"),
    ("names of one hash are the same", "src/formats/entry_list.c", "if (strcmp(found, wanted) == 0) {",
     "if (strcmp(found, wanted) == 0 || i) {"),
    ("the heap sinks to the smaller child", "src/formats/entry_list.c",
     "order->before(order, &entries[child], &entries[child + 1]))",
     "order->before(order, &entries[child + 1], &entries[child]))"),
    ("bytes of a tensor unchecked", "src/formats/safetensors_entry.c", "if (bytes == tensor->bytes)",
     "if (bytes >= tensor->bytes)"),
    ("numbers overflow", "src/formats/safetensors_entry.c", "if (*number > ((uint64_t)INT64_MAX - value) / 10)",
     "if (0)"),
    ("members may stand twice", "src/formats/safetensors_entry.c", "if (*seen & 1u << member)", "if (0)"),
    ("metadata of any type", "src/formats/safetensors_open.c", "if (!status && token != PENC_JSON_STRING) {",
     "if (!status && token == PENC_JSON_ARRAY) {"),
    ("shapes overflow beside a 0", "src/formats/tensor_info.c", "else if (product > INT64_MAX / tensor->shape[i])",
     "else if (!empty && product > INT64_MAX / tensor->shape[i] && tensor->shape[tensor->rank - 1])"),
    ("rows beyond a tensor", "src/formats/tensor_source.c", "rows > all - first) {", "rows > all) {"),

    # Sets and names
    ("one tensor in two files accepted", "src/formats/tensor_set.c",
     "status = penc_fail(error, POSENC_FORMAT, \"tensor\", \"stand in one file only\");",
     "return POSENC_OK;"),
    ("tensors in another shard than the index says", "src/formats/safetensors_index.c",
     "strcmp(penc_file_name(file->input.path), shard) == 0))", "1))"),
    ("shards in other folders", "src/formats/safetensors_index.c", "strchr(json->text, '/'))) {", "0)) {"),
    ("wk as large as wq", "src/formats/llama2c.c",
     '{"attention.wk.weight", 1, {PENC_KV_DIM, PENC_DIM}, 0}', '{"attention.wk.weight", 1, {PENC_DIM, PENC_DIM}, 0}'),
    ("w2 turned over", "src/formats/llama2c.c", "{PENC_DIM, PENC_HIDDEN}", "{PENC_HIDDEN, PENC_DIM}"),
    ("names may leave a store", "src/formats/model_names.c", "if (name[i] == '.' && (i == 0 || name[i - 1] == '.'))",
     "if (0)"),
    ("HF_HOME before HF_HUB_CACHE", "src/formats/model_names.c",
     "    if (cache)\n        return penc_path_join(cache, NULL);\n", ""),
    ("tags of Ollama ignored", "src/formats/model_names.c", '*tag = colon ? colon + 1 : "latest";', '*tag = "latest";'),
    ("later parts of a split GGUF count", "src/formats/model_path.c", 'strncmp(part + 1, "00001", 5) != 0;', "0;"),
]


class Failure(Exception):
    pass


def check_mutants(mutants):
    """Every old text must occur exactly once, else the list is out of step with the sources."""
    faults = []
    for name, file, old, new in mutants:
        path = ROOT / file
        found = path.read_text().count(old) if path.is_file() else 0
        if found != 1 or old == new:
            faults.append(f"mutant '{name}': its text occurs {found} times in {file}, not once")
    if faults:
        raise Failure("\n".join(faults))


def run(command, **options):
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", **options)


def pkg_config(*arguments):
    done = run(["pkg-config", *arguments])
    if done.returncode:
        raise Failure(done.stdout)
    return done.stdout.split()


def unit_tests():
    """The C files of each test in TESTS, by tests/units.cmake."""
    text = re.sub(r"#.*", "", (ROOT / "tests/units.cmake").read_text())
    programs = {}
    for call in re.findall(r"\bposenc_test\(([^)]*)\)", text):
        name, *words = call.split()
        files = [word for word in words if word.endswith(".c")]
        programs[name] = [f"tests/test_{name}.c"] + [f"tests/{file}" for file in files]
    missing = [name for name in TESTS if name not in programs]
    if missing:
        raise Failure(f"tests/units.cmake has no test {', '.join(missing)}")
    return {name: programs[name] for name in TESTS}


class Build:
    """A tree of src, include and tests, its objects, and the programs linked from them."""

    compiler = os.environ.get("CC", "cc").split()

    def __init__(self, folder):
        self.folder = folder
        self.objects = {}  # C file -> object
        self.libraries = pkg_config("--libs", *PACKAGES) + ["-lm", "-lpthread"]

    def compile(self, file):
        target = self.folder / "objects" / file.replace("/", "_")
        target.parent.mkdir(exist_ok=True)
        flags = ["-std=c11", "-O1", "-w", "-ffp-contract=off", "-D_GNU_SOURCE", "-MMD",
                 f'-DTEST_SOURCE_DIR="{ROOT}"', f'-DTEST_BINARY_DIR="{self.folder}"',
                 "-Isrc", "-Iinclude", "-Itests", *pkg_config("--cflags", *PACKAGES)]
        done = run([*self.compiler, *flags, "-c", file, "-o", f"{target}.o"], cwd=self.folder)
        if done.returncode:
            raise Failure(f"{file} does not compile:\n{done.stdout}")
        self.objects[file] = f"{target}.o"

    def users_of(self, file):
        """The C files that depend on `file`, by what the compiler wrote down."""
        return [source for source, target in self.objects.items()
                if file in Path(target).with_suffix(".d").read_text().split()]

    def link(self, name, files):
        program = self.folder / f"test_{name}"
        done = run([*self.compiler, *(self.objects[file] for file in files), "-o", program,
                    *self.libraries])
        if done.returncode:
            raise Failure(f"test_{name} does not link:\n{done.stdout}")
        return program


def of_prefix(table, file):
    """What the table has for the longest beginning of the file's name."""
    found = [prefix for prefix in table if file.startswith(prefix)]
    return table[max(found, key=len)] if found else None


def at_level(level):
    return dict(os.environ, POSENC_CPU=level) if level else None


def run_test(program, limit, level=None):
    """None if it passes, else why not."""
    try:
        done = run([program], cwd=program.parent, timeout=limit, env=at_level(level))
    except subprocess.TimeoutExpired:
        return f"{program.name} (time limit of {limit:.0f} s)"
    if done.returncode == 0:
        return None
    return f"{program.name}\n{done.stdout[-2000:]}" if done.returncode > 0 else f"{program.name} (crash)"


class Mutants:
    def __init__(self, folder, jobs):
        self.folder = folder
        self.jobs = jobs
        sources = library_lists()[0] + library_lists("posenc-model")[0]
        self.library = [file for file in dict.fromkeys(sources) if file.endswith(".c")]
        self.tests = unit_tests()
        self.seconds = {}  # that each test takes without a mutant
        self.lacking = set()  # levels of LEVELS that this CPU does not have

    @staticmethod
    def copy_tree(root, folder):
        folder.mkdir()
        for part in ("src", "include", "tests"):
            shutil.copytree(root / part, folder / part, ignore=shutil.ignore_patterns("data", "*.py"))

    def build_unmutated(self):
        self.copy_tree(ROOT, self.folder / "unmutated")
        done = run(["cmake", f"-DOUTPUT={self.folder / 'unmutated/src/models_table.h'}",
                    f"-DINPUT={ROOT / 'data/models.tsv'}", "-DNAME=penc_models_table",
                    "-P", ROOT / "cmake/embed_text.cmake"])
        if done.returncode:
            raise Failure(f"models_table.h cannot be made:\n{done.stdout}")
        self.base = Build(self.folder / "unmutated")
        files = dict.fromkeys(sum(self.tests.values(), self.library))
        with ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(self.base.compile, files))
        for name, sources in self.tests.items():
            program = self.base.link(name, self.library + sources)
            start = time.monotonic()
            fault = run_test(program, 300)
            if fault:
                raise Failure(f"without a mutant fails {fault}")
            self.seconds[name] = time.monotonic() - start
        for level in set(LEVELS.values()):
            done = run([self.base.folder / "test_rotate_kernels", level], env=at_level(level))
            if done.returncode:
                raise Failure(f"without a mutant fails test_rotate_kernels {level}\n{done.stdout[-2000:]}")
            if "# SKIP" in done.stdout:
                self.lacking.add(level)

    def lacks(self, file):
        """The level that a mutant of this file needs and this CPU lacks, or None."""
        level = of_prefix(LEVELS, file)
        return level if level in self.lacking else None

    def try_mutant(self, number, file, old, new):
        """The test that notices it, or None."""
        folder = self.folder / f"mutant{number}"
        self.copy_tree(self.base.folder, folder)
        path = folder / file
        path.write_text(path.read_text().replace(old, new))
        build = Build(folder)
        build.objects = dict(self.base.objects)
        first, level = of_prefix(FIRST, file), of_prefix(LEVELS, file)
        for source in self.base.users_of(file):
            # Of the instances of a kernel template only that of the level: they take long to compile.
            if not level or not re.match("src/kernels/rotate_(neon|avx)", source) \
                    or source == f"src/kernels/rotate_{level}.c":
                build.compile(source)
        fault = None
        for name in sorted(self.tests, key=lambda name: (name != first, self.seconds[name])):
            program = build.link(name, self.library + self.tests[name])
            limit = 20 + 5 * self.seconds[name]
            fault = run_test(program, limit, level) if level else None
            fault = fault or run_test(program, limit)
            if fault:
                break
        shutil.rmtree(folder)
        return fault.splitlines()[0] if fault else None


def main():
    parser = argparse.ArgumentParser(description="Plants faults and sees whether the tests notice.")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (2)")
    parser.add_argument("--only", default="", help="only mutants with this word in name or file")
    parser.add_argument("--every", type=int, default=1, metavar="N",
                        help="only one of N; the environment's POSENC_LONG brings all back")
    parser.add_argument("--list", action="store_true", help="print the names")
    arguments = parser.parse_args()
    mutants = [m for m in MUTANTS if arguments.only in m[0] or arguments.only in m[1]]
    every = 1 if os.environ.get("POSENC_LONG") else arguments.every
    if every > 1:
        print(f"# one of {every} of {len(mutants)} mutants; with POSENC_LONG=1 all of them")
        mutants = mutants[::every]
    if arguments.list:
        print("\n".join(f"{file}: {name}" for name, file, _, _ in mutants))
        return 0

    failed = 0
    with tempfile.TemporaryDirectory(prefix="posenc-mutants.") as folder:
        try:
            check_mutants(MUTANTS)
            work = Mutants(Path(folder), arguments.jobs)
            work.build_unmutated()
        except Failure as failure:
            print("not ok 1 - the list fits the sources and the tests pass without a mutant")
            print("# " + str(failure).replace("\n", "\n# ") + "\n1..1")
            return 1
        print("ok 1 - the list fits the sources and the tests pass without a mutant", flush=True)

        def try_one(item):
            number, (_, file, old, new) = item
            if work.lacks(file):
                return None, None
            try:
                return work.try_mutant(number, file, old, new), None
            except Failure as failure:
                return None, failure

        with ThreadPoolExecutor(arguments.jobs) as pool:
            results = pool.map(try_one, enumerate(mutants))
            for number, ((name, file, _, _), (killer, failure)) in enumerate(zip(mutants, results), 2):
                if work.lacks(file):
                    print(f"ok {number} - {name} # SKIP this CPU has no {work.lacks(file)}", flush=True)
                    continue
                if killer:
                    print(f"ok {number} - killed: {name} ({killer})", flush=True)
                    continue
                failed += 1
                how = "does not compile" if failure else "SURVIVED"
                print(f"not ok {number} - {how}: {name} ({file})", flush=True)
                if failure:
                    print("# " + str(failure).replace("\n", "\n# "))
    print(f"1..{len(mutants) + 1}")
    return 1 if failed or not mutants else 0


if __name__ == "__main__":
    sys.exit(main())
