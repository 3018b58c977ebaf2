/* Frequencies against MPFR, and what specs are refused. SPDX-License-Identifier: MIT */
#include "frequencies_of.h"
#include "guard_pages.h"
#include "oracle.h"
#include "random_data.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static double attention_factor(const posenc_frequencies *frequencies) {
    return posenc_frequencies_attention_factor(frequencies, POSENC_MODE_EXACT);
}

/* --- Frequencies -------------------------------------------------------------------------------- */

/* Every frequency of one width, correctly rounded; the first is 1, the last base^(-(d-2)/d). */
static void assert_inverse_frequencies(size_t dim, double base) {
    posenc_spec spec = spec_of(dim, base);
    posenc_frequencies *frequencies = frequencies_of(&spec);
    mpfr_t w;
    mpfr_init2(w, ORACLE_BITS);
    assert_int_equal(posenc_frequencies_pairs(frequencies), dim / 2);
    for (size_t j = 0; j < dim / 2; j++) {
        double got = posenc_frequencies_inv_freq(frequencies, j, POSENC_MODE_EXACT);
        oracle_frequency(w, 1.0, base, 2 * j, dim);
        if (got != mpfr_get_d(w, MPFR_RNDN))
            fail_msg("base %g, dim %zu, pair %zu: %.17g is off by %g ulp", base, dim, j, got,
                     oracle_ulps(got, w));
    }
    mpfr_clear(w);
    posenc_frequencies_destroy(frequencies);
}

static void inverse_frequencies_are_correctly_rounded(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(bases); i++) {
        for (size_t dim = 2; dim <= 256; dim += 2)
            assert_inverse_frequencies(dim, bases[i]);
    }
    random_stream rng = random_of(__func__);
    for (size_t i = 0; i < random_trials(60); i++)
        assert_inverse_frequencies(2 + 2 * random_below(&rng, 60), random_magnitude(&rng, -6, 30));
    assert_inverse_frequencies(1024, 10000.0);
    assert_inverse_frequencies(36, 1e-6);
    assert_inverse_frequencies(36, 1e30);
    assert_inverse_frequencies(80, 0x1p80); /* powers of two among them */
}

static void frequencies_fall_from_1_to_base_to_minus_d_minus_2_over_d(void **state) {
    (void)state;
    static const size_t dims[] = {2, 4, 6, 36, 64, 80, 96, 128, 256};
    for (size_t i = 0; i < COUNT(bases); i++) {
        for (size_t k = 0; k < COUNT(dims); k++) {
            posenc_spec spec = spec_of(dims[k], bases[i]);
            posenc_frequencies *f = frequencies_of(&spec);
            size_t last = dims[k] / 2 - 1;
            double end = pow(bases[i], -((double)dims[k] - 2.0) / (double)dims[k]);
            for (int mode = POSENC_MODE_EXACT; mode <= POSENC_MODE_FLOAT32; mode++) {
                posenc_mode m = (posenc_mode)mode;
                assert_true(posenc_frequencies_inv_freq(f, 0, m) == 1.0);
                for (size_t j = 0; j < last; j++)
                    assert_true(posenc_frequencies_inv_freq(f, j + 1, m) <
                                posenc_frequencies_inv_freq(f, j, m));
                assert_true(fabs(posenc_frequencies_inv_freq(f, last, m) / end - 1.0) < 1e-6);
            }
            posenc_frequencies_destroy(f);
        }
    }
}

static void float32_frequencies_are_those_of_the_framework_chain(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    size_t differing = 0;
    for (size_t trial = 0; trial < COUNT(bases) * 12 + random_trials(60); trial++) {
        double base = trial < 60 ? bases[trial % 5] : random_magnitude(&rng, -6, 30);
        size_t dim = 2 + 2 * random_below(&rng, 128);
        posenc_spec spec = spec_of(dim, base);
        posenc_frequencies *f = frequencies_of(&spec);
        for (size_t j = 0; j < dim / 2; j++) {
            double got = posenc_frequencies_inv_freq(f, j, POSENC_MODE_FLOAT32);
            if (got != (double)transformers_factor(base, j, dim))
                fail_msg("base %g, dim %zu, pair %zu: %.9g", base, dim, j, got);
            differing += got != (double)(float)posenc_frequencies_inv_freq(f, j, POSENC_MODE_EXACT);
        }
        posenc_frequencies_destroy(f);
    }
    assert_true(differing > 100); /* the chain is not the exact frequency rounded */
}

/* A head of 256 channels of which 64 rotate: exponents divide by 64. */
static void partial_rotation_takes_its_frequencies_from_rotary_dim(void **state) {
    (void)state;
    posenc_spec spec = spec_of(256, 1e7);
    spec.rotary_dim = 64;
    posenc_frequencies *f = frequencies_of(&spec);
    assert_int_equal(posenc_frequencies_pairs(f), 32);
    double second = posenc_frequencies_inv_freq(f, 1, POSENC_MODE_EXACT);
    assert_true(fabs(second - 0.6042963902) < 5e-11); /* not 0.8816830668 = 1e7^(-2/256) */
    posenc_frequencies_destroy(f);
    spec.rotary_dim = 0;
    spec.rotary_start = 192; /* the rest of the head rotates */
    f = frequencies_of(&spec);
    assert_true(posenc_frequencies_inv_freq(f, 1, POSENC_MODE_EXACT) == second);
    posenc_frequencies_destroy(f);
}

static void defaults_are_filled_in_and_noted(void **state) {
    (void)state;
    posenc_spec spec = POSENC_SPEC_INIT;
    spec.head_dim = 96;
    spec.rotary_start = 32;
    posenc_note list[3] = {{0}};
    posenc_notes notes = {list, 3, 77};
    posenc_frequencies *f;
    assert_int_equal(posenc_frequencies_create(&spec, 4096, &f, &notes, NULL), POSENC_OK);
    assert_int_equal(notes.count, 2);
    assert_string_equal(list[0].argument, "rotary_dim");
    assert_true(list[0].value.kind == POSENC_NUMBER_SIZE && list[0].value.as.size == 64);
    assert_string_equal(list[1].argument, "base");
    assert_true(list[1].value.kind == POSENC_NUMBER_REAL && list[1].value.as.real == 10000.0);
    assert_null(list[2].argument);
    const posenc_spec *resolved = posenc_frequencies_spec(f);
    assert_true(resolved->size == sizeof spec && resolved->head_dim == 96);
    assert_true(resolved->rotary_dim == 64 && resolved->rotary_start == 32);
    assert_true(resolved->base == 10000.0 && resolved->pairing == POSENC_PAIRING_HALF);
    assert_true(attention_factor(f) == 1.0);
    posenc_frequencies_destroy(f);
}

static void notes_are_counted_beyond_their_capacity(void **state) {
    (void)state;
    posenc_spec spec = spec_of(8, 0.0);
    posenc_note list[2] = {{0}};
    posenc_notes notes = {list, 1, 0};
    posenc_frequencies *f;
    assert_int_equal(posenc_frequencies_create(&spec, 0, &f, &notes, NULL), POSENC_OK);
    assert_int_equal(notes.count, 2);
    assert_non_null(list[0].argument);
    assert_null(list[1].argument);
    posenc_frequencies_destroy(f);
    spec.rotary_dim = 8;
    spec.base = 10000.0;
    notes = (posenc_notes){NULL, 0, 5};
    assert_int_equal(posenc_frequencies_create(&spec, 0, &f, &notes, NULL), POSENC_OK);
    assert_int_equal(notes.count, 0); /* nothing was left out */
    posenc_frequencies_destroy(f);
}

static void the_context_length_changes_no_frequency(void **state) {
    (void)state;
    static const uint64_t lengths[] = {0, 1, 4096, UINT64_MAX};
    posenc_spec spec = spec_of(36, 500000.0);
    posenc_frequencies *plain = frequencies_of(&spec);
    for (size_t i = 0; i < COUNT(lengths); i++) {
        posenc_frequencies *f;
        assert_int_equal(posenc_frequencies_create(&spec, lengths[i], &f, NULL, NULL), POSENC_OK);
        for (size_t j = 0; j < 18; j++)
            assert_true(posenc_frequencies_inv_freq(f, j, POSENC_MODE_EXACT) ==
                        posenc_frequencies_inv_freq(plain, j, POSENC_MODE_EXACT));
        posenc_frequencies_destroy(f);
    }
    posenc_frequencies_destroy(plain);
}

static void questions_out_of_range_have_harmless_answers(void **state) {
    (void)state;
    posenc_spec spec = spec_of(8, 0.0);
    posenc_frequencies *f = frequencies_of(&spec);
    assert_true(isnan(posenc_frequencies_inv_freq(f, 4, POSENC_MODE_EXACT)));
    assert_true(isnan(posenc_frequencies_inv_freq(f, SIZE_MAX, POSENC_MODE_FLOAT32)));
    posenc_frequencies_destroy(f);
    posenc_frequencies_destroy(NULL);
}

static void assert_spec_refused(posenc_spec spec, const char *argument) {
    posenc_frequencies *f = (posenc_frequencies *)&spec;
    posenc_error error;
    assert_refused(posenc_frequencies_create(&spec, 0, &f, NULL, &error), &error,
                   POSENC_OUT_OF_RANGE, argument);
    assert_null(f);
    assert_int_equal(posenc_frequencies_create(&spec, 0, &f, NULL, NULL), POSENC_OUT_OF_RANGE);
}

/* A spec with all members given. */
static posenc_spec full_spec(size_t head_dim, size_t rotary_dim, size_t rotary_start, double base) {
    posenc_spec spec = spec_of(head_dim, base);
    spec.rotary_dim = rotary_dim;
    spec.rotary_start = rotary_start;
    return spec;
}

static void bad_specs_are_refused(void **state) {
    (void)state;
    static const size_t bad_widths[] = {0, 1, POSENC_MAX_DIM + 1, SIZE_MAX};
    for (size_t i = 0; i < COUNT(bad_widths); i++)
        assert_spec_refused(spec_of(bad_widths[i], 0.0), "head_dim");
    static const size_t bad_rotary[] = {1, 3, 63, 65, 66, SIZE_MAX, SIZE_MAX - 1};
    for (size_t i = 0; i < COUNT(bad_rotary); i++)
        assert_spec_refused(full_spec(64, bad_rotary[i], 0, 0.0), "rotary_dim");
    assert_spec_refused(spec_of(7, 0.0), "rotary_dim");             /* 7 channels would rotate */
    assert_spec_refused(full_spec(64, 0, 1, 0.0), "rotary_dim");    /* 63 would */
    assert_spec_refused(full_spec(64, 0, 64, 0.0), "rotary_start"); /* none would */
    assert_spec_refused(full_spec(64, 2, SIZE_MAX, 0.0), "rotary_start");
    assert_spec_refused(full_spec(64, 32, 33, 0.0), "rotary_start");
    static const double bad_bases[] = {-1.0,        9.99e-7, 1.01e30, -10000.0, (double)INFINITY,
                                       (double)NAN, 5e-324};
    for (size_t i = 0; i < COUNT(bad_bases); i++)
        assert_spec_refused(spec_of(64, bad_bases[i]), "base");
    posenc_spec spec = spec_of(64, 0.0);
    spec.pairing = (posenc_pairing)2;
    assert_spec_refused(spec, "pairing");
    posenc_frequencies *f = (posenc_frequencies *)&spec;
    posenc_error error;
    assert_refused(posenc_frequencies_create(NULL, 0, &f, NULL, &error), &error,
                   POSENC_NULL_POINTER, "spec");
    assert_null(f);
    assert_refused(posenc_frequencies_create(&spec, 0, NULL, NULL, &error), &error,
                   POSENC_NULL_POINTER, "frequencies");
}

static void widths_and_bases_at_their_limits_are_accepted(void **state) {
    (void)state;
    posenc_spec spec = full_spec(POSENC_MAX_DIM, 2, POSENC_MAX_DIM - 2, 1e-6);
    posenc_frequencies_destroy(frequencies_of(&spec));
    spec = full_spec(2, 2, 0, 1e30);
    posenc_frequencies_destroy(frequencies_of(&spec));
}

static void pairings_and_modes_have_names(void **state) {
    (void)state;
    static const char *const half[] = {"half", "neox", "rotate_half", "half_split", "split_half"};
    static const char *const interleaved[] = {"interleaved", "gptj", "meta", "adjacent", "pairs"};
    for (size_t i = 0; i < 5; i++) {
        posenc_pairing pairing = (posenc_pairing)9;
        assert_int_equal(posenc_pairing_parse(half[i], &pairing, NULL), POSENC_OK);
        assert_int_equal(pairing, POSENC_PAIRING_HALF);
        assert_int_equal(posenc_pairing_parse(interleaved[i], &pairing, NULL), POSENC_OK);
        assert_int_equal(pairing, POSENC_PAIRING_INTERLEAVED);
    }
    assert_string_equal(posenc_pairing_name(POSENC_PAIRING_HALF), "half");
    assert_string_equal(posenc_pairing_name(POSENC_PAIRING_INTERLEAVED), "interleaved");
    assert_null(posenc_pairing_name((posenc_pairing)2));
    assert_string_equal(posenc_mode_name(POSENC_MODE_EXACT), "exact");
    assert_string_equal(posenc_mode_name(POSENC_MODE_FLOAT32), "float32");
    assert_null(posenc_mode_name((posenc_mode)2));
}

static void unknown_and_ambiguous_pairings_are_refused_with_index_pairs(void **state) {
    (void)state;
    static const char *const names[] = {"alternate", "consecutive", "neox_style", "", "Half", "x"};
    posenc_error error;
    posenc_pairing pairing = (posenc_pairing)9;
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_refused(posenc_pairing_parse(names[i], &pairing, &error), &error,
                       POSENC_OUT_OF_RANGE, "pairing");
        assert_non_null(strstr(error.must, "(2j, 2j + 1)"));
        assert_non_null(strstr(error.must, "(j, j + rotary_dim/2)"));
    }
    assert_refused(posenc_pairing_parse(NULL, &pairing, &error), &error, POSENC_NULL_POINTER,
                   "text");
    assert_int_equal(pairing, 9);
    assert_refused(posenc_pairing_parse("half", NULL, &error), &error, POSENC_NULL_POINTER,
                   "pairing");
}

int main(void) {
    random_announce();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inverse_frequencies_are_correctly_rounded),
        cmocka_unit_test(frequencies_fall_from_1_to_base_to_minus_d_minus_2_over_d),
        cmocka_unit_test(float32_frequencies_are_those_of_the_framework_chain),
        cmocka_unit_test(partial_rotation_takes_its_frequencies_from_rotary_dim),
        cmocka_unit_test(defaults_are_filled_in_and_noted),
        cmocka_unit_test(notes_are_counted_beyond_their_capacity),
        cmocka_unit_test(the_context_length_changes_no_frequency),
        cmocka_unit_test(questions_out_of_range_have_harmless_answers),
        cmocka_unit_test(bad_specs_are_refused),
        cmocka_unit_test(widths_and_bases_at_their_limits_are_accepted),
        cmocka_unit_test(pairings_and_modes_have_names),
        cmocka_unit_test(unknown_and_ambiguous_pairings_are_refused_with_index_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
