"""Try verifiers before they are trusted with a run: gold answers, answers of nothing, and texts made to break them.

    python scripts/check_verifiers.py                                            # all that ship, on a few built-in rows
    python scripts/check_verifiers.py --config configs/quickstart.yaml           # those of a run, on its own data
    python scripts/check_verifiers.py --data math500.parquet --verifier math_answer --prompt prompt --reference answer
    python scripts/check_verifiers.py --data problems.jsonl --verifier '{name: countdown, use_all: true}' \
        --prompt question --reference numbers=nums,target=target --json

Exit status: 0 nothing leaks, 1 something does (a gold refused, anything else paid, no verdict, too slow), 2 refused.
"""

from pathlib import Path
from runpy import run_path

if __name__ == "__main__":
    run_path(str(Path(__file__).with_name("_installed.py")))

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenkeel.rewards import GENERATORS, VerifierError, build_verifier
from evenkeel.rewards.bench import BUILT_IN, Row, as_json, as_table, bench, built_in_rows
from evenkeel.rewards.bench.adversarial import built_in
from evenkeel.rewards.verifier import Verifier
from evenkeel.trainer.run.config import Columns, ConfigError, Source, load_config
from evenkeel.trainer.run.config.yaml_document import read_value
from evenkeel.trainer.run.data import DataError, load_rows

REFUSALS = (ConfigError, DataError, VerifierError)
"""What a user can put right: shown as its message alone."""


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status, see above."""
    arguments = parse_arguments(argv)
    try:
        adversarial, results = built_in(), []
        for name, verifier, rows in subjects(arguments):
            chosen = rows[:: max(1, len(rows) // arguments.rows)][: arguments.rows]
            result = bench(verifier, chosen, name=name, adversarial=adversarial, max_seconds=arguments.max_seconds)
            results.append(result)
            if not arguments.json:
                print(as_table(result) + "\n", flush=True)
    except REFUSALS as refusal:
        print(f"\n{refusal}", file=sys.stderr)
        return 2
    if arguments.json:
        print(json.dumps([as_json(result) for result in results], indent=1))
    return 1 if any(result.leaks for result in results) else 0


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="with --config: settings replaced in it")
    parser.add_argument("--config", help="YAML file of a run")
    parser.add_argument("--data", help="file, folder or hub id")
    parser.add_argument("--split", help="of a hub id or saved folder")
    parser.add_argument("--verifier", help="name, module:attribute, or {name: …, option: …}; alone: its built-in rows")
    parser.add_argument("--prompt", default="prompt", help="column of the question; default prompt")
    parser.add_argument("--reference", default="reference", help="column, or key=column,key=column; default reference")
    parser.add_argument("--rows", type=int, default=200, help="at most so many, spread over the data; default 200")
    parser.add_argument("--max-seconds", type=float, default=60.0, help="for one judgement; default 60")
    parser.add_argument("--json", action="store_true", help="print JSON with every finding")
    arguments = parser.parse_intermixed_args(argv)
    if arguments.config and (arguments.data or arguments.verifier):
        parser.error("--config names data and verifiers; give it alone, or --data with --verifier")
    if arguments.data and not arguments.verifier:
        parser.error("--data needs --verifier, which judges it")
    if arguments.overrides and not arguments.config:
        parser.error(f"{arguments.overrides[0]} replaces a setting of a configuration; name one with --config")
    if arguments.rows < 1:
        parser.error("--rows: at least 1")
    return arguments


def subjects(arguments: argparse.Namespace) -> Iterator[tuple[str, Verifier, list[Row]]]:
    """A name, a verifier and the rows that it judges."""
    if arguments.config:
        yield from of_config(arguments.config, arguments.overrides)
    elif arguments.data:
        source = Source(path=arguments.data, split=arguments.split, columns=columns(arguments))
        dataset = load_rows([source], generators=GENERATORS, system_prompt=None, base_dir=Path.cwd(), templated=True)
        spec = read_value(arguments.verifier, "--verifier").plain()
        yield arguments.verifier, build_verifier(spec), rows_of(dataset)
    elif arguments.verifier:
        if arguments.verifier not in BUILT_IN:
            raise VerifierError(f"there are no rows for {arguments.verifier!r}. Name its data with --data.")
        yield arguments.verifier, *built_in_rows(arguments.verifier)
    else:
        for name in BUILT_IN:
            yield name, *built_in_rows(name)


def of_config(path: str, overrides: Sequence[str]) -> Iterator[tuple[str, Verifier, list[Row]]]:
    """Each of the run's verifiers with the rows of its task, those to train on and each held-out set."""
    config = load_config(path, overrides)
    verifiers = {reward.label: (build_verifier(reward.verifier), reward.task) for reward in config.rewards}
    held_out = {f"test.{name}": [source] for name, source in config.data.test_sources.items()}
    for part, sources in {"train": [*config.data.train_sources.values()], **held_out}.items():
        dataset = load_rows(sources, generators=GENERATORS, system_prompt=None, base_dir=Path(path).resolve().parent)
        tasks = dataset["task"] if "task" in dataset.column_names else [None] * len(dataset)
        rows = rows_of(dataset)
        for label, (verifier, wanted) in verifiers.items():
            if mine := [row for row, task in zip(rows, tasks, strict=True) if wanted in (None, task)]:
                yield f"{label} on data.{part}", verifier, mine


def rows_of(dataset: Any) -> list[Row]:
    """Question and reference of each row; the question is the last message."""
    prompts, references = dataset["prompt"], dataset["reference"]
    return [Row(prompt[-1]["content"], reference) for prompt, reference in zip(prompts, references, strict=True)]


def columns(arguments: argparse.Namespace) -> Columns:
    """The columns that the command line names."""
    reference: str | Mapping[str, str] = arguments.reference
    if "=" in arguments.reference:
        reference = dict(pair.split("=", 1) for pair in arguments.reference.split(","))
    return Columns.model_validate({"prompt": arguments.prompt, "reference": reference})


if __name__ == "__main__":
    sys.exit(main())
