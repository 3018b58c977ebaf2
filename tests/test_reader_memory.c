/* The largest files that are read, with 64 MiB of memory: the work runs in a process whose address space may grow by
 * no more than that. Files are sparse where they can be. SPDX-License-Identifier: MIT */
#include "formats/json_file.h"
#include "formats/tensor_set.h"

#include "gguf_cases.h"

#include <inttypes.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#if !defined(SANITIZED)
#define SANITIZED 0
#endif

enum { MIB = 1 << 20 };

static const uint64_t fifty_gb = UINT64_C(50) * 1000 * 1000 * 1000;

/* Bytes that the library has read. */
static uint64_t bytes_read;

__attribute__((visibility("default"))) ssize_t pread64(int file, void *to, size_t count,
                                                       off64_t offset) {
    ssize_t moved = syscall(SYS_pread64, file, to, count, offset);
    bytes_read += moved > 0 ? (uint64_t)moved : 0;
    return moved;
}

/* Pages of the address space now. */
static uint64_t address_space(void) {
    uint64_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file) {
        if (fscanf(file, "%" SCNu64, &pages) != 1)
            pages = 0;
        fclose(file);
    }
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Runs `work` in a process that may take 64 MiB more; it returns 0 or has printed what failed. */
static void within_64_mib(int (*work)(void)) {
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        rlim_t limit = address_space() + 64 * MIB;
        const struct rlimit limits = {limit, limit};
        _exit(setrlimit(RLIMIT_AS, &limits) != 0 ? 99 : work());
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("the process ended with %x", (unsigned)status);
}

static int failed(const posenc_error *error) {
    char text[1000];
    posenc_error_text(error, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return 1;
}

/* Opens a set of `count` tensors, finds the one named "last" and reads its last row of 4 bytes. */
static int open_and_read(const char *path, size_t count) {
    penc_tensor_set *set;
    penc_tensor tensor;
    const penc_tensor_source *file;
    posenc_error error;
    unsigned char row[4];
    if (penc_tensor_set_open(path, &set, &error))
        return failed(&error);
    if (penc_tensor_set_count(set) != count)
        return 2;
    if (penc_tensor_set_find(set, "last", &tensor, &file, &error))
        return failed(&error);
    if (!file || penc_tensor_row_bytes(&tensor) != 4)
        return 3;
    if (penc_tensor_read_rows(file, &tensor, penc_tensor_rows(&tensor) - 1, 1, row, &error))
        return failed(&error);
    penc_tensor_set_close(set);
    return 0;
}

/* ---- GGUF ---- */

/* 150,000 tokens, as large vocabularies have, one tensor of nearly 50 GB and a last one. */
static void write_large_gguf(void) {
    static const uint64_t small[] = {4}, large[] = {32, (UINT64_C(45) << 30) / 32};
    gguf_image g = gguf_begin(3, 0, 2, 3);
    add_key_text(&g, "general.architecture", "llama");
    add_key(&g, "tokenizer.ggml.tokens", T_ARRAY);
    add_array(&g, T_STRING, 150000);
    for (int i = 0; i < 150000; i++)
        add_text(&g, i % 2 ? "token" : "longer token");
    add_key(&g, "tokenizer.ggml.scores", T_ARRAY);
    add_array(&g, T_F32, 150000);
    add_zeros(&g.f, 600000);
    add_tensor(&g, "large", 2, large, 24, 0);
    add_tensor(&g, "last", 1, small, 24, UINT64_C(45) << 30);
    gguf_end(&g, "large.gguf");
    assert_int_equal(truncate("large.gguf", (off_t)fifty_gb), 0);
}

static int open_large_gguf(void) {
    int result = open_and_read("large.gguf", 2);
    if (!result && bytes_read > 4 * MIB) { /* the tokens are 2.5 MB, the scores are not read */
        fprintf(stderr, "%" PRIu64 " bytes were read\n", bytes_read);
        return 4;
    }
    return result;
}

static void a_gguf_of_50_gb_takes_little(void **state) {
    (void)state;
    if (SANITIZED)
        skip(); /* the sanitizer reserves address space */
    write_large_gguf();
    within_64_mib(open_large_gguf);
}

enum { MANY_TENSORS = 1 << 20, MANY_KEYS = 1 << 19 };

static void write_full_gguf(void) {
    static const uint64_t shape[] = {4};
    gguf_image g = gguf_begin(3, 0, MANY_TENSORS, MANY_KEYS);
    char name[20];
    for (int i = 0; i < MANY_KEYS; i++) {
        snprintf(name, sizeof name, "%d", i);
        add_key_number(&g, name, T_U8, 1, 1);
    }
    for (int i = 0; i < MANY_TENSORS; i++) { /* against the order of the data */
        snprintf(name, sizeof name, "%d", i);
        add_tensor(&g, i ? name : "last", 1, shape, 24, (uint64_t)(MANY_TENSORS - 1 - i) * 32);
    }
    pad_to(&g, 32);
    size_t size = g.f.size + (size_t)MANY_TENSORS * 32;
    gguf_end(&g, "full.gguf");
    assert_int_equal(truncate("full.gguf", (off_t)size), 0);
}

static int open_full_gguf(void) {
    return open_and_read("full.gguf", MANY_TENSORS);
}

static void a_gguf_with_as_many_keys_and_tensors_as_allowed_takes_little(void **state) {
    (void)state;
    if (SANITIZED)
        skip();
    write_full_gguf();
    within_64_mib(open_full_gguf);
}

/* ---- safetensors ---- */

static void write_large_safetensors(void) {
    char header[300];
    uint64_t large = UINT64_C(45) << 30;
    snprintf(header, sizeof header,
             "{\"large\":{\"dtype\":\"U8\",\"shape\":[%" PRIu64 ",4],\"data_offsets\":[0,%" PRIu64
             "]},\"last\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[%" PRIu64 ",%" PRIu64
             "]}}",
             large / 4, large, large, large + 4);
    image f = {NULL, 0, 0, 0};
    add_number(&f, strlen(header), 8);
    add_bytes(&f, header, strlen(header));
    write_file("large.safetensors", f.bytes, f.size);
    assert_int_equal(truncate("large.safetensors", (off_t)(f.size + large + 4)), 0);
    image_free(&f);
}

static int open_large_safetensors(void) {
    return open_and_read("large.safetensors", 2);
}

static void safetensors_of_50_gb_take_little(void **state) {
    (void)state;
    if (SANITIZED)
        skip();
    write_large_safetensors();
    within_64_mib(open_large_safetensors);
}

enum { LONGEST_HEADER = 100000000 };

static size_t tensors_of_longest_header;

/* As many tensors as fit into the longest header, in no order. */
static void write_full_safetensors(void) {
    image f = {NULL, 0, 0, 0};
    static const char first[] = "{\"last\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}";
    size_t count = 0;
    char entry[120];
    add_number(&f, LONGEST_HEADER, 8);
    add_bytes(&f, first, strlen(first));
    count++;
    for (;;) {
        size_t i = count ^ 1;
        int length =
            snprintf(entry, sizeof entry,
                     ",\"%zx\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[4,4]}", i);
        if (f.size + (size_t)length + 1 > 8 + LONGEST_HEADER)
            break;
        count++;
        add_bytes(&f, entry, (size_t)length);
    }
    add_bytes(&f, "}", 1);
    while (f.size < 8 + LONGEST_HEADER)
        add_bytes(&f, " ", 1);
    add_zeros(&f, 4);
    write_file("full.safetensors", f.bytes, f.size);
    image_free(&f);
    tensors_of_longest_header = count;
}

static int open_full_safetensors(void) {
    return open_and_read("full.safetensors", tensors_of_longest_header);
}

static void a_safetensors_header_of_100_mb_takes_little(void **state) {
    (void)state;
    if (SANITIZED)
        skip();
    write_full_safetensors();
    within_64_mib(open_full_safetensors);
}

/* ---- JSON ---- */

/* Texts of what costs most, up to the limit and beyond. */
static int read_rich_json(void) {
    static const char *const items[] = {"{},", "[],", "0,", "{\"a\":0},", "\"\",", "0.5,", "[0],"};
    static char text[PENC_JSON_MAX_BYTES];
    for (size_t i = 0; i < COUNT(items); i++) {
        size_t refused = 0, length = strlen(items[i]);
        for (size_t size = 1000; size <= sizeof text; size *= 2) {
            json_object *object;
            posenc_error error;
            size_t at = (size_t)sprintf(text, "{\"a\":[");
            for (; at + length + 2 < size; at += length)
                memcpy(text + at, items[i], length);
            memcpy(text + at - 1, "]}", 2); /* in place of the last comma */
            posenc_status status = penc_json_parse(text, at + 1, &object, &error);
            json_object_put(object);
            refused += status == POSENC_UNSUPPORTED;
            if (status && status != POSENC_UNSUPPORTED)
                return failed(&error);
        }
        if (!refused)
            return 5;
    }
    return 0;
}

static void json_of_many_small_values_takes_little(void **state) {
    (void)state;
    if (SANITIZED)
        skip();
    within_64_mib(read_rich_json);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_gguf_of_50_gb_takes_little),
        TEST(a_gguf_with_as_many_keys_and_tensors_as_allowed_takes_little),
        TEST(safetensors_of_50_gb_take_little),
        TEST(a_safetensors_header_of_100_mb_takes_little),
        TEST(json_of_many_small_values_takes_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
