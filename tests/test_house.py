"""The rules of the house: floors, and what may be imported where."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from napkin.specs.architectures import READERS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "napkin"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Arrows run down: a module imports from its own floor's folder or from floors below.
FLOORS = {
    "errors": 1,
    "units": 1,
    "record": 1,
    "quantity": 2,
    "parsing": 2,
    "libraries": 2,
    "files": 2,
    "specs": 3,
    "accounting": 4,
    "bench": 4,
    "checking": 4,
    "questions": 5,
    "render": 6,
    "cli": 7,
    "api": 7,
    "__main__": 8,
    "__init__": 0,  # the version, and names that are loaded when asked for
}


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def each_of(modules: list[Path]) -> pytest.MarkDecorator:
    assert modules
    return pytest.mark.parametrize("path", modules, ids=[str(p.relative_to(ROOT)) for p in modules])


def in_room(*names: str) -> pytest.MarkDecorator:
    return each_of([path for path in MODULES if room(path) in names])


EACH = each_of(MODULES)
# Which rooms may import a heavy library.
HOMES = {
    "numpy": (),
    "torch": ("bench", "checking"),
    "transformers": ("checking",),
    "rich": ("render",),
    "typer": ("cli",),
    "yaml": ("specs",),
}


def imports(path: Path) -> Iterator[str]:
    """Every module that is imported anywhere in the file, by its full name."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the whole path"
            assert node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def rooms_used(path: Path) -> set[str]:
    names = [name.split(".") for name in imports(path)]
    used = {name[1] if len(name) > 1 else "__init__" for name in names if name[0] == "napkin"}
    return {name if name in FLOORS else "__init__" for name in used} - {room(path)}


@EACH
def test_arrows_run_down(path: Path) -> None:
    above = {used for used in rooms_used(path) if FLOORS[used] >= FLOORS[room(path)]}
    assert above == set()


def module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_there_is_no_circle() -> None:
    known = {module(path): path for path in MODULES}
    needs = {
        name: {
            each
            for found in imports(path)
            for each in (found, found.rpartition(".")[0])
            if each in known and each != name and each != "napkin"
        }
        for name, path in known.items()
    }
    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, " -> ".join((*way, name))
        if name not in done:
            for needed in needs[name]:
                # A package's own name stands for what is taken from it.
                if not name.startswith(f"{needed}."):
                    visit(needed, (*way, name))
            done.add(name)

    for name in needs:
        visit(name, ())


@EACH
def test_a_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text("utf-8")))


@pytest.mark.parametrize("library", HOMES)
def test_a_library_is_imported_by_its_rooms_alone(library: str) -> None:
    users = {
        room(path) for path in MODULES if library in {name.split(".")[0] for name in imports(path)}
    }
    assert users == set(HOMES[library])


@in_room("cli")
def test_the_command_line_neither_parses_nor_computes(path: Path) -> None:
    assert rooms_used(path).isdisjoint({"parsing", "accounting", "quantity", "units", "bench"})


@in_room("accounting")
def test_a_formula_knows_quantities_and_plain_records_only(path: Path) -> None:
    assert rooms_used(path) <= {"quantity", "record", "errors", "specs"}
    readers = {"config", "text_file", "yaml_file", "models", "accelerators", "measured", "folders"}
    assert readers.isdisjoint(name.split(".")[2] for name in imports(path) if "specs" in name)
    names = {n.id for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Name)}
    assert names.isdisjoint({"print", "open"})


ELSEWHERE = [p for p in MODULES if "architectures" not in p.parts and room(p) != "data"]


@each_of(ELSEWHERE)
def test_no_architecture_is_asked_for_by_its_name(path: Path) -> None:
    words = {
        node.value
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert words.isdisjoint(READERS)


def loaded_after(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter holds after the code."""
    ran = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    return {name.split(".")[0] for name in ran.stdout.decode().splitlines()[-1].split()}


HEAVY = {"torch", "numpy", "pydantic", "rich", "yaml", "typer"}


def test_importing_napkin_loads_no_library() -> None:
    assert loaded_after("import napkin") & HEAVY == set()


def test_peak_loads_yaml_and_nothing_else() -> None:
    assert loaded_after("import napkin; napkin.peak('h100', 'bf16')") & HEAVY == {"yaml"}


def test_questions_from_python_load_no_screen() -> None:
    code = "import napkin; napkin.train_time(params='7B', tokens='1T', gpus=8).to_json()"
    assert loaded_after(code) & HEAVY == {"yaml"}


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        ("train-time --params 7B --tokens 1T --gpus 8 --format json", {"typer", "yaml"}),
        ("train-time --params 7B --tokens 1T --gpus 8 --format csv", {"typer", "yaml"}),
        ("mfu --achieved 400TFLOP/s", {"typer", "yaml", "rich"}),
        ("max-model --gpus 8", {"typer", "yaml", "rich"}),
        ("hardware", {"typer", "yaml", "rich"}),
        ("--help", {"typer", "rich"}),
        ("bench --help", {"typer", "rich"}),
        ("train-time --parms 7B", {"typer"}),
        ("", {"typer"}),
    ],
)
def test_a_command_loads_no_more_than_it_needs(arguments: str, heavy: set[str]) -> None:
    code = (
        f"import sys; sys.argv = ['napkin', *{arguments.split()!r}]\n"
        "from napkin.cli import main\n"
        "try: main()\nexcept SystemExit: pass"
    )
    assert loaded_after(code) & HEAVY == heavy


def test_completion_loads_neither_yaml_nor_rich() -> None:
    code = (
        "import os, sys; sys.argv = ['napkin']\n"
        "os.environ.update(_NAPKIN_COMPLETE='complete_bash', COMP_CWORD='3',\n"
        "                  COMP_WORDS='napkin train-time --hardware h')\n"
        "from napkin.cli import main\n"
        "try: main()\nexcept SystemExit: pass"
    )
    assert loaded_after(code) & HEAVY == {"typer"}
