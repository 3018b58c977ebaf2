/* The central directory of a zip archive. Source: PKWARE, APPNOTE.TXT 6.3. SPDX-License-Identifier: MIT */
#include "formats/npz_read.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of the records without their names; the end record may have a comment behind it. */
enum { PENC_ZIP_END = 22, PENC_ZIP_ENTRY = 46, PENC_ZIP_LOCAL = 30, PENC_ZIP_COMMENT = 65535 };
/* The longest central directory that is read. */
enum { PENC_ZIP_MAX_DIRECTORY = 1 << 20 };

static uint32_t penc_zip_16(const unsigned char *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static uint32_t penc_zip_32(const unsigned char *at) {
    return penc_zip_16(at) | penc_zip_16(at + 2) << 16;
}

/* Where the end record stands: the last one that its own comment fits. */
static posenc_status penc_zip_find_end(const penc_input *input, unsigned char end[PENC_ZIP_END],
                                       uint64_t *place, posenc_error *error) {
    uint64_t most = PENC_ZIP_END + PENC_ZIP_COMMENT;
    size_t bytes = (size_t)(input->size < most ? input->size : most);
    unsigned char *tail = malloc(bytes ? bytes : 1);
    if (!tail)
        return penc_input_fail(input, POSENC_OUT_OF_MEMORY, "archive", "fit into memory", 0, error);
    posenc_status status = penc_input_read(input, input->size - bytes, tail, bytes, error);
    int found = 0;
    for (size_t back = PENC_ZIP_END; !status && !found && back <= bytes; back++) {
        const unsigned char *at = tail + bytes - back;
        if (memcmp(at, "PK\005\006", 4) == 0 && penc_zip_16(at + 20) == back - PENC_ZIP_END) {
            memcpy(end, at, PENC_ZIP_END);
            *place = input->size - back;
            found = 1;
        }
    }
    free(tail);
    if (!status && !found)
        status = penc_input_fail(input, POSENC_FORMAT, "archive", "end with a zip directory",
                                 input->size, error);
    return status;
}

/* The name without its ending. */
static void penc_npz_name(penc_npz_member *member, const unsigned char *name, size_t length) {
    if (length >= 4 && memcmp(name + length - 4, ".npy", 4) == 0)
        length -= 4;
    if (length >= PENC_NPZ_NAME_BYTES)
        length = PENC_NPZ_NAME_BYTES - 1;
    memcpy(member->name, name, length);
    member->name[length] = '\0';
}

/* A member from its entry of the directory and its local record, whose extra field may be longer. */
static posenc_status penc_npz_member_of(const penc_input *input, const unsigned char *entry,
                                        uint64_t place, penc_npz_member *member,
                                        posenc_error *error) {
    unsigned char local[PENC_ZIP_LOCAL];
    uint32_t packed = penc_zip_32(entry + 20), bytes = penc_zip_32(entry + 24);
    uint32_t offset = penc_zip_32(entry + 42);
    if (penc_zip_16(entry + 10) != 0 || penc_zip_16(entry + 8) & 1)
        return penc_input_fail(input, POSENC_UNSUPPORTED, "compression of a member",
                               "be none: numpy.savez, not savez_compressed", place, error);
    if (bytes == UINT32_MAX || offset == UINT32_MAX)
        return penc_input_fail(input, POSENC_UNSUPPORTED, "size of a member", "be below 4 GB",
                               place, error);
    if (packed != bytes || (uint64_t)offset + PENC_ZIP_LOCAL > input->size)
        return penc_input_fail(input, POSENC_FORMAT, "directory", "point into the file", place,
                               error);
    posenc_status status = penc_input_read(input, offset, local, sizeof local, error);
    if (status)
        return status;
    member->place =
        (uint64_t)offset + PENC_ZIP_LOCAL + penc_zip_16(local + 26) + penc_zip_16(local + 28);
    member->bytes = bytes;
    if (memcmp(local, "PK\003\004", 4) != 0 || member->place > input->size ||
        member->bytes > input->size - member->place)
        return penc_input_fail(input, POSENC_FORMAT, "member", "lie within the file", offset,
                               error);
    penc_npz_name(member, entry + PENC_ZIP_ENTRY, penc_zip_16(entry + 28));
    return POSENC_OK;
}

typedef posenc_status penc_npz_take(void *context, const penc_npz_member *member,
                                    posenc_error *error);

static posenc_status penc_npz_walk(const penc_input *input, const unsigned char *directory,
                                   size_t size, uint64_t begin, penc_npz_take *take, void *context,
                                   posenc_error *error) {
    for (size_t at = 0; at < size;) {
        const unsigned char *entry = directory + at;
        size_t rest = size - at, whole = PENC_ZIP_ENTRY;
        if (rest >= PENC_ZIP_ENTRY)
            whole += penc_zip_16(entry + 28) + penc_zip_16(entry + 30) + penc_zip_16(entry + 32);
        if (rest < whole || memcmp(entry, "PK\001\002", 4) != 0)
            return penc_input_fail(input, POSENC_FORMAT, "directory", "be made of whole entries",
                                   begin + at, error);
        penc_npz_member member;
        posenc_status status = penc_npz_member_of(input, entry, begin + at, &member, error);
        if (!status)
            status = take(context, &member, error);
        if (status)
            return status;
        at += whole;
    }
    return POSENC_OK;
}

posenc_status penc_npz_members(const penc_input *input, penc_npz_take *take, void *context,
                               posenc_error *error) {
    unsigned char end[PENC_ZIP_END] = {0};
    uint64_t end_place = 0;
    posenc_status status = penc_zip_find_end(input, end, &end_place, error);
    if (status)
        return status;
    uint32_t count = penc_zip_16(end + 10), size = penc_zip_32(end + 12),
             begin = penc_zip_32(end + 16);
    if (count > PENC_NPZ_MAX_MEMBERS || size > PENC_ZIP_MAX_DIRECTORY)
        return penc_input_fail(input, POSENC_UNSUPPORTED, "archive", "have at most 1024 members",
                               end_place, error);
    if ((uint64_t)begin + size > end_place)
        return penc_input_fail(input, POSENC_FORMAT, "directory", "lie before its end", end_place,
                               error);
    unsigned char *directory = malloc(size ? size : 1);
    if (!directory)
        return penc_input_fail(input, POSENC_OUT_OF_MEMORY, "directory", "fit into memory", begin,
                               error);
    status = penc_input_read(input, begin, directory, size, error);
    if (!status)
        status = penc_npz_walk(input, directory, size, begin, take, context, error);
    free(directory);
    return status;
}
