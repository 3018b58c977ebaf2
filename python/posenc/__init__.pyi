"""Types of the package posenc. What a name does stands in its docstring: help(posenc.rotate)."""
from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

__version__: str

_Array = TypeVar("_Array")
_Pairing = str  # "half", "interleaved" or an alias
_Mode = Literal["exact", "float32"]
_Layout = Literal["half", "full-half", "full-interleaved", "cos-sin", "pairs"]
_Slopes = Literal["paper", "plain"]
_AxisWords = str | Sequence[str] | None
_DType = DTypeLike | Any | None  # NumPy's, PyTorch's, or a name
_Path = str | bytes | PathLike[str] | PathLike[bytes]
_Config = _Path | dict[str, Any] | Any  # a configuration of transformers too
_Positions = ArrayLike | Any  # PyTorch tensors too

class Note(NamedTuple):
    kind: str
    argument: str
    value: Any
    message: str

class Axes:
    count: int
    sections: tuple[int, ...]
    order: str
    exponents: str
    pair_axis: tuple[int, ...]
    def __init__(self, count: int, sections: Sequence[int] = (), order: str = "chunked", exponents: str = "whole",
                 pair_axis: Sequence[int] = ()) -> None: ...

class Frequencies:
    notes: tuple[Note, ...]
    @property
    def pairs(self) -> int: ...
    @property
    def inv_freq(self) -> NDArray[np.float64]: ...
    @property
    def inv_freq_float32(self) -> NDArray[np.float32]: ...
    @property
    def wavelengths(self) -> NDArray[np.float64]: ...
    @property
    def axes(self) -> NDArray[np.int64]: ...
    @property
    def axis_count(self) -> int: ...
    @property
    def attention_factor(self) -> float: ...
    @property
    def softmax_factor(self) -> float: ...
    @property
    def head_dim(self) -> int: ...
    @property
    def rotary_dim(self) -> int: ...
    @property
    def rotary_start(self) -> int: ...
    @property
    def pairing(self) -> str: ...

class RopeSpec:
    head_dim: int
    rotary_dim: int
    base: float
    pairing: str
    scaling: dict[str, Any] | str | None
    rotary_start: int
    max_positions: int | None
    axes: Axes | None
    notes: tuple[Note, ...]
    needs_seq_len: bool
    def __init__(self, head_dim: int, rotary_dim: int | None = None, base: float | None = None,
                 pairing: _Pairing = "half", scaling: dict[str, Any] | str | None = None, *, rotary_start: int = 0,
                 max_positions: int | None = None, axes: Axes | None = None, inv_freq: ArrayLike | None = None,
                 inv_freq_is_period: bool = False, dynamic: Literal["factor", "alpha", "qwen"] | None = None,
                 shrinks: bool = False) -> None: ...
    @classmethod
    def from_config(cls, config: _Config, layer_type: str | None = None, *, part: str | None = None,
                    pairing: _Pairing | None = None) -> RopeSpec: ...
    @classmethod
    def from_gguf(cls, path: _Path, layer_type: str | None = None, *, pairing: _Pairing | None = None) -> RopeSpec: ...
    def frequencies(self, seq_len: int | None = None) -> Frequencies: ...
    @property
    def defaulted(self) -> dict[str, Any]: ...

class Rotation:
    pairing: str
    layout: str
    rotary_start: int
    attention_factor: float
    head_dim: int
    mode: str | None
    def __init__(self, cos: ArrayLike | Any, sin: ArrayLike | Any | None = None, *, pairing: _Pairing = "half",
                 layout: _Layout = "half", rotary_start: int = 0, attention_factor: float = 1.0) -> None: ...
    @property
    def cos(self) -> NDArray[Any]: ...
    @property
    def sin(self) -> NDArray[Any] | None: ...
    @property
    def tokens(self) -> int: ...
    @property
    def rotary_dim(self) -> int: ...
    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice) -> Rotation: ...

class Cache:
    format: str
    data: Any
    scales: Any
    tensor_scale: float | None
    def __init__(self, data: Any, *, format: str | None = None, scales: Any = None,
                 tensor_scale: float | None = None) -> None: ...
    @classmethod
    def zeros(cls, blocks: int, block_tokens: int, heads: int, head_dim: int, format: str = "f32", *,
              tensor_scale: float | None = None) -> Cache: ...
    def append(self, x: Any, rotation: Rotation | None = None, *, starts: _Positions | None = None,
               block_table: _Positions | None = None, slot_ids: _Positions | None = None, epsilon: float | None = None,
               weight: ArrayLike | Any = None, weight_plus_one: bool = False,
               order: Literal["before", "after"] = "before", pairing: _Pairing | None = None, axes: _AxisWords = None,
               row_ids: _Positions | None = None, row_starts: _Positions | None = None,
               cu_seqlens: _Positions | None = None, threads: int = 1) -> None: ...
    def read(self, slots: _Positions, *, dtype: _DType = None, out: Any = None) -> Any: ...
    def shift(self, slots: _Positions, from_positions: _Positions, to_positions: _Positions, frequencies: Frequencies, *,
              to: Frequencies | None = None, mode: _Mode = "exact", originals: Cache | None = None,
              original_slots: _Positions | None = None) -> None: ...

def inspect(config: _Config) -> dict[str, Any]: ...
def detect(path: _Path, *, heads: int | None = None, kv_heads: int | None = None, head_dim: int | None = None,
           rotary_dim: int | None = None, rotary_start: int | None = None, gain_offset: bool | None = None,
           layers: int | None = None) -> dict[str, Any]: ...
def convert_checkpoint(path: _Path, out: _Path | None, to: _Pairing, *, from_pairing: _Pairing | None = None,
                       heads: int | None = None, kv_heads: int | None = None, head_dim: int | None = None,
                       rotary_dim: int | None = None, rotary_start: int | None = None, force: bool = False,
                       part: tuple[int, int] | None = None) -> dict[str, Any]: ...
def compare_checkpoints(a: _Path, b: _Path, *, heads: int | None = None, kv_heads: int | None = None,
                        head_dim: int | None = None, rotary_dim: int | None = None,
                        rotary_start: int | None = None) -> dict[str, Any]: ...
def diagnose(before: Any, after: Any, spec: RopeSpec, positions: _Positions, *, axes: _AxisWords = None,
             mode: _Mode = "exact", inverse: bool = False, backward: bool = False,
             seq_len: int | None = None) -> dict[str, Any]: ...
def compare(a: RopeSpec | _Config | tuple[Any, Any], b: RopeSpec | _Config | tuple[Any, Any], *,
            positions: _Positions | None = None, layer_type: str | None = None, layer_type_b: str | None = None,
            part: str | None = None, part_b: str | None = None, seq_len: int | None = None, mode: _Mode = "exact", mode_b: _Mode | None = None) -> dict[str, Any]: ...
def change(old: Frequencies, new: Frequencies) -> Frequencies: ...
def angles(spec: RopeSpec | Frequencies, positions: _Positions, *, seq_len: int | None = None, mode: _Mode = "exact",
           dtype: _DType = None, layout: _Layout = "half", attention: bool = True, out: Any = None,
           threads: int = 1) -> Any: ...
def rotation(spec: RopeSpec | Frequencies, positions: _Positions, *, seq_len: int | None = None,
             mode: _Mode = "exact", dtype: _DType = None, attention: bool = True, threads: int = 1) -> Rotation: ...
def rotate(x: _Array, rotation: Rotation, *, pairing: _Pairing | None = None, axes: _AxisWords = None,
           inverse: bool = False, backward: bool = False, output_pairing: _Pairing | None = None,
           dtype: _DType = None, out: Any = None, row_ids: _Positions | None = None,
           row_starts: _Positions | None = None, cu_seqlens: _Positions | None = None, threads: int = 1,
           stores: Literal["auto", "cached", "streaming"] = "auto") -> _Array: ...
def norm_rotate(x: _Array, rotation: Rotation | None, *, epsilon: float | None = None, weight: ArrayLike | Any = None,
                weight_plus_one: bool = False, order: Literal["before", "after"] = "before",
                scales: ArrayLike | Any = None, pairing: _Pairing | None = None, axes: _AxisWords = None,
                output_pairing: _Pairing | None = None, dtype: _DType = None, out: Any = None,
                row_ids: _Positions | None = None, row_starts: _Positions | None = None,
                cu_seqlens: _Positions | None = None, threads: int = 1,
                stores: Literal["auto", "cached", "streaming"] = "auto") -> _Array: ...
def query_scales(positions: _Positions, kind: Literal["floor", "smooth", "log-n"], *, length: int, offset: Literal[0, 1],
                 coefficient: float | None = None, mode: _Mode = "exact", dtype: _DType = None) -> Any: ...
def apply_rope(x: _Array, positions: _Positions | None = None, base: float = 10000.0, *,
               pairing: _Pairing = "half") -> _Array: ...
def sinusoidal(positions: int | _Positions, dim: int, *, base: float = 10000.0,
               layout: Literal["interleaved", "sin-cos", "cos-sin"] = "interleaved", shift: Literal[0, 1] = 0,
               scale: float = 1.0, dtype: _DType = None, start: float = 0.0,
               odd: Literal["truncate", "zero", "ceil"] | None = None, padding: float | None = None, out: Any = None,
               threads: int = 1) -> Any: ...
def alibi_slopes(heads: int, *, slopes: _Slopes = "paper", max_bias: float = 8.0, first_head: int = 0,
                 head_count: int | None = None) -> NDArray[np.float64]: ...
def alibi_bias(heads: int, queries: int, keys: int, *, causal: bool = True, query_offset: int | None = None,
               slopes: _Slopes | Sequence[float] | NDArray[Any] = "paper", max_bias: float = 8.0, dtype: _DType = None, first_head: int = 0,
               head_count: int | None = None, out: Any = None, add: bool = False, threads: int = 1) -> Any: ...
def convert(x: Any, dtype: _DType, *, out: Any = None) -> Any: ...
def cpu() -> str: ...
