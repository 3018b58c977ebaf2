"""The package as installed: the program, the manual, the types, README's example. SPDX-License-Identifier: MIT"""
import ast
import inspect
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import posenc

ROOT = Path(__file__).resolve().parents[2]
STUB = Path(posenc.__file__).with_name("__init__.pyi")


def test_the_program_comes_with_the_package():
    program = Path(sysconfig.get_path("scripts")) / "posenc"
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    assert posenc.__version__ in said
    said = subprocess.run([program, "angles", "--head-dim", "4", "--positions", "3:4", "--json"], capture_output=True,
                          text=True, check=True).stdout
    assert re.search(r'"cos":\s*\[\[-0\.98999', said)


def test_pytorch_is_not_imported():
    code = ("import sys, posenc, numpy as np; posenc.apply_rope(np.ones((2, 4))); posenc.alibi_bias(2, 2, 2); "
            "print('torch' in sys.modules)")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_every_name_has_a_manual():
    for name in posenc.__all__:
        text = inspect.getdoc(getattr(posenc, name))
        assert text and len(text) > 60 or name == "Note", name
    for words in ("tokens, head_dim", "float32", "Raises", "arXiv", "out"):
        assert words in posenc.rotate.__doc__


@pytest.mark.parametrize("name", posenc.__all__)
def test_a_manual_says_arguments_errors_and_source(name):
    made = getattr(posenc, name)
    text = inspect.getdoc(made)
    if name not in ("Note", "cpu"):
        assert re.search("Raises|raises", text) and re.search(r"Source|docs/[\w/]+\.md", text), name
    if name != "Frequencies":  # nobody makes one
        for argument in inspect.signature(made).parameters:
            assert re.search(rf"\b{argument}\b", text), argument
    for member, value in vars(made).items() if inspect.isclass(made) else ():
        if not member.startswith("_") and (callable(value) or isinstance(value, (property, classmethod))):
            own = value.__func__ if isinstance(value, classmethod) else value
            assert inspect.getdoc(own), f"{name}.{member}"
            if inspect.isfunction(own):
                assert re.search("Raises|from_config", own.__doc__), f"{name}.{member}"


def stub_functions():
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and inner.name == "__init__":
                    yield node.name, inner


def test_type_stubs_say_what_is_there():
    assert STUB.with_name("py.typed").is_file()
    seen = set()
    for name, node in stub_functions():
        if node.decorator_list:
            continue
        seen.add(name)
        found = list(inspect.signature(getattr(posenc, name)).parameters.values())
        told = node.args.posonlyargs + node.args.args
        told = [argument.arg for argument in told + node.args.kwonlyargs if argument.arg != "self"]
        assert told == [parameter.name for parameter in found], name
        keyword = [p.name for p in found if p.kind is p.KEYWORD_ONLY]
        assert [argument.arg for argument in node.args.kwonlyargs] == keyword, name
        defaults = [ast.literal_eval(d) for d in node.args.defaults + node.args.kw_defaults if d is not None]
        assert defaults == [p.default for p in found if p.default is not p.empty], name
    named = {node.name for node in ast.parse(STUB.read_text()).body if hasattr(node, "name")}
    assert named >= set(posenc.__all__) and seen >= {"rotate", "rotation", "RopeSpec", "Rotation", "Axes"}


@pytest.mark.skipif(not (ROOT / "README.md").is_file(), reason="needs the source tree")
def test_the_example_of_readme_runs_as_written(tmp_path):
    blocks = re.findall(r"^<!-- python_example -->\n+```python\n(.*?)^```\n+<!-- /python_example -->$",
                        (ROOT / "README.md").read_text(), re.M | re.S)
    assert len(blocks) == 1
    script = tmp_path / "example.py"
    script.write_text(blocks[0])
    subprocess.run([sys.executable, script], check=True, cwd=tmp_path)
