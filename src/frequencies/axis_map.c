/* Which axis each pair follows. SPDX-License-Identifier: MIT */
#include "frequencies/axis_map.h"

#include "base/struct_size.h"

static unsigned penc_axis_chunked(const posenc_axes *axes, size_t pair) {
    unsigned axis = 0;
    while (axis + 1 < axes->count && pair >= axes->sections[axis])
        pair -= axes->sections[axis++];
    return axis;
}

static unsigned penc_axis_of(const posenc_axes *axes, size_t pair) {
    size_t turn = pair % axes->count;
    switch (axes->order) {
    case POSENC_AXES_CHUNKED:
        return penc_axis_chunked(axes, pair);
    case POSENC_AXES_INTERLEAVED:
        return turn && pair < axes->count * axes->sections[turn] ? (unsigned)turn : 0;
    case POSENC_AXES_ALTERNATING:
        return (unsigned)turn;
    case POSENC_AXES_ERNIE:
        return pair < axes->sections[0] + axes->sections[1] ? 1 + (unsigned)(pair % 2) : 0;
    case POSENC_AXES_LISTED:
        return axes->pair_axis[pair];
    }
    return 0;
}

/* SIZE_MAX where it does not fit. */
static size_t penc_sum_of_sections(const posenc_axes *axes) {
    size_t sum = 0;
    for (size_t axis = 0; axis < axes->count; axis++)
        sum = axes->sections[axis] > SIZE_MAX - sum ? SIZE_MAX : sum + axes->sections[axis];
    return sum;
}

static posenc_status penc_check_sections(const posenc_axes *axes, size_t pairs,
                                         posenc_error *error) {
    size_t sum = penc_sum_of_sections(axes);
    if (sum != pairs) {
        penc_fail_size(error, "the sum of sections", sum, "be rotary_dim / 2");
        penc_fail_limit(error, "rotary_dim / 2", pairs);
        return POSENC_OUT_OF_RANGE;
    }
    if (axes->order == POSENC_AXES_ERNIE &&
        (axes->count != 3 || axes->sections[0] != axes->sections[1]))
        return penc_fail_size(error, "sections[1]", axes->sections[1],
                              "equal sections[0], with three axes, in the order ernie");
    /* interleaved: axis 0 takes what is left, so its section follows from the others. */
    return POSENC_OK;
}

static posenc_status penc_check_list(const posenc_axes *axes, size_t pairs, posenc_error *error) {
    if (!axes->pair_axis)
        return penc_fail_null(error, "pair_axis");
    for (size_t pair = 0; pair < pairs; pair++) {
        if (axes->pair_axis[pair] >= axes->count) {
            penc_fail_size(error, "pair_axis", axes->pair_axis[pair], "be below the count of axes");
            penc_fail_limit(error, "count", axes->count);
            penc_fail_place(error, "index", (int64_t)pair);
            return POSENC_OUT_OF_RANGE;
        }
    }
    return POSENC_OK;
}

static posenc_status penc_check_axes(const posenc_axes *axes, size_t pairs, posenc_error *error) {
    posenc_status status = penc_check_struct(axes, sizeof *axes, "axes", error);
    if (status)
        return status;
    if (axes->count == 0 || axes->count > POSENC_MAX_AXES)
        return penc_fail_size(error, "axes.count", axes->count, "be from 1 to 8");
    if ((unsigned)axes->order > POSENC_AXES_LISTED)
        return penc_fail_integer(error, "axes.order", axes->order, "be a posenc_axis_order");
    if ((unsigned)axes->exponents > POSENC_EXPONENTS_STRIDED)
        return penc_fail_integer(error, "axes.exponents", axes->exponents,
                                 "be a posenc_axis_exponents");
    if (axes->order == POSENC_AXES_LISTED)
        return penc_check_list(axes, pairs, error);
    return axes->order == POSENC_AXES_ALTERNATING ? POSENC_OK
                                                  : penc_check_sections(axes, pairs, error);
}

posenc_status penc_axis_map_start(const posenc_axes *axes, size_t pairs, penc_axis_map *map,
                                  posenc_error *error) {
    *map = (penc_axis_map){.axes = {.size = sizeof map->axes, .count = 1}, .pairs = pairs};
    map->axes.sections[0] = pairs;
    if (axes) {
        posenc_status status = penc_check_axes(axes, pairs, error);
        if (status)
            return status;
        map->axes = *axes;
    }
    for (size_t pair = 0; pair < pairs; pair++)
        map->of_axis[penc_axis_of(&map->axes, pair)]++;
    return POSENC_OK;
}

penc_axis_place penc_axis_map_next(penc_axis_map *map, size_t pair) {
    penc_axis_place place = {penc_axis_of(&map->axes, pair), pair, map->pairs};
    size_t before = map->seen[place.axis]++;
    if (map->axes.exponents == POSENC_EXPONENTS_OWN) {
        place.rung = before;
        place.ladder = map->of_axis[place.axis];
    } else if (map->axes.exponents == POSENC_EXPONENTS_STRIDED) {
        place.rung = before * map->axes.count + place.axis;
    }
    return place;
}
