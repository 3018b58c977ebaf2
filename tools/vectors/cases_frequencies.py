"""The cases of frequencies, rows and changes of them. SPDX-License-Identifier: MIT"""
from vectors.arrays import sequence
from vectors.build import add_change, add_frequencies, add_rows


def rope(head_dim, *, base=10000.0, rotary_dim=None, rotary_start=0, pairing="half", **members):
    return {"head_dim": head_dim, "rotary_dim": rotary_dim or head_dim, "rotary_start": rotary_start,
            "base": base, "pairing": pairing, **members}


LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8192}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
GPT_OSS = {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096, "truncate": False}
DYNAMIC = {"rope_type": "dynamic", "factor": 10.0}


def longrope(pairs):
    """Lists as Phi's are: slowly growing, the long one by far the steeper."""
    short = [round(1.0 + 0.02 * j + 0.01 * abs(x), 4) for j, x in enumerate(sequence("short", pairs))]
    long = [round(1.0 + 60.0 * (j / pairs) ** 2 + 0.1 * abs(x), 4) for j, x in enumerate(sequence("long", pairs))]
    return {"rope_type": "longrope", "original_max_position_embeddings": 4096, "factor": 32.0,
            "short_factor": short, "long_factor": long}


def axes(order, sections=None, exponents="whole", count=None):
    members = {"count": count or len(sections), "order": order, "exponents": exponents}
    return {**members, "sections": sections} if sections else members


QWEN2_VL = axes("chunked", [16, 24, 24])
QWEN3_VL = axes("interleaved", [24, 20, 20])
GLM_4V = axes("chunked", [8, 12, 12])
ERNIE = axes("ernie", [22, 22, 20])


def frequencies(to):
    def add(name, catches, encoding):
        add_frequencies(to, "freq_" + name, catches, encoding)
    add("default", "the exponent 2j/d: powers off by one, j in place of 2j", rope(128))
    add("base_500000", "a base that is ignored or read as 10000", rope(128, base=500000.0))
    add("partial", "partial rotary: the exponent divides by rotary_dim (64), not head_dim (256)",
        rope(256, rotary_dim=64, base=1e7))
    add("narrow", "head_dim 2: the one pair has the frequency 1", rope(2))
    add("linear", "position interpolation left out, or multiplied in place of divided",
        rope(64, scaling={"rope_type": "linear", "factor": 4.0}))
    add("ntk", "the base grows by factor^(d/(d-2)): not by factor, not by factor^(d/2)",
        rope(128, scaling={"rope_type": "ntk", "factor": 4.0}))
    for seq_len, words in ((8192, "beyond max_positions"), (1000, "within max_positions: the plain base")):
        add(f"dynamic_{seq_len}", f"dynamic NTK at a length {words}",
            rope(128, scaling=DYNAMIC, max_positions=2048, seq_len=seq_len))
    add("dynamic_alpha", "HunYuan's alpha read as a factor, or made to depend on the length",
        rope(128, scaling={"rope_type": "dynamic", "alpha": 1000.0}))
    add("yarn", "YaRN: ramp ends rounded outwards, 0.1 ln s + 1 on cos and sin", rope(128, base=1e6, scaling=YARN))
    add("yarn_untruncated", "gpt-oss: truncate false keeps the ramp's ends fractional (8.09 and 17.40)",
        rope(64, base=150000.0, scaling=GPT_OSS))
    add("yarn_truncated", "the same with truncate true (8 and 18): a reader that has no such key",
        rope(64, base=150000.0, scaling={**GPT_OSS, "truncate": True}))
    add("yarn_clamp", "the ramp's end is clamped to d - 1, not to d/2 - 1: long original lengths show it",
        rope(64, scaling={**YARN, "original_max_position_embeddings": 131072}))
    add("yarn_betas", "beta_fast and beta_slow taken from the model, not 32 and 1",
        rope(128, base=1e6, scaling={**YARN, "factor": 64.0, "original_max_position_embeddings": 4096,
                                     "beta_fast": 4.0, "beta_slow": 0.5}))
    deepseek = {"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096}
    add("yarn_mscale_equal", "DeepSeek V3: mscale = mscale_all_dim cancel on cos and sin (1), and the softmax scale "
        "has a factor of its own (1.8739)", rope(64, scaling={**deepseek, "mscale": 1.0, "mscale_all_dim": 1.0}))
    add("yarn_mscale_differs", "both corrections at once: g(s, mscale) / g(s, mscale_all_dim) on cos and sin",
        rope(64, scaling={**deepseek, "mscale": 1.0, "mscale_all_dim": 0.707}))
    add("yarn_attention_given", "an explicit attention_factor wins over the formula",
        rope(64, scaling={**YARN, "attention_factor": 1.25}))
    for seq_len, words in ((4096, "the last length of the short list"), (4097, "the first of the long list")):
        add(f"longrope_{seq_len}", f"LongRoPE at original_max_position_embeddings {seq_len - 4096:+d}: {words}; the "
            "attention factor sqrt(1 + ln 32 / ln 4096)", rope(96, scaling=longrope(48), seq_len=seq_len))
    add("llama3_8b", "llama3: pairs 0 to 28 kept, 29 to 34 blended, 35 on divided", rope(128, base=500000.0, scaling=LLAMA3))
    add("llama3_1b", "llama3 with factor 32 and head_dim 64: pairs 15 to 17 blended",
        rope(64, base=500000.0, scaling={**LLAMA3, "factor": 32.0}))
    add("proportional", "Gemma 4: exponents over the whole head and a tail of zeros; it is not partial rotary",
        rope(64, base=1e6, scaling={"rope_type": "proportional", "partial_rotary_factor": 0.25, "factor": 8.0}))
    add("custom", "a list of one's own, a negative and a zero frequency in it",
        rope(8, scaling={"rope_type": "custom", "inv_freq": [1.0, 0.25, -0.0625, 0.0]}))
    add("custom_periods", "MLX's freqs are periods: reciprocals",
        rope(8, scaling={"rope_type": "custom", "inv_freq": [1.0, 10.0, 96.0, 1000.0], "inv_freq_is_period": True}))
    add("axes_own", "Flux: every axis has a ladder of its own, over its own pairs",
        rope(128, axes=axes("chunked", [8, 28, 28], "own")))
    add("axes_alternating", "Llama 4 vision: axes alternate pair by pair, each with its own ladder",
        rope(64, axes=axes("alternating", None, "own", 2)))
    add("axes_strided", "Pixtral: height takes the even steps of the ladder, width the odd ones",
        rope(64, axes=axes("chunked", [16, 16], "strided")))


HARD = [0, 1, 2, 355, 2047, 4096, 8193, 131071, 1048575, 16777217, 80143857, 411557987, 21053343141, 881156436695, 2**40]
LONG = [0, 1, 7, 700, 2048, 4095, 8192, 32768, 131071, 1048575, -1, -2048, -131071]


def rows(to):
    def add(name, catches, *arguments, **options):
        add_rows(to, "rows_" + name, catches, *arguments, **options)
    add("first", "the first 16 positions: a ladder in the wrong order, cos and sin exchanged", rope(32), list(range(16)))
    add("hard", "positions at which cos or sin is almost 0, 2^24 + 1 and 2^40: positions held in float32, angles "
        "formed in float32 or reduced by a short pi", rope(16), HARD)
    add("long", "long contexts of a model with base 500000", rope(128, base=500000.0), LONG)
    add("negative", "negative positions (left padding, shifts back): cos is even, sin is odd",
        rope(32), [-1, -2, -7, -40, -700, -16777217, -(2**40)])
    add("float32", "angles as frameworks form them: float32 frequency times float32 position, rounded once",
        rope(64), LONG + [16777217], mode="float32")
    add("float32_scaled", "the same under YaRN: the factor multiplies in float32",
        rope(64, base=1e6, scaling=YARN), [0, 1, 700, 40000, 131071], mode="float32")
    for dtype in ("f16", "bf16"):
        add(dtype, f"tables in {dtype} are rounded once from the real value, not computed in 16 bits",
            rope(32), [0, 1, 2, 255, 257, 2049, 4095, 131071], dtype=dtype)
    add("f64", "float64 tables: angles formed as a float64 product are off by p * 2^-53", rope(16),
        [1, 4095, 1048575, 411557987, 2**40], dtype="f64")
    for layout, user in (("full_half", "Hugging Face: c0 c1 ... c0 c1 ..."), ("full_interleaved", "GPT-J, diffusers: "
                         "c0 c0 c1 c1 ..."), ("cos_sin", "vLLM: cos then sin in one row"),
                         ("pairs", "TensorRT-LLM: c0 s0 c1 s1 ...")):
        add(layout, f"the row layout of {user}", rope(12), [0, 1, 5, 1000], layout=layout)
    for name, scaling, extra in (("linear", {"rope_type": "linear", "factor": 4.0}, {}), ("llama3", LLAMA3, {}),
                                 ("yarn", YARN, {}), ("longrope", longrope(16), {"seq_len": 131072}),
                                 ("dynamic", DYNAMIC, {"max_positions": 2048, "seq_len": 8192})):
        add(name, f"{name} past its original length; short positions cannot tell a scaling from none",
            rope(32, base=500000.0, scaling=scaling, **extra), [1, 8191, 8193, 20000, 60000, 131071])
    grid = [[7, 7, 7, 7, 7, 7, 10], [7, 7, 7, 8, 8, 8, 10], [7, 8, 9, 7, 8, 9, 10]]
    for name, d, layout, words in (
            ("qwen2_vl", 128, QWEN2_VL, "chunked sections 16, 24, 24"), ("qwen3_vl", 128, QWEN3_VL, "axes interleaved: "
             "pair j follows axis j mod 3 while sections last, then time"), ("qwen3_5", 64, axes("interleaved", [11, 11, 10]),
             "interleaved with unequal sections"), ("ernie", 128, ERNIE, "height and width alternate on the fast pairs"),
            ("flux", 128, axes("chunked", [8, 28, 28], "own"), "a ladder for each axis"),
            ("pixtral", 64, axes("chunked", [16, 16], "strided"), "even and odd steps of one ladder"),
            ("llama4_vision", 32, axes("alternating", None, "own", 2), "alternating axes")):
        positions = grid[3 - layout["count"]:]
        add(name, f"a 2 x 3 image at 7 and a text token behind it, {words}", rope(d, axes=layout), positions)
    add("real", "fractional positions (coordinates, seconds): rounded to whole numbers somewhere",
        rope(16), [0.5, -1.25, 0.1, 999.9999, 1e-9, 1048575.5], real=True)


def changes(to):
    old, new = (rope(32, scaling=longrope(16), seq_len=n) for n in (4096, 4097))
    add_change(to, "change_longrope", "keys cached under the short list, turned to the long one by one rotation when a "
               "sequence passes 4096 tokens", old, new, [0, 1, 77, 2048, 4095])
    old, new = (rope(32, scaling=DYNAMIC, max_positions=2048, seq_len=n) for n in (2048, 8192))
    add_change(to, "change_dynamic", "keys cached at another base of dynamic NTK", old, new, [0, 1, 77, 2047])
    add_change(to, "change_yarn", "from plain to YaRN: the ratio of attention factors included", rope(32),
               rope(32, scaling=YARN), [0, 1, 77, 4095])
