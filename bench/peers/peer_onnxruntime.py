"""ONNX Runtime: its own operator and the standard's, outputs bound to memory. SPDX-License-Identifier: MIT"""
import numpy as np

from cases import PAIRS, Contender, Missing

try:
    import onnxruntime
    from onnx_models import KIND, rotary_model
except ImportError as error:
    raise Missing(str(error)) from None


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def contender(case, domain):
    session = session_of(rotary_model(case, domain, 3))
    own = domain == "com.microsoft"
    rows = (case.tokens, PAIRS) if own else (1, case.tokens, PAIRS)
    feeds = {"x": case.x.reshape(1, case.tokens, -1),
             "cos": case.cos.astype(case.x.dtype).reshape(rows),
             "sin": case.sin.astype(case.x.dtype).reshape(rows)}
    if own:
        feeds["ids"] = np.zeros(1, np.int64)
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in feeds.items()}
    out = onnxruntime.OrtValue.ortvalue_from_numpy(np.ones_like(feeds["x"]))
    binding = session.io_binding()
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_ortvalue_output("y", out)
    keep = (session, values)

    def call():
        session.run_with_iobinding(binding)
        return keep
    return Contender(f"ONNX Runtime, {domain}", call,
                     lambda: out.numpy().reshape(case.x.shape).astype(np.float64))


def contenders(case):
    if case.dtype not in KIND:
        raise Missing("its CPU kernels have no bfloat16")
    return [contender(case, domain) for domain in ("com.microsoft", "ai.onnx")]
