/* Lists of entries: sorting, and names whose hashes are equal. SPDX-License-Identifier: MIT */
#include "formats/entry_list.h"

#include "file_cases.h"

/* Entry number i has the name that `names[i]` says: its place is i. */
typedef struct name_list {
    const char *names[8];
    size_t reads, fail_at; /* the reading that fails, from 1; 0: none */
} name_list;

static posenc_status read_name(const void *context, const penc_entry *entry,
                               char name[PENC_NAME_BYTES], size_t *length, posenc_error *error) {
    name_list *list = *(name_list *const *)context;
    (void)error;
    if (++list->reads == list->fail_at)
        return POSENC_IO;
    strcpy(name, list->names[entry->place]);
    *length = strlen(name);
    return POSENC_OK;
}

/* All with the same hash, so that only names tell them apart. */
static size_t fill(penc_entry *entries, const name_list *list) {
    size_t count = 0;
    for (; list->names[count]; count++)
        entries[count] = (penc_entry){0, 0, (uint32_t)count, 7};
    return count;
}

static void names_of_one_hash_are_told_apart(void **state) {
    (void)state;
    name_list list = {{"c", "a", "d", "", "b"}, 0, 0}, *context = &list;
    penc_entry entries[8], twin;
    const penc_entry *entry;
    int found;
    size_t count = fill(entries, &list);
    assert_int_equal(
        penc_entries_find_twin(entries, count, read_name, &context, &found, &twin, NULL),
        POSENC_OK);
    assert_false(found);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(
            penc_entries_find(entries, count, list.names[i], 7, read_name, &context, &entry, NULL),
            POSENC_OK);
        assert_true(entry && entry->place == i);
    }
    assert_int_equal(penc_entries_find(entries, count, "e", 7, read_name, &context, &entry, NULL),
                     POSENC_OK);
    assert_null(entry);
    assert_int_equal(penc_entries_find(entries, count, "a", 8, read_name, &context, &entry, NULL),
                     POSENC_OK);
    assert_null(entry);
}

static void twins_are_found_wherever_they_stand(void **state) {
    (void)state;
    static const char *const others[] = {"m", "z", "a", "k", "b"};
    for (uint32_t first = 0; first < 6; first++) {
        for (uint32_t second = first + 1; second < 7; second++) {
            name_list list = {{NULL}, 0, 0}, *context = &list;
            penc_entry entries[8], twin;
            int found;
            for (uint32_t i = 0, other = 0; i < 7; i++)
                list.names[i] = i == first || i == second ? "twin" : others[other++];
            size_t count = fill(entries, &list);
            assert_int_equal(
                penc_entries_find_twin(entries, count, read_name, &context, &found, &twin, NULL),
                POSENC_OK);
            assert_true(found && twin.place == second);
        }
    }
}

/* A file that cannot be read any more ends the search. */
static void faults_while_names_are_read_are_told(void **state) {
    (void)state;
    for (size_t fail_at = 1; fail_at <= 8; fail_at++) {
        name_list list = {{"c", "a", "d", "", "b"}, 0, fail_at}, *context = &list;
        penc_entry entries[8], twin;
        const penc_entry *entry;
        int found;
        size_t count = fill(entries, &list);
        assert_int_equal(
            penc_entries_find_twin(entries, count, read_name, &context, &found, &twin, NULL),
            POSENC_IO);
        assert_int_equal(list.reads, fail_at);
        list.reads = fail_at - 1;
        assert_int_equal(
            penc_entries_find(entries, count, "x", 7, read_name, &context, &entry, NULL),
            POSENC_IO);
        assert_null(entry);
    }
}

static void entries_are_sorted_by_data_and_by_place(void **state) {
    (void)state;
    enum { LENGTH = 1000 };
    static penc_entry entries[LENGTH];
    random_stream rng = random_of(__func__);
    for (uint32_t i = 0; i < LENGTH; i++)
        entries[i] = (penc_entry){random_below(&rng, 100), random_below(&rng, 3), i, 0};
    penc_entries_sort_by_data(entries, LENGTH);
    for (size_t i = 1; i < LENGTH; i++)
        assert_true(
            entries[i - 1].begin < entries[i].begin ||
            (entries[i - 1].begin == entries[i].begin && entries[i - 1].bytes <= entries[i].bytes));
    penc_entries_sort_by_place(entries, LENGTH);
    for (uint32_t i = 0; i < LENGTH; i++)
        assert_int_equal(entries[i].place, i);
    penc_entries_sort_by_data(entries, 0);
    penc_entries_sort_by_data(entries, 1);
}

int main(void) {
    random_announce();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_one_hash_are_told_apart),
        cmocka_unit_test(twins_are_found_wherever_they_stand),
        cmocka_unit_test(faults_while_names_are_read_are_told),
        cmocka_unit_test(entries_are_sorted_by_data_and_by_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
