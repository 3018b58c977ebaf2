/* Any bytes as a model.safetensors.index.json, beside two shards a.safetensors and b.safetensors with one tensor each,
 * named like them. SPDX-License-Identifier: MIT */
#include "formats/tensor_set.h"

#include "fuzz_folder.h"

static void write_shard(const char *path, char name) {
    char header[80], bytes[100] = {0};
    int length = snprintf(header, sizeof header,
                          "{\"%c\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", name);
    bytes[0] = (char)length;
    memcpy(bytes + 8, header, (size_t)length);
    fuzz_write(path, bytes, 8 + (size_t)length + 4);
}

static void make_shards(void) {
    if (!fuzz_make_folder())
        return;
    write_shard("a.safetensors", 'a');
    write_shard("b.safetensors", 'b');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    penc_tensor_set *set;
    posenc_error error;
    make_shards();
    fuzz_write("index.json", data, size);
    posenc_status status = penc_tensor_set_open(fuzz_path("index.json"), &set, &error);
    FUZZ_CHECK(status ? !set : penc_tensor_set_count(set) == penc_tensor_set_files(set));
    if (status && status != POSENC_IO) /* a shard that is not there */
        fuzz_check_error(status, &error);
    penc_tensor_set_close(set);
    return 0;
}
