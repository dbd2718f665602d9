"""What users of other tools type → the command line that is meant, or a refusal in one line.

    evenkeel train --config my_run.yaml --learning_rate 1e-5    →  evenkeel train my_run.yaml trl.learning_rate=1e-5
    evenkeel launch my_run.yaml --num_processes 2               →  evenkeel launch --num_processes 2 my_run.yaml
    evenkeel sweep my_sweep.yaml                                →  evenkeel sweep run my_sweep.yaml

No word is left out: each stands in the translation by itself, or as the key or the value of a setting.
"""

import argparse
import ast
import json
import os
import re
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evenkeel.errors import Refusal, suggest
from evenkeel.trainer.command import SETTING
from evenkeel.trainer.run.config.keys import FOREIGN, IN_ANOTHER_SECTION
from evenkeel.trainer.run.config.shipped import named_file
from evenkeel.trainer.run.config.wording import SECTIONS, fields_of, key_of
from evenkeel.trainer.run.config.yaml_document import scalar

_FLAG = re.compile(r"--?[A-Za-z]")
_OPTIONS = {"num_processes": "--processes", "resume_from_checkpoint": "--resume"}
_TYPED = {"model": "model.name_or_path", "data": "data.train.path", "reward": "rewards"}
_KEYS = {**FOREIGN, **IN_ANOTHER_SECTION, **_TYPED}
_OTHER_VALUES = """
scale_rewards multi_objective_aggregation do_eval do_predict eval_strategy eval_delay metric_for_best_model
greater_is_better reward_weights model_init_kwargs log_completions num_completions_to_print use_peft peft_config
log_completions_hub_repo load_in_4bit ppo_mini_batch_size batch_size
"""
"""Names whose key here takes other values."""
_DECLARED_IN = {
    ("trl",): (("transformers", "training_args.py"), ("trl", "trainer/*_config.py")),
    ("model", "lora"): (("peft", "config.py"), ("peft", "tuners/lora/config.py")),
}
"""Section → packages and their files that declare its keys."""
_SWITCH = {"true": "true", "yes": "true", "1": "true", "false": "false", "no": "false", "0": "false"}


def translated(command: str, words: Sequence[str], parser: Callable[[], argparse.ArgumentParser]) -> list[str]:
    """The words after ``evenkeel COMMAND`` as its ``parser`` takes them; or a `Refusal` says what to type instead."""
    if command == "sweep":
        return [*["run"] * (bool(words) and os.path.isfile(named_file(words[0]))), *words]
    if command == "launch":
        parser = import_module("evenkeel.trainer.command.train").parser
    own = {name: action.nargs for action in parser()._actions for name in action.option_strings}
    launcher, runs, settings, options, rewards = (list[str]() for _ in range(5))
    left = deque(words)
    while left:
        word = left.popleft()
        flag, equals, value = word.partition("=")
        name, given = flag.lstrip("-").replace("-", "_"), [value] if equals else None
        option = _OPTIONS.get(name, flag)
        if command == "launch" and _is_launchers(word, name, bool(runs)):
            launcher += [word, *(_taken(left, flag) if not equals and _of_launcher()[name] else [])]
            if not runs and name in ("m", "module", "no_python"):
                return [*words]
        elif command == "launch" and not runs and os.path.isfile(word) and not word.endswith((".yaml", ".yml")):
            return [*words]  # a script
        elif option in own:
            is_bare = own[option] == 0 or (own[option] == "?" and left and SETTING.match(left[0]))
            options += [f"{option}={value}"] if equals else [option, *([] if is_bare else _taken(left))]
        elif not word.startswith("--"):
            (settings if SETTING.match(word) else runs).append(word)
        elif flag == "--config":
            runs += given or _taken(left, flag)
        elif command == "train" and (name == "num_processes" or (_key(name) is None and name in _of_launcher())):
            raise Refusal(f"{flag} is an option of the launcher. Write evenkeel launch in place of evenkeel train.")
        else:
            key, values = _setting(flag, name, given, left)
            (rewards if key == "rewards" else settings).append(values if key == "rewards" else f"{key}={values}")
    settings += [f"rewards=[{', '.join(rewards)}]"] if rewards else []
    module = ["-m", "evenkeel", "train"] if command == "launch" and settings and not runs else []
    return [*launcher, *module, *runs, *settings, *options]


def _setting(flag: str, name: str, given: list[str] | None, left: deque[str]) -> tuple[str, str]:
    """The key that a flag means, and its value as YAML; the value's words are taken from ``left``."""
    if (key := _key(name)) is None:
        known = [f"--{each}" for each in (*_KEYS, *_of_launcher(), *_declared())]
        raise Refusal(f"There is no option {flag}. {suggest(flag, known, 'Write a setting as key=value.')}")
    if not key or "=" in key or name in _OTHER_VALUES.split():
        instead = f"Write {key if '=' in key else f'{key}=…'}." if key else "Leave it out."
        raise Refusal(f"{flag} is no option here. {instead}")
    *section, last = key.split(".")
    field = fields_of(tuple(section)).get(last)
    kind = str(field and field.annotation)
    is_switch = "bool" in kind and "str" not in kind
    if given is None and is_switch and not (left and left[0].lower() in _SWITCH):
        given = ["true"]
    values = given or _taken(left, flag, is_list="list" in kind)
    if is_switch and values[0].lower() in _SWITCH:
        return key, _SWITCH[values[0].lower()]
    if key == "rewards":
        return key, ", ".join(f"{{verifier: {_yaml(_verifier(value))}}}" for value in values)
    texts = ", ".join(map(_yaml, values))
    is_list = len(values) > 1 or (key == "logging.report_to" and not re.match(r"none$|\[", texts))
    return key, f"[{texts}]" if is_list else texts


def _taken(left: deque[str], flag: str = "", *, is_list: bool = False) -> list[str]:
    """The next word of ``left``, or all up to a flag, a setting or a run file; a ``flag`` must have one."""
    taken = list[str]()
    while left and not _FLAG.match(left[0]) and (not taken or is_list):
        if taken and (SETTING.match(left[0]) or named_file(left[0]).endswith(".yaml")):
            break
        taken.append(left.popleft())
    if flag and not taken:
        raise Refusal(f"{flag} lacks its value.")
    return taken


def _key(name: str) -> str | None:
    if "." in name or name in _KEYS:
        return _KEYS.get(name, name)
    return key_of(name) if name in _declared() else None


def _yaml(text: str) -> str:
    """``text`` as a YAML value: in quotes where YAML would read it as something else, or as less."""
    value = scalar(text)
    is_word = value == text and re.fullmatch(r"[\w./@-]+", text)
    is_kept = is_word or isinstance(value, bool | int | float) or text.startswith(("[", "{")) or text == "null"
    return text if is_kept else json.dumps(text, ensure_ascii=False)


def _verifier(name: str) -> str:
    """A reward function as TRL names it, ``accuracy_reward`` or ``package.module.function``, as it is named here."""
    if ":" in name:
        return name
    if "." in name:
        return ":".join(name.rsplit(".", 1))
    return f"trl.rewards:{name}" if "_reward" in name else name


def _is_launchers(word: str, name: str, has_run: bool) -> bool:
    is_known = bool(_FLAG.match(word)) and name in _of_launcher()
    return is_known and not (has_run and name in fields_of(("trl",)))


# An option that there is not is refused before torch is imported: names are read in the sources of what declares them.


def _sources(package: str, pattern: str) -> list[str]:
    found = find_spec(package)
    folder = Path((found and found.origin) or "").parent
    return [file.read_text(encoding="utf-8") for file in folder.glob(pattern)]


@cache
def _declared() -> set[str]:
    """The names of all keys of a run file, and of some arguments that are none."""
    ours = (name for section in SECTIONS if section not in _DECLARED_IN for name in fields_of(section))
    texts = (text for files in _DECLARED_IN.values() for each in files for text in _sources(*each))
    return {*ours, *(name for text in texts for name in re.findall(r"^    (\w+): ", text, flags=re.MULTILINE))}


@cache
def _of_launcher() -> dict[str, bool]:
    """Options of accelerate launch, without dashes, and whether each takes a word."""
    options: dict[str, bool] = {}
    for node in ast.walk(ast.parse("".join(_sources("accelerate", "commands/launch.py")))):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
            names: list[Any] = [each.value for each in node.args if isinstance(each, ast.Constant)]
            actions = [ast.unparse(each.value) for each in node.keywords if each.arg == "action"]
            takes_word = not actions or "append" in actions[0]
            options |= {name.lstrip("-").replace("-", "_"): takes_word for name in names if name.startswith("-")}
    return options
