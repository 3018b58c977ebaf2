"""Models of one RotaryEmbedding, for the runtimes that read ONNX. SPDX-License-Identifier: MIT"""
from cases import HEADS, HEAD_DIM, PAIRS

from onnx import TensorProto, helper

KIND = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16}


def rotary_model(case, domain, rank):
    """x is (1, tokens, heads * head_dim) in rank 3 and (1, heads, tokens, head_dim) in rank 4. The operator
    of com.microsoft takes an offset into its tables (tokens, pairs), that of ai.onnx the rows as they are."""
    kind, tokens, info = KIND[case.dtype], case.tokens, helper.make_tensor_value_info
    shape = [1, tokens, HEADS * HEAD_DIM] if rank == 3 else [1, HEADS, tokens, HEAD_DIM]
    attributes = {"interleaved": int(case.pairing == "interleaved"), "num_heads": HEADS}
    if domain == "com.microsoft":
        more = [info("ids", TensorProto.INT64, [1])]
        more += [info(name, kind, [tokens, PAIRS]) for name in ("cos", "sin")]
        attributes["domain"] = domain
    else:
        more = [info(name, kind, [1, tokens, PAIRS]) for name in ("cos", "sin")]
    inputs = [info("x", kind, shape), *more]
    node = helper.make_node("RotaryEmbedding", [i.name for i in inputs], ["y"], **attributes)
    graph = helper.make_graph([node], "rotary", inputs, [info("y", kind, shape)])
    imports = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString()
