"""The pairing statistic in NumPy: the slow, clear twin of src/checkpoint/pair_statistic.c.

A layer is (q, k): the power (sum of squares) of every row of W_q and W_k, shapes (heads, rotary_dim) and
(kv_heads, rotary_dim), with the squared bias added and the squared norm gain multiplied in. docs/detection.md
tells where the formulas come from. SPDX-License-Identifier: MIT
"""
import math

import numpy as np

HALF, INTERLEAVED = 0, 1
NAMES = ("half", "interleaved")
POWER_FLOOR = 1e-12    # of the head's mean power: rows of zeros have a logarithm too
DEPENDENT = 1e-9       # of the product of variances: a determinant below is rounding
CENTRED_FROM = 4       # heads from which on the profile over frequencies is taken out
SHUFFLES = 1024        # two outliers of a head pair by chance once in as many shuffles as it has channels
LARGE = 512            # exact signs from which on the exact test has to agree
DEVIATIONS, NATS, EACH_NATS = 6.0, 16.0, 8.0
EXACT_SUPPORT, EXACT_CONTRADICTION, EXACT_HINT, EXACT_MIXED = 10.0, 6.0, 1.0, 3.0
TOTAL, RESIDUAL = 0, 1


def logs(layers, shared):
    """Log powers of kv heads: x, y of shape (heads, rotary_dim) and the layer of each head. Heads without
    any power are left out. `shared`: the norm gains tie the heads of a layer together."""
    xs, ys, owners = [], [], []
    for index, (q, k) in enumerate(layers):
        groups = len(q) // len(k)
        for head in range(len(k)):
            power_q = q[head * groups:(head + 1) * groups].sum(0)
            power_k = k[head]
            if not (power_q.any() and power_k.any()):
                continue
            pair = [np.log(np.maximum(p, POWER_FLOOR * p.mean())) for p in (power_q, power_k)]
            xs.append(pair[0] - pair[0].mean())
            ys.append(pair[1] - pair[1].mean())
            owners.append(index)
    return np.array(xs), np.array(ys), np.array(owners)


def members(d, pairing):
    """The two channels of every pair."""
    j = np.arange(d // 2)
    return (j, j + d // 2) if pairing == HALF else (2 * j, 2 * j + 1)


def sums_and_differences(z, pairing, part):
    """z: [..., heads, channels]."""
    a, b = members(z.shape[-1], pairing)
    s, t = (z[..., a] + z[..., b]) / math.sqrt(2), (z[..., a] - z[..., b]) / math.sqrt(2)
    if part == RESIDUAL:
        s, t = s - s.mean(-2, keepdims=True), t - t.mean(-2, keepdims=True)
    elif z.shape[-2] >= CENTRED_FROM:
        s = s - s.mean(-2, keepdims=True)
    return s, t


def likelihoods(x, y, part):
    """Log-likelihood [pairing of q][pairing of k] of a Gaussian for sums and one for differences; 0 where one
    head leaves no residual. x, y: [..., heads, channels]."""
    fit = np.zeros((2, 2, *x.shape[:-2]))
    if part == RESIDUAL and x.shape[-2] < 2:
        return fit
    count = x.shape[-2] * x.shape[-1] / 2
    for p in (HALF, INTERLEAVED):
        for r in (HALF, INTERLEAVED):
            for u, v in zip(sums_and_differences(x, p, part), sums_and_differences(y, r, part)):
                uu, vv, uv = ((m * n).mean((-2, -1)) for m, n in ((u, u), (v, v), (u, v)))
                det = np.maximum(uu * vv - uv * uv, DEPENDENT * uu * vv)
                fit[p, r] -= count / 2 * np.log(np.maximum(det, 1e-300))
    return fit


def ratios(x, y):
    """In favour of half, [TOTAL, RESIDUAL]: both together, q whatever k is, k whatever q is."""
    rows = []
    for part in (TOTAL, RESIDUAL):
        fit = likelihoods(x, y, part)
        rows.append([fit[0, 0] - fit[1, 1], fit[0].max(0) - fit[1].max(0), fit[:, 0].max(0) - fit[:, 1].max(0)])
    return np.array(rows)


def random_numbers(seed, count):
    """SplitMix64, its upper 32 bits."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return (z ^ z >> np.uint64(31)) >> np.uint64(32)


def random_orders(owners, shared, d, shuffles):
    """Orders of the channels [shuffles][heads][d], one after the other from one stream; heads of a layer share
    theirs if they are tied."""
    own = [head for head in range(len(owners)) if not (shared and head and owners[head] == owners[head - 1])]
    numbers = random_numbers(1, shuffles * len(own) * (d - 1)).reshape(shuffles, len(own), d - 1)
    orders = np.tile(np.arange(d), (shuffles, len(own), 1))
    for step, left in enumerate(range(d, 1, -1)):
        pick = (numbers[..., step] * np.uint64(left) >> np.uint64(32)).astype(int)[..., None]
        last = orders[..., left - 1].copy()
        orders[..., left - 1] = np.take_along_axis(orders, pick, -1)[..., 0]
        np.put_along_axis(orders, pick, last[..., None], -1)
    return orders[:, np.searchsorted(own, np.arange(len(owners)), side="right") - 1]


def deviations(x, y, owners, shared, shuffles):
    """The ratios, and how many deviations they lie from what shuffled channels give: standard deviations, or
    a quarter of the largest of them all where tails are heavy."""
    own = ratios(x, y)
    orders = random_orders(owners, shared, x.shape[1], shuffles)
    noise = np.concatenate([ratios(np.take_along_axis(x[None], part, -1), np.take_along_axis(y[None], part, -1))
                            for part in np.array_split(orders, 16)], -1)
    mean = noise.mean(-1)
    spread = np.maximum(noise.std(-1), np.abs(noise - mean[..., None]).max(-1) / 4)
    return own, np.where(spread > 0, (own - mean) / np.where(spread > 0, spread, 1), 0.0)


def squash(t):
    scale = 2 * np.median(np.abs(t))
    return t / (np.abs(t) + scale) if scale > 0 else np.zeros_like(t)


def bound(value, k):
    """-log of a bound on P(|v|^2 > value) for k sub-Gaussian numbers (Hsu, Kakade, Zhang 2012)."""
    if value <= k:
        return 0.0
    root = (math.sqrt(2 * value - k) - math.sqrt(k)) / 2
    return root * root


def exact(x, y, owners, shared):
    """Evidence in nats against the other pairing: [half, interleaved], each (both, q alone, k alone); and
    the number of exact signs."""
    d = x.shape[1]
    low, high = np.arange(0, d // 2, 2), np.arange(0, d // 2, 2) + d // 2
    nats = np.zeros((2, 3))
    signs = 0
    for pairing in (HALF, INTERLEAVED):
        b, c = (low + 1, high) if pairing == HALF else (high, low + 1)
        last = high + 1
        tx, ux, ty, uy = (squash(v) for v in (x[:, low] - x[:, b], x[:, c] - x[:, last],
                                              y[:, low] - y[:, b], y[:, c] - y[:, last]))
        mx, my = ux.mean(0), uy.mean(0)
        rx, ry = ux - mx, uy - my
        parts = np.stack([rx * tx, rx * ty + ry * tx, ry * ty, mx * tx, my * ty], -1)
        if len(x) == 1:
            parts = np.stack([ux * tx, ux * ty + uy * tx, uy * ty, 0 * tx, 0 * ty], -1)
        if shared:
            parts = np.stack([parts[owners == layer].sum(0) for layer in np.unique(owners)])
        parts = parts.reshape(-1, 5)
        signs = len(parts)
        for which, used in enumerate(([0, 1, 2, 3, 4], [0, 3], [2, 4])):
            nats[pairing, which] = bound(*quadratic(parts[:, used]))
    return nats, signs


def quadratic(parts):
    """v' S^-1 v of the sum v and the second moments S of the parts, and the rank of S."""
    second, total = parts.T @ parts, parts.sum(0)
    scale = np.sqrt(np.diag(second))
    keep = scale > 0
    if not keep.any():
        return 0.0, 1
    matrix = second[np.ix_(keep, keep)] / np.outer(scale[keep], scale[keep])
    values, vectors = np.linalg.eigh(matrix)
    along = vectors.T @ (total[keep] / scale[keep])
    fit = values > 1e-9
    return float((along[fit] ** 2 / values[fit]).sum()), int(fit.sum())


def verdict(ratio, deviation, nats, signs):
    """HALF, INTERLEAVED or None, from [TOTAL, RESIDUAL] ratios and deviations and exact [half, interleaved]."""
    strong = [np.sign(d) for r, d in zip(ratio, deviation) if abs(d) >= DEVIATIONS and r * np.sign(d) >= NATS]
    if not strong or min(strong) != max(strong):
        return None
    claim = HALF if strong[0] > 0 else INTERLEAVED
    support, other = nats[claim], nats[1 - claim]
    if other >= EXACT_CONTRADICTION or (signs >= LARGE and support < EXACT_SUPPORT):
        return None
    if claim == INTERLEAVED and (support < EXACT_HINT or support <= other):
        return None
    return claim


def judge(layers, shared, shuffles=SHUFFLES):
    """A dictionary: pairing of both, q, k; the statistics they rest on."""
    x, y, owners = logs(layers, shared)
    fit = likelihoods(x, y, TOTAL)
    own, deviation = deviations(x, y, owners, shared, shuffles)
    nats, signs = exact(x, y, owners, shared)
    differ = max(fit[0, 1], fit[1, 0]) > max(fit[0, 0], fit[1, 1])
    both, q, k = (verdict(own[:, i], deviation[:, i], nats[:, i if differ else 0], signs) for i in range(3))
    if differ:
        both = None
        p = HALF if fit[0, 1] > fit[1, 0] else INTERLEAVED
        if nats[p, 1] + nats[1 - p, 2] < EXACT_MIXED:
            q = k = None
    elif both is not None:
        sign = 1 if both == HALF else -1
        if min((sign * own[:, 1]).max(), (sign * own[:, 2]).max()) < EACH_NATS:
            both = None
    return {"both": both, "q": q, "k": k, "ratio": own, "deviation": deviation, "exact": nats, "signs": signs}
