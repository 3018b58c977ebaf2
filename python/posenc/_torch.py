"""PyTorch: the short way for plain tensors, a registered operator for autograd, torch.compile and vmap, and plain
operations for other devices. Imported only when a tensor comes in. SPDX-License-Identifier: MIT"""
from __future__ import annotations

from typing import List, Optional

import numpy as np
import torch
from torch import Tensor

from . import _core
from ._arrays import ALLOWED, dtype_name, integers, row_lists
from ._words import LAYOUTS

TYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16}
ALLOWED_TYPES = frozenset(TYPES.values())
PLAIN_CLASSES = (Tensor, torch.nn.Parameter)
FORWARD, INVERSE, BACKWARD = range(3)
SAME, HALF, INTERLEAVED = range(3)
INDEX_TYPES = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)

to_dlpack = torch.utils.dlpack.to_dlpack
strided = torch.strided
is_compiling, is_grad_enabled = torch.compiler.is_compiling, torch.is_grad_enabled
transforms_active, dispatch_modes = torch._C._are_functorch_transforms_active, torch._C._len_torch_dispatch_stack
tracing_state, empty_like = torch._C._get_tracing_state, torch.empty_like
increment_version = torch.autograd.graph.increment_version
forward_mode = torch.autograd.forward_ad  # its _current_level is -1 outside of dual_level


def from_numpy(array):
    """A tensor on the array's memory; bfloat16 by its bits."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def plain_array(x):
    """What the C module reads and writes in place of a tensor on the CPU."""
    if not x.is_cpu or x.layout is not strided:
        raise TypeError(f"x is a {x.layout} tensor on {x.device} but must be a strided one on the CPU")
    if x.requires_grad and is_grad_enabled():
        raise ValueError("x requires a gradient but this function has none: x.detach(), or torch.no_grad()")
    return to_dlpack(x.detach().resolve_neg())


def output_array(out, shape, dtype):
    """`out` of a function that writes a table."""
    if not out.is_cpu or out.layout is not strided:
        raise TypeError(f"out is a {out.layout} tensor on {out.device} but must be a strided one on the CPU")
    if tuple(out.shape) != tuple(shape):
        raise ValueError(f"out has shape {tuple(out.shape)} but must have {tuple(shape)}")
    if dtype is not None and dtype_name(out.dtype) != dtype_name(dtype):
        raise TypeError(f"dtype is {dtype!r} but out has {out.dtype}: leave one away")
    if out.requires_grad and is_grad_enabled():
        raise ValueError("out requires a gradient, which writing into it would lose; detach it")
    increment_version(out)
    return to_dlpack(out.detach())


# --- Which way ------------------------------------------------------------------------------------

def is_plain(x):
    """Whether x is a tensor on the CPU that needs no gradient, and nothing watches the operations: no compiler, no
    vmap or grad of torch.func, no dispatch mode, no forward-mode derivative. Then its memory may be handed to the C
    library."""
    return (type(x) in PLAIN_CLASSES and not is_compiling() and x.is_cpu and x.layout is strided and not x.is_neg()
            and not (x.requires_grad and is_grad_enabled()) and forward_mode._current_level < 0
            and not (transforms_active() or dispatch_modes() or tracing_state()))


def rotate_one(x, out, both, axes, direction, output_pairing, pairing, threads, stores):
    """posenc.rotate of one tensor in the shortest way; None, and nothing done, where that way is not enough."""
    if not is_plain(x):
        return None
    if out is None:
        made = empty_like(x)
    elif is_plain(out):
        made = out
    else:
        return None
    if _core.rotate(both, (to_dlpack(x),), (to_dlpack(made),), axes, direction, output_pairing, pairing, (), threads,
                    stores):
        return None
    if out is not None:
        increment_version(out)
    return made


def rotate(xs, outs, rotation, dtype, options, lists, rest):
    """The PyTorch half of posenc.rotate. xs, outs: tuples of the same length."""
    if all(map(is_plain, xs)) and all(out is None or is_plain(out) for out in outs):
        return rotate_plain(xs, outs, rotation, dtype, options, lists, rest)
    return tuple(rotate_watched(x, out, rotation, dtype, options, lists, rest[0])
                 for x, out in zip(xs, outs))


def rotate_plain(xs, outs, rotation, dtype, options, lists, rest):
    """CPU tensors without gradients, straight to the C library."""
    kind = None if dtype is None else torch_type(dtype)
    made = []
    for x, out in zip(xs, outs):
        if out is None:
            out = empty_like(x, dtype=kind)
        elif kind is not None and out.dtype is not kind:
            raise TypeError(f"dtype is {dtype!r} but out has {out.dtype}: leave one away")
        made.append(out)
    if any(values is not None for values in lists):
        lists = row_lists(*lists)
    else:
        lists = ()
    while True:
        result = _core.rotate(rotation._both, tuple(map(to_dlpack, xs)), tuple(map(to_dlpack, made)), *options,
                              lists, *rest)
        if result == 0:
            break
        if result == _core.NEEDS_FLOAT64_ROWS:
            rotation._add_float64_rows()
            continue
        if any(out is not None for out in outs):
            raise ValueError("out or x has batch or heads axes that are not one axis in memory; leave out= away or "
                             "give contiguous tensors")
        contiguous = tuple(x.contiguous() for x in xs)
        if all(a is b for a, b in zip(contiguous, xs)) and all(y.is_contiguous() for y in made):
            raise ValueError("axes names one word in places that are not beside each other")
        xs, made = contiguous, [torch.empty(x.shape, dtype=y.dtype) for x, y in zip(contiguous, made)]
    for out in outs:
        if out is not None:
            increment_version(out)
    return tuple(made)


LISTS = (("row_ids", np.int64), ("row_starts", np.int64), ("cu_seqlens", np.int32))


def index_tensor(name, values, wanted):
    """A list of rows as a contiguous tensor on the CPU; traceable."""
    kind = torch.int32 if wanted is np.int32 else torch.int64
    if not isinstance(values, Tensor):
        return torch.from_numpy(integers(values, name, wanted))
    if values.dtype not in INDEX_TYPES:
        raise TypeError(f"{name} has dtype {values.dtype} but must have integers")
    return values.to(device="cpu", dtype=kind).contiguous()


def torch_type(dtype):
    return dtype if dtype in ALLOWED_TYPES else TYPES[dtype_name(dtype)]


def rotate_watched(x, out, rotation, dtype, options, lists, threads):
    """What autograd, torch.compile, vmap and other devices can see."""
    if x.dtype not in ALLOWED_TYPES:
        raise TypeError(f"x has dtype {x.dtype} but must have {ALLOWED}")
    if x.layout is not strided:
        raise TypeError(f"x is a {x.layout} tensor but must be a strided one")
    kind = x.dtype if out is None else out.dtype
    if dtype is not None:
        kind = torch_type(dtype)
        if out is not None and out.dtype is not kind:
            raise TypeError(f"dtype is {dtype!r} but out has {out.dtype}: leave one away")
    if out is not None:
        check_watched_output(x, out)
    axes, direction, output_pairing, pairing = options
    if pairing < 0:
        pairing = 1 if rotation.pairing == "interleaved" else 0
    indices = tuple(None if values is None else index_tensor(name, values, wanted)
                    for values, (name, wanted) in zip(lists, LISTS))
    if on_host(x):
        check_head_dim(x, rotation, axes)
        cos, sin = cpu_tables(rotation, x.dtype is torch.float64)
        call = registered if is_compiling() else Differentiable.apply
        made = call(
            x, cos, sin, *indices, axes,
            [LAYOUTS.index(rotation.layout), int(rotation._differ), pairing, rotation.rotary_start, direction,
             output_pairing, threads], float(rotation.attention_factor), kind)
    else:
        made = rotate_by_operations(x, rotation, kind, axes, direction, output_pairing, pairing, indices)
    if out is None:
        return made
    out.copy_(made)
    return out


def is_host(x):
    return x.device.type == "cpu"


def on_host(x):
    """Whether the operator turns x: a tensor on the CPU, but within a compiler's transforms of torch.func, where
    registered operators have no gradients, and tangents that are zero."""
    return is_host(x) and not (is_compiling() and transforms_active())


def check_watched_output(x, out):
    if not isinstance(out, Tensor):
        raise TypeError(f"out is of type {type(out).__name__} but must be a PyTorch tensor as x is")
    if is_grad_enabled() and (x.requires_grad or out.requires_grad):
        raise ValueError("out is given, but x or out requires a gradient, which would be lost; leave out= away")
    if out.shape != x.shape:
        raise ValueError(f"out has shape {tuple(out.shape)} but must have that of x, {tuple(x.shape)}")
    if out.device != x.device:
        raise ValueError(f"out is on {out.device} but must be where x is, on {x.device}")


def check_head_dim(x, rotation, axes):
    """Under a compiler the operator runs later: what is wrong is said while the caller is there."""
    at = axes.index("d") if axes else -1
    if axes and len(axes) != x.dim():
        raise ValueError(f"axes names {len(axes)} axes but x has {x.dim()}")
    if x.dim() == 0:
        raise ValueError("x must have at least one axis, head_dim")
    if rotation.head_dim and x.shape[at] != rotation.head_dim:
        raise ValueError(f"x has {x.shape[at]} channels in its axis head_dim but the rotation was made for head_dim "
                         f"{rotation.head_dim}")


def has_own_rows(lists):
    """Whether row_ids, row_starts or cu_seqlens choose rows for each sequence of a batch."""
    row_ids, row_starts, cu_seqlens = lists
    return (row_ids is not None and row_ids.dim() == 2) or (row_starts is not None and cu_seqlens is None)


def table_tensors(cos, sin):
    """Tensors on the memory of the tables; sin is cos in layouts of one array."""
    cos = torch.from_numpy(cos)
    return cos, cos if sin is None else torch.from_numpy(sin)


def cpu_tables(rotation, wide):
    """cos and sin of a rotation as tensors."""
    made = rotation._tensors[1 if wide else 0]
    return table_tensors(*(rotation._float64() if wide else rotation._float32())) if made is None else made


NUMBERS_OF_A_THREAD = 1 << 20  # less does not repay its start


def threads_for(x):
    """How many threads share a tensor that is turned inside a model: PyTorch's own number where there is work for
    so many."""
    return max(1, min(torch.get_num_threads(), x.numel() // NUMBERS_OF_A_THREAD))


# --- The operator -----------------------------------------------------------------------------------

# PyTorch's own work for a call grows with the square of the number of arguments, so integers come in one list:
# layout, whether a pair has two different numbers, pairing, rotary_start, direction, output_pairing, threads.

def compute(x: Tensor, cos: Tensor, sin: Tensor, row_ids: Optional[Tensor], row_starts: Optional[Tensor],
            cu_seqlens: Optional[Tensor], axes: str, numbers: List[int], attention_factor: float,
            dtype: torch.dtype) -> Tensor:
    """posenc.rotate on tensors: cos and sin are tables in one of the layouts, in float64 for float64 x. threads: 0 for
    as many as are worth it."""
    layout, differ, pairing, rotary_start, direction, output_pairing, threads = numbers
    threads = threads or threads_for(x)
    rows = _core.rows(to_dlpack(cos), to_dlpack(sin), layout, bool(differ), pairing, rotary_start, attention_factor,
                      0)
    lists = tuple(None if values is None else values.numpy() for values in (row_ids, row_starts, cu_seqlens))

    def run(source, target):
        return _core.rotate((rows, rows), (to_dlpack(source),), (to_dlpack(target),), axes, direction,
                            output_pairing, -1, lists, threads, 0)

    x = x.detach().resolve_neg()
    out = empty_like(x, dtype=dtype)
    if run(x, out):
        copy = torch.empty(x.shape, dtype=dtype)
        if run(x.contiguous(), copy):
            raise ValueError("axes names one word in places that are not beside each other")
        out.copy_(copy)
    return out


operator = torch.library.custom_op("posenc::rotate", compute, mutates_args=(), device_types="cpu")


@operator.register_fake
def _(x, cos, sin, row_ids, row_starts, cu_seqlens, axes, numbers, attention_factor, dtype):
    return empty_like(x, dtype=dtype)


def setup_context(ctx, inputs, output):
    x, cos, sin, row_ids, row_starts, cu_seqlens, ctx.axes, ctx.numbers, ctx.factor, _ = inputs
    ctx.save_for_backward(cos, sin, row_ids, row_starts, cu_seqlens)
    ctx.save_for_forward(cos, sin, row_ids, row_starts, cu_seqlens)
    ctx.x_dtype, ctx.dtype = x.dtype, output.dtype


def backward_by(rotate, ctx, grad):
    """The transpose of a rotation turns the other way, from the output's pairing into the input's."""
    layout, differ, pairing, rotary_start, direction, output_pairing, threads = ctx.numbers
    cos, sin, *lists = ctx.saved_tensors
    if ctx.x_dtype is torch.float64:
        grad = grad.double()
    elif grad.dtype is torch.float64:
        cos, sin = cos.double(), sin.double()
    of_grad = pairing if output_pairing == SAME else output_pairing - HALF
    back = BACKWARD if direction == FORWARD else FORWARD
    made = rotate(grad, cos, sin, *lists, ctx.axes, [layout, differ, of_grad, rotary_start, back, pairing + HALF, threads],
                  ctx.factor, ctx.x_dtype)
    if direction == INVERSE and ctx.factor != 1.0:
        made = made / (ctx.factor * ctx.factor)
    return (made,) + (None,) * 9


def over_batch(rotate, in_dims, x, cos, sin, row_ids, row_starts, cu_seqlens, axes, *rest):
    """The axis of vmap becomes one more axis of heads, whose rows are the same."""
    if any(dim is not None for dim in in_dims[1:6]):
        raise ValueError("vmap goes over the tables or lists of a rotation but must go over x alone")
    if in_dims[0] is None:
        return rotate(x, cos, sin, row_ids, row_starts, cu_seqlens, axes, *rest), None
    own_rows = (cos.dim() == 3 and cos.shape[0] > 1) or has_own_rows((row_ids, row_starts, cu_seqlens))
    letters = axes or _core.default_axes(x.dim() - 1, own_rows)
    at = letters.find("h") if "h" in letters else letters.find("t") if "t" in letters else 0
    letters = letters[:at] + "h" + letters[at:]
    x = x.movedim(in_dims[0], at)
    return rotate(x, cos, sin, row_ids, row_starts, cu_seqlens, letters, *rest), at


registered = torch.ops.posenc.rotate
operator.register_autograd(lambda ctx, grad: backward_by(registered, ctx, grad), setup_context=setup_context)
operator.register_vmap(lambda info, in_dims, *args: over_batch(registered, in_dims, *args))


class Differentiable(torch.autograd.Function):
    """The operator for autograd without a compiler: it works under torch.func.grad, where registered gradients do
    not, and takes less time a call."""
    setup_context = staticmethod(setup_context)

    @staticmethod
    def forward(*args):
        return registered(*args) if transforms_active() or dispatch_modes() else compute(*args)

    @staticmethod
    def backward(ctx, grad):
        return backward_by(Differentiable.apply, ctx, grad)

    @staticmethod
    def jvp(ctx, tangent, *others):
        """A rotation is linear: the tangent turns as x does."""
        return Differentiable.apply(tangent, *ctx.saved_tensors, ctx.axes, ctx.numbers, ctx.factor, ctx.dtype)

    @staticmethod
    def vmap(info, in_dims, *args):
        return over_batch(Differentiable.apply, in_dims, *args)


# --- Other devices ----------------------------------------------------------------------------------

@torch.compiler.assume_constant_result
def default_axes(rank, own_rows):
    return _core.default_axes(rank, own_rows)


def device_tables(rotation, device, wide):
    """cos, sin, and those of each pair's second channel, (..., tokens, pairs): made here, moved there once. In a compiled
    function that is their first use they are moved by its graph."""
    key = device, wide
    found = rotation._tables.get(key)
    if found is None:
        parts = half_tables(*cpu_tables(rotation, wide), rotation.layout)
        cos, sin, *second = [part.contiguous().to(device) for part in parts]
        found = (cos, sin, *second) if rotation._differ else (cos, sin, cos, sin)
        if not is_compiling():
            rotation._tables[key] = found
    return found


def half_tables(cos, sin, layout):
    pairs = cos.shape[-1] if layout == "half" else cos.shape[-1] // 2
    if layout == "full-half":
        return cos[..., :pairs], sin[..., :pairs], cos[..., pairs:], sin[..., pairs:]
    if layout == "full-interleaved":
        return cos[..., 0::2], sin[..., 0::2], cos[..., 1::2], sin[..., 1::2]
    if layout == "cos-sin":
        return cos[..., :pairs], cos[..., pairs:]
    if layout == "pairs":
        return cos[..., 0::2], cos[..., 1::2]
    return cos, sin


def rotate_by_operations(x, rotation, kind, axes, direction, output_pairing, pairing, lists):
    """The same rotation in PyTorch's operations, in float32 (float64 for float64), rounded once."""
    check_head_dim(x, rotation, axes)
    if direction == INVERSE and rotation._differ:
        raise ValueError("inverse is given, but these tables are no rotation and have only the transpose")
    letters = axes or default_axes(x.dim(), rotation._sizes[0] > 1 or has_own_rows(lists))
    sizes = sizes_of(x, letters)
    start, width = rotation.rotary_start, rotation.rotary_dim
    if start + width > sizes[3]:
        raise ValueError(f"x has {sizes[3]} channels in its axis head_dim but the rotation turns {width} from "
                         f"{start} on")
    tables = [chosen_rows(table, rotation, sizes, lists)
              for table in device_tables(rotation, x.device, x.dtype is torch.float64)]
    scale = 1.0
    if direction == INVERSE and rotation.attention_factor != 1.0:
        scale = 1.0 / (rotation.attention_factor * rotation.attention_factor)
    return turn_channels(x, tables, letters, start, direction, pairing,
                         pairing if output_pairing == SAME else output_pairing - HALF, scale, kind)


def sizes_of(x, letters):
    """batch, tokens, heads, head_dim."""
    sizes = [1, 1, 1, 1]
    for letter, size in zip(letters, x.shape):
        sizes["bthd".index(letter)] *= size
    return sizes


def turn_channels(x, tables, letters, start, direction, pairing, output_pairing, scale, kind):
    """tables: cos, sin and those of each pair's second channel, (tokens, pairs) or (batch, tokens, pairs) in the
    computing dtype. Channels from `start` on turn; the others are copied."""
    order = sorted(range(x.dim()), key=lambda i: "bthd".index(letters[i]))
    moved = x.permute(order)
    sizes, end = sizes_of(x, letters), start + 2 * tables[0].shape[-1]
    four = moved.reshape(sizes)
    turned = turn(four.narrow(-1, start, end - start).to(tables[0].dtype), tables, direction, pairing, output_pairing)
    if scale != 1.0:
        turned = turned * scale
    made = torch.cat((four.narrow(-1, 0, start).to(kind), turned.to(kind),
                      four.narrow(-1, end, sizes[3] - end).to(kind)), -1)
    back = [order.index(i) for i in range(x.dim())]
    return made.reshape(moved.shape).permute(back)


def rotate_by_rows(x, cos, sin, letters, start, direction, pairing, output_pairing, kind):
    """A rotation by rows that are tensors where x is, (tokens, pairs) or (batch, tokens, pairs), for those who have no
    Rotation: compilers, which cannot make one, and other devices, which need no copy of theirs."""
    wide = torch.float64 if x.dtype is torch.float64 else torch.float32
    cos, sin = cos.to(wide), sin.to(wide)
    if on_host(x):
        call = registered if is_compiling() else Differentiable.apply
        return call(x, cos, sin, None, None, None, letters,
                    [0, 0, pairing, start, direction, output_pairing + HALF, 0], 1.0, kind)
    return turn_channels(x, (cos, sin, cos, sin), letters, start, direction, pairing, output_pairing, 1.0, kind)


def turn(x, tables, direction, pairing, output_pairing):
    cos, sin, cos2, sin2 = (table.unsqueeze(-2) for table in tables)  # over heads
    a, b = x.chunk(2, -1) if pairing == 0 else x.unflatten(-1, (-1, 2)).unbind(-1)
    if direction == FORWARD:
        a, b = a * cos - b * sin, a * sin2 + b * cos2
    else:
        a, b = a * cos + b * sin2, b * cos2 - a * sin
    return torch.cat((a, b), -1) if output_pairing == 0 else torch.stack((a, b), -1).flatten(-2)


def chosen_rows(table, rotation, sizes, lists):
    """The rows of each token: (tokens, pairs) or (batch, tokens, pairs)."""
    batch, tokens = sizes[0], sizes[1]
    if table.dim() == 3 and table.shape[0] == 1:
        table = table[0]
    if table.dim() == 3 and table.shape[0] != batch:
        raise ValueError(f"rotation's batch is {table.shape[0]} but x has {batch}")
    if all(values is None for values in lists):
        if rotation.tokens != tokens:
            raise ValueError(f"rotation's number of rows is {rotation.tokens} but must equal the tensor's tokens "
                             f"(tokens is {tokens})")
        return table
    ids = row_numbers(batch, tokens, *lists)
    if is_compiling():  # the numbers come later
        torch._assert_async(((ids >= 0) & (ids < rotation.tokens)).all(),
                            "row_ids, row_starts or cu_seqlens choose rows that the rotation has not")
    elif ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < rotation.tokens:
        raise ValueError(f"row_ids, row_starts or cu_seqlens choose rows {int(ids.min())} to {int(ids.max())} but the "
                         f"rotation has {rotation.tokens}")
    ids = ids.to(table.device)
    if table.dim() == 2:
        return table[ids]
    return torch.gather(table, 1, ids.expand(batch, tokens).unsqueeze(-1).expand(-1, -1, table.shape[-1]))


def row_numbers(batch, tokens, row_ids, row_starts, cu_seqlens):
    """The row of every token, (tokens,) or (batch, tokens), on the CPU."""
    if row_ids is not None:
        if row_starts is not None or cu_seqlens is not None:
            raise ValueError("row_ids must not be given together with row_starts or cu_seqlens")
        if tuple(row_ids.shape) not in ((tokens,), (batch, tokens)):
            raise ValueError("row_ids must have one number for each token of x")
        return row_ids
    if cu_seqlens is None:
        if tuple(row_starts.shape) != (batch,):
            raise ValueError(f"row_starts must have one number for each of the {batch} sequences")
        return row_starts[:, None] + torch.arange(tokens)
    ends = cu_seqlens.long()
    if batch != 1 or ends.dim() != 1 or ends.numel() < 1 or ends[0] != 0 or ends[-1] != tokens \
            or bool((ends.diff() < 0).any()):
        raise ValueError("cu_seqlens must rise from 0 to the tokens of an x whose batch is 1")
    starts = -ends[:-1] if row_starts is None else row_starts - ends[:-1]
    return torch.arange(tokens) + torch.repeat_interleave(starts, ends.diff())
