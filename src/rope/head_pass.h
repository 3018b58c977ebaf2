/* All heads of one token on their way: in, norm, rotation, norm, scale, out. What cannot be done from memory to
 * memory at once passes through a piece of memory in the nearest cache, some heads at a time.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_HEAD_PASS_H
#define PENC_HEAD_PASS_H

#include "kernels/head_kernels.h"
#include "kernels/rotate_kernels.h"
#include "posenc/norm_rotate.h"

/* Heads that pass through memory of the call: at most so many bytes of the computing type at once. */
enum { PENC_HEAD_BYTES = 8192 };

/* A side of the pass: channel c of head h of a token is element h * head + c * channel from the token's first, and that of
 * the next token of a run is element `token`; 8 bits have one scale for all, or scale h * scale_head of the token's. */
typedef struct penc_head_side {
    penc_format format;
    ptrdiff_t head, channel, scale_head;
    float tensor_scale;
    ptrdiff_t token, scale_token;
} penc_head_side;

/* What all tokens share. The caller fills the first part and calls penc_ready_pass. */
typedef struct penc_head_pass {
    size_t heads, head_dim;
    penc_head_side x, y;
    int in_place; /* x and y are the same memory */
    int large;  /* x is more than the caches near a core hold: better read in the order of memory */
    int stream; /* y is aligned and should bypass the caches where it can */
    const posenc_norm *norm; /* NULL: none */
    /* rotary_dim 0: none. Its pointers are not used but given with each token */
    const posenc_rotation *rotation;
    posenc_pairing y_pairing;

    const void *weight;          /* in the computing type, 1 added; NULL: none */
    int is_double, from_x, to_y; /* the computing type; whether the rotation reads x and writes y */
    size_t real_bytes, group;    /* of the computing type; heads at once */
    penc_head_kernel *widen, *normalise, *normalise_again, *narrow, *copy;
    penc_head_kernel *all_in_one; /* norm and rotation from x to y; NULL: in stages */
    penc_head_kernel *quantise;   /* to 8 bits, turned before if they turn; NULL: in stages */
    penc_rotate_kernel *turn;
    penc_rotate_job job;
    int prepare; /* rows are copied side by side for the kernel */
} penc_head_pass;

/* One token: its rows (NULL: no rotation), the number that multiplies it, its memory. The scales are those of 8-bit
 * sides; NULL where one scale serves all. */
typedef struct penc_head_token {
    const void *x;
    void *y;
    const float *x_scales;
    float *y_scales;
    const void *cos, *sin;
    double factor;
} penc_head_token;

/* Heads of a tensor. */
penc_head_side penc_side_of_tensor(const posenc_tensor *tensor);

/* Chooses kernels and brings the norm's weight into `weights`, PENC_HEAD_BYTES of the caller's that last as long as the
 * pass. head_dim numbers of the computing type must fit. */
void penc_ready_pass(penc_head_pass *pass, void *weights);

void penc_pass_heads(const penc_head_pass *pass, const penc_head_token *token);

/* `count` tokens, of which the first is given and the others follow at the strides of the sides and of the rotation's
 * rows, multiplied by the same factor. What is the same for all of them is done once. */
void penc_pass_run(const penc_head_pass *pass, const penc_head_token *token, size_t count);

/* The most channels of a head. */
size_t penc_most_channels(posenc_dtype dtype);

#endif
