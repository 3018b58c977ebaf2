"""The cases of sinusoidal tables and ALiBi. SPDX-License-Identifier: MIT"""
from vectors.build import add_bias, add_sinusoidal, add_slopes

POSITIONS = [0, 1, 2, 10, 100, 500]


def sinusoids(to):
    def add(name, catches, positions=POSITIONS, **table):
        add_sinusoidal(to, "sinusoidal_" + name, catches, positions, **table)
    add("paper", "the paper: s0 c0 s1 c1 ...; `2i` used twice in the exponent")
    add("fairseq", "sin then cos, d/2 - 1 in the exponent, the row of the padding position zero, first token at 2",
        [1, 2, 3, 4, 100], layout="sin_cos", shift=1, padding_position=1.0)
    add("whisper", "sin then cos with d/2 - 1: the last frequency is exactly 1/10000", [0, 1, 2, 750, 1499],
        dim=16, layout="sin_cos", shift=1)
    add("marian_hf", "Hugging Face's Marian: sin then cos with d/2, where Marian itself has d/2 - 1", layout="sin_cos")
    add("musicgen", "cos then sin, d/2 - 1", layout="cos_sin", shift=1)
    add("diffusion", "timesteps of Stable Diffusion: cos then sin, d/2, positions that are no whole numbers",
        [0.0, 1.0, 981.0, 0.5, 333.25], dim=16, layout="cos_sin")
    add("flux", "timesteps in [0, 1] times 1000", [0.0, 1.0, 0.125, 0.75], layout="cos_sin", scale=1000.0)
    add("ddpm", "timesteps of DDPM: sin then cos, d/2 - 1", [0.0, 1.0, 999.0], layout="sin_cos", shift=1)
    add("ctranslate2", "positions that start at 1", layout="sin_cos", shift=1, start=1.0)
    add("base_100", "another base", base=100.0)
    add("long", "long and negative positions", [-1, -500, 131071, 1048575, 16777217])
    for odd in ("truncate", "zero", "ceil"):
        for layout in ("interleaved", "sin_cos", "cos_sin"):
            add(f"odd_{odd}_{layout}", f"an odd width by the rule `{odd}`", [0, 1, 10], dim=5, layout=layout, odd=odd)
    add("odd_shifted", "an odd width with d/2 - 1", [0, 1, 10], dim=7, layout="sin_cos", shift=1, odd="zero")
    for dtype in ("f16", "bf16"):
        add(dtype, f"a table in {dtype}: rounded once from the real value", dtype=dtype)


def alibi(to):
    for heads, words in ((1, "one head"), (2, "two heads"), (3, "not a power of two: 1/16, 1/256, 1/4"), (6, "not a "
                         "power of two: the plain rule gives 0.397"), (8, "exponents off by one: the first slope is 1/2"),
                         (12, "not a power of two"), (16, "a power of two"), (40, "Baichuan-13B"), (71, "an odd count"),
                         (112, "BLOOM")):
        add_slopes(to, f"alibi_slopes_{heads}", f"slopes by the paper's rule: {words}; they must not be sorted", heads)
    for heads in (6, 12):
        add_slopes(to, f"alibi_slopes_plain_{heads}", "the plain rule 2^(-8 (h + 1) / H), which some engines use",
                   heads, rule="plain")
    add_slopes(to, "alibi_slopes_max_bias", "MPT's alibi_bias_max", 12, max_bias=16.0)

    def add(name, catches, *arguments, **options):
        add_bias(to, "alibi_bias_" + name, catches, *arguments, **options)
    add("prefill", "causal: 0 on the diagonal, minus infinity above it", 6, 5, 5)
    add("decode", "one query over 20 cached keys stands at the last one: built over the query's length the bias is "
        "all 0", 2, 1, 20)
    add("chunk", "a chunk of queries in the middle of a prompt", 3, 4, 9, query_offset=5)
    add("rank", "heads 4 to 7 of 12 on one tensor-parallel rank: slopes of the whole count, not of 4 heads", 12, 3, 6,
        first_head=4, count=4)
    add("symmetric", "encoders: -slope * |i - j| both ways, nothing masked", 4, 4, 6, mask="symmetric")
    add("far", "far keys: distances and slopes in 16 bits", 8, 1, 300, query_offset=131071, mask="symmetric")
    for dtype in ("f16", "bf16", "f64"):
        add(dtype, f"a bias in {dtype}", 6, 3, 40, dtype=dtype)
