"""Counts how large the product is, by room, and how much of it decides, checks and says.

    python scripts/size.py            # the counts, each with its limit; exit status 1 where one is over
    python scripts/size.py --rooms    # lines, checking lines and words in messages of each room

Counted are tracked files only. Definitions:

    lines            all lines of .py files, blank ones and docstrings among them, and of data files that hold
                     messages (.json, .yaml in `trainer` and `rewards` whose values are sentences)
    keys             leaf keys of a run file: fields of the sections' models, the source's and its columns' among them;
                     a mapping that is passed on verbatim is one
    rules            entries of the tables of rules that a run or its log is asked by
    checking lines   lines of modules in CHECKING, and elsewhere those of exception classes, of `raise` and `warn` with
                     the condition that guards nothing else, of functions that return or yield problems, and of those
                     that raise and return nothing (methods that set up an object aside)
    message words    words of string literals of three words or more, docstrings left out, and of such data files
    exceptions       classes with a base whose name ends in Error, Exception, Warning or Refusal
    arrows           pairs of modules of `trainer/step` of which one imports the other
    core → lab       imports of a lab room by a core room
    prose            words of Markdown outside code blocks, tables and generated pages
    characters       mean length of a line of code: no docstrings, comments or blank lines, indentation left out
"""

from pathlib import Path
from runpy import run_path

if __name__ == "__main__":
    run_path(str(Path(__file__).with_name("_installed.py")))

import argparse
import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, get_args

ROOT = Path(__file__).resolve().parents[1]
CHECKING = (
    "trainer/lab/doctor/",
    "trainer/run/check/",
    "trainer/run/config/rules.py",
    "trainer/run/config/problems.py",
    "trainer/run/config/wording.py",
    "trainer/run/config/keys.py",
    "trainer/run/library_errors.py",
    "trainer/run/preflight.py",
    "trainer/step/compatibility.py",
    "trainer/step/guards.py",
    "trainer/step/provenance.py",
    "trainer/algorithms/results.py",
    "trainer/algorithms/trial.py",
    "rewards/bench/",
    "rewards/references.py",
)
LAB = ("lab",)
CORE = ("algorithms", "step", "run", "evaluation")
GENERATED = ("configs/curves/", "CHANGELOG.md", "docs/run_file.md", "docs/metrics.md", "docs/scale.md")
LIMITS: dict[str, tuple[str, float]] = {
    "keys": ("<=", 64),
    "classes named Rule": ("<=", 1),
    "rules": ("<=", 50),
    "classes named Finding or Problem": ("<=", 1),
    "checking lines, %": ("<=", 15),
    "words in messages": ("<=", 14_000),
    "exception classes": ("<=", 25),
    "lines of the step": ("<=", 5_200),
    "files of the step": ("<=", 22),
    "arrows of the step": ("<=", 60),
    "longest function of the step": ("<=", 80),
    "core -> lab imports": ("<=", 0),
    "lines of tests": ("<=", 28_000),
    "words of prose": ("<=", 20_000),
    "lines of trainer + rewards": ("<=", 40_274),
    "docstrings, % of lines": (">=", 15),
    "characters of a line of code": ("<=", 46),
}
ERRORS = ("Error", "Exception", "Warning", "Refusal")
PROBLEMS = re.compile(r"\b(Problems?|Finding|InitErrorDetails)\b")


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.check_output(["git", "ls-files", *patterns], cwd=ROOT, text=True).split("\n")
    return [ROOT / name for name in listed if name]


def under(file: Path, *folders: str) -> bool:
    return str(file.relative_to(ROOT)).startswith(folders)


class Module:
    """A file of the product, parsed once."""

    def __init__(self, file: Path) -> None:
        self.name = str(file.relative_to(ROOT))
        self.lines = file.read_text().splitlines()
        self.tree = ast.parse("\n".join(self.lines))
        self.nodes = list(ast.walk(self.tree))

    def documented(self) -> set[int]:
        """Lines of docstrings, those behind a field among them."""
        texts = [node for node in self.nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
        return {line for node in texts if isinstance(node.value.value, str) for line in spanned(node)}  # type: ignore[attr-defined]

    def errors(self) -> list[ast.ClassDef]:
        classes = [node for node in self.nodes if isinstance(node, ast.ClassDef)]
        return [each for each in classes if any(ast.unparse(base).endswith(ERRORS) for base in each.bases)]

    def checking(self) -> set[int]:
        """Lines that check, refuse or advise."""
        if self.name.startswith(CHECKING):
            return set(range(1, len(self.lines) + 1))
        found: list[ast.AST] = [*self.errors()]
        for node in self.nodes:
            warns = isinstance(node, ast.Expr) and "warn" in ast.unparse(node)[:20]
            guards = isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], ast.Raise)
            if warns or guards or isinstance(node, ast.Raise):
                found.append(node)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                returned = ast.unparse(node.returns) if node.returns else ""
                raises = returned == "None" and any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
                if PROBLEMS.search(returned) or (raises and not node.name.startswith("__")):
                    found.append(node)
        return {line for node in found for line in spanned(node)}

    def message_words(self) -> int:
        standing = {id(node.value) for node in self.nodes if isinstance(node, ast.Expr)}
        texts = [node for node in self.nodes if isinstance(node, ast.Constant) and id(node) not in standing]
        counts = [len(re.findall(r"[A-Za-z]{2,}", node.value)) for node in texts if isinstance(node.value, str)]
        return sum(count for count in counts if count >= 3)

    def imports(self) -> set[str]:
        found = {node.module for node in self.nodes if isinstance(node, ast.ImportFrom) and node.module}
        return found | {alias.name for node in self.nodes if isinstance(node, ast.Import) for alias in node.names}


def spanned(node: Any) -> range:
    return range(node.lineno, node.end_lineno + 1)


def keys() -> int:
    """Leaf keys of a run file."""
    from pydantic import BaseModel

    from evenkeel.trainer.run.config.schema import RunConfig

    def models(annotation: Any) -> Iterator[type[BaseModel]]:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield annotation
        for argument in get_args(annotation):
            yield from models(argument)

    def paths(model: type[BaseModel], place: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for name, field in model.model_fields.items():
            if inside := list(models(field.annotation)):
                for each in inside:
                    yield from paths(each, (*place, name))
            else:
                yield (*place, name)

    from evenkeel.trainer.run.config.data_section import Source

    return len(set(paths(RunConfig, ()))) + len(set(paths(Source, ("data",))))


def rules() -> int:
    """Entries of every table of rules."""
    from evenkeel.trainer.lab.doctor import rules as doctor
    from evenkeel.trainer.run import schedule
    from evenkeel.trainer.run.config import rules as run_file
    from evenkeel.trainer.step import compatibility

    tables: list[list[Any]] = [run_file.RULES, compatibility.RULES, schedule.ARGUMENT_RULES, doctor.SYMPTOMS]
    return sum(len(table) for table in tables)


def prose() -> int:
    words = 0
    for page in tracked("*.md"):
        if not under(page, *GENERATED):
            text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
            lines = [line for line in text.splitlines() if not re.match(r"\s*\||    ", line)]
            words += sum(len(line.split()) for line in lines)
    return words


def counted(modules: list[Module]) -> dict[str, float]:
    step = [module for module in modules if module.name.startswith("trainer/step/")]
    functions = [n for m in step for n in m.nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    classes = Counter(n.name for m in modules for n in m.nodes if isinstance(n, ast.ClassDef))
    total = sum(len(module.lines) for module in modules)
    names = {f"evenkeel.{module.name.removesuffix('.py').replace('/', '.')}" for module in step}
    arrows = sum(len((module.imports() & names) - {module.name}) for module in step)
    lab = tuple(f"evenkeel.trainer.{room}" for room in LAB)
    core = [m for m in modules if m.name.startswith(("rewards/", *(f"trainer/{room}/" for room in CORE)))]
    documented = sum(len(module.documented()) for module in modules)
    code = []
    for module in modules:
        outside = module.documented()
        lines = [line.strip() for number, line in enumerate(module.lines, 1) if number not in outside]
        code += [len(line) for line in lines if line and not line.startswith("#")]
    return {
        "keys": keys(),
        "classes named Rule": classes["Rule"],
        "rules": rules(),
        "classes named Finding or Problem": classes["Finding"] + classes["Problem"],
        "checking lines, %": 100 * sum(len(module.checking()) for module in modules) / total,
        "words in messages": sum(module.message_words() for module in modules) + data_words(),
        "exception classes": sum(len(module.errors()) for module in modules),
        "lines of the step": sum(len(module.lines) for module in step),
        "files of the step": len(step),
        "arrows of the step": arrows,
        "longest function of the step": max(len(spanned(node)) for node in functions),
        "core -> lab imports": sum(name.startswith(lab) for module in core for name in module.imports()),
        "lines of tests": sum(len(file.read_text().splitlines()) for file in tracked("tests/*.py")),
        "words of prose": prose(),
        "lines of trainer + rewards": total + sum(len(file.read_text().splitlines()) for file in message_files()),
        "docstrings, % of lines": 100 * documented / total,
        "characters of a line of code": sum(code) / len(code),
    }


def message_files() -> list[Path]:
    """Data files of the product with sentences: spaces in at least a tenth of their strings of 30 characters."""
    files = [file for file in tracked("trainer/*", "rewards/*") if file.suffix in (".json", ".yaml")]
    return [file for file in files if len(re.findall(r"[\"'][A-Z][a-z]+(?: [\w,`]+){5,}", file.read_text())) >= 5]


def data_words() -> int:
    return sum(len(re.findall(r"[A-Za-z]{2,}", file.read_text())) for file in message_files())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rooms", action="store_true", help="lines, checking lines and words in messages of each room")
    options = parser.parse_args()
    modules = [Module(file) for file in tracked("trainer/*.py", "rewards/*.py")]
    if options.rooms:
        rooms: dict[str, Counter[str]] = {}
        for module in modules:
            room = rooms.setdefault(str(Path(module.name).parent), Counter())
            room.update(lines=len(module.lines), checking=len(module.checking()), words=module.message_words())
        for name, room in sorted(rooms.items()):
            print(f"{name:40} {room['lines']:6} lines {room['checking']:6} checking {room['words']:6} words")
        return 0
    over = 0
    for what, now in counted(modules).items():
        sign, limit = LIMITS[what]
        holds = now <= limit if sign == "<=" else now >= limit
        over += not holds
        print(f"{what:34} {now:9,.1f}  {sign} {limit:6,}  {'ok' if holds else 'OVER'}".replace(".0 ", "   "))
    print(f"{over} of {len(LIMITS)} not there yet")
    return bool(over)


if __name__ == "__main__":
    sys.exit(main())
