/* The list of scalings: suffix of the rule's name and the type. A row here, a file beside it, a word in
 * include/posenc/scaling.h and a page in docs/methods make a scaling. SPDX-License-Identifier: MIT */
#ifndef PENC_SCALING_LIST_H
#define PENC_SCALING_LIST_H

#define PENC_SCALINGS(X)                                                                           \
    X(default, POSENC_SCALING_DEFAULT)                                                             \
    X(linear, POSENC_SCALING_LINEAR)                                                               \
    X(ntk, POSENC_SCALING_NTK)                                                                     \
    X(dynamic, POSENC_SCALING_DYNAMIC)                                                             \
    X(yarn, POSENC_SCALING_YARN)                                                                   \
    X(longrope, POSENC_SCALING_LONGROPE)                                                           \
    X(llama3, POSENC_SCALING_LLAMA3)                                                               \
    X(proportional, POSENC_SCALING_PROPORTIONAL)                                                   \
    X(custom, POSENC_SCALING_CUSTOM)

#endif
