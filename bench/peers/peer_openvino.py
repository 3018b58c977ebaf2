"""OpenVINO on the CPU, from the ONNX model, which it turns into an operator of its own.
SPDX-License-Identifier: MIT"""
import io

import numpy as np

from cases import PAIRS, Contender, Missing

try:
    import openvino
    from onnx_models import KIND, rotary_model
except ImportError as error:
    raise Missing(str(error)) from None

SETTINGS = {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
ORDER = (1, 0, 2)  # (heads, tokens) in memory: in the other order it transposes


def contenders(case):
    if case.dtype not in KIND:
        raise Missing("NumPy has no bfloat16 to give it")
    core = openvino.Core()
    model = core.read_model(io.BytesIO(rotary_model(case, "ai.onnx", 4)))
    compiled = core.compile_model(model, "CPU", SETTINGS)
    x = np.ascontiguousarray(case.x.transpose(ORDER)[None])
    rows = (1, case.tokens, PAIRS)
    arrays = [x, *(t.astype(case.x.dtype).reshape(rows) for t in (case.cos, case.sin))]
    out = np.ones_like(x)
    request = compiled.create_infer_request()
    for i, array in enumerate(arrays):
        request.set_input_tensor(i, openvino.Tensor(array, shared_memory=True))
    request.set_output_tensor(0, openvino.Tensor(out, shared_memory=True))
    kinds = [node.get_rt_info()["layerType"].astype(str) for node in compiled.get_runtime_model().get_ops()]
    fused = "its RoPE operator" if "RoPE" in kinds else "no RoPE operator"

    def call():
        request.infer()
        return compiled, arrays
    return [Contender("OpenVINO", call, lambda: out[0].transpose(ORDER).astype(np.float64),
                      f"{fused}, (heads, tokens)")]
