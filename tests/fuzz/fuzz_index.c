/* Any bytes as a model.safetensors.index.json, beside two shards a.safetensors and b.safetensors with one tensor each,
 * named like them. SPDX-License-Identifier: MIT */
#include "formats/tensor_set.h"

#include "fuzz_file.h"

#include <string.h>

/* libFuzzer's own paths are relative, so the working folder stays. */
static char folder[] = "/dev/shm/posenc-fuzz-XXXXXX";

static const char *path_of(const char *name) {
    static char path[100];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_whole(const char *name, const void *bytes, size_t count) {
    FILE *file = fopen(path_of(name), "wb");
    FUZZ_CHECK(file && fwrite(bytes, 1, count, file) == count && fclose(file) == 0);
}

static void write_shard(const char *path, char name) {
    char header[80], bytes[100] = {0};
    int length = snprintf(header, sizeof header,
                          "{\"%c\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", name);
    bytes[0] = (char)length;
    memcpy(bytes + 8, header, (size_t)length);
    write_whole(path, bytes, 8 + (size_t)length + 4);
}

static void remove_folder(void) {
    static const char *const names[] = {"a.safetensors", "b.safetensors", "index.json"};
    for (size_t i = 0; i < 3; i++)
        unlink(path_of(names[i]));
    rmdir(folder);
}

static void make_folder(void) {
    static int made;
    if (made++)
        return;
    FUZZ_CHECK(mkdtemp(folder));
    write_shard("a.safetensors", 'a');
    write_shard("b.safetensors", 'b');
    atexit(remove_folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    penc_tensor_set *set;
    posenc_error error;
    make_folder();
    write_whole("index.json", data, size);
    posenc_status status = penc_tensor_set_open(path_of("index.json"), &set, &error);
    FUZZ_CHECK(status ? !set : penc_tensor_set_count(set) == penc_tensor_set_files(set));
    if (status && status != POSENC_IO) /* a shard that is not there */
        fuzz_check_error(status, &error);
    penc_tensor_set_close(set);
    return 0;
}
