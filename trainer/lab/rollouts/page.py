"""The page: one HTML document with its style, script and data inside, which may load nothing else."""

import base64
import hashlib
from pathlib import Path
from typing import Any

from markupsafe import Markup

from evenkeel.trainer.lab.page_templates import page_templates, style
from evenkeel.trainer.lab.rollouts import ROLLOUTS
from evenkeel.trainer.lab.rollouts.contents import Contents, as_script_data, contents_of
from evenkeel.trainer.lab.rollouts.tokens import Decode, WeighedTokens
from evenkeel.trainer.run.config import RunConfig
from evenkeel.trainer.run.config.batch_plan import batch_plan
from evenkeel.trainer.run.experiment import Experiment
from evenkeel.trainer.run.record.checkpoints import checkpoints_of
from evenkeel.trainer.run.record.rollouts import RecordedRollouts
from evenkeel.trainer.run.record.run_record import RunRecord

TEMPLATES = Path(__file__).with_name("templates")
TOKENS = 120_000
"""Most tokens of completions on a page."""


def write_page(
    recorded: RecordedRollouts, to: Path | None = None, most_rollouts: int = ROLLOUTS
) -> tuple[Path, Contents]:
    """Write the page of a run's rollouts.

    Args:
        to: the HTML file; without it ``rollouts.html`` in the run's directory.
        most_rollouts: on the page, in whole groups.

    Raises:
        Refusal: the run has no rollouts (of these steps), or its config.yaml is absent or cannot be read.
    """
    _ = recorded.files  # refused before the tokenizer is loaded
    record = RunRecord(recorded.run)
    config = record.config
    decode, problem = run_decoder(recorded.run, config)
    weigh = WeighedTokens(Experiment(config, recorded.run).strategies, config.trl.get("max_steps", 0))
    plan = batch_plan(config, record.manifest.get("world_size") or config.num_processes or 1)
    contents = contents_of(recorded, weigh, decode, most_rollouts, TOKENS)
    path = to or recorded.run / "rollouts.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page_of(contents, config, plan.sequences_per_rollout, problem), encoding="utf-8")
    return path, contents


def run_decoder(run: Path, config: RunConfig) -> tuple[Decode | None, str]:
    """Token ids → text by the tokenizer of the run's newest checkpoint, or of its model; or why there is none."""
    from transformers import AutoTokenizer

    with_tokenizer = [path for path in checkpoints_of(run) if (path / "tokenizer_config.json").exists()]
    place = str(with_tokenizer[0]) if with_tokenizer else config.model.name_or_path
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(place, local_files_only=True)
    except (OSError, ValueError) as error:
        return None, f"{place}: {str(error).splitlines()[0]}"
    return lambda ids: tokenizer.decode(ids, clean_up_tokenization_spaces=False), ""


def page_of(contents: Contents, config: RunConfig, per_batch: int, problem: str) -> str:
    """The HTML document. Text by a policy is escaped, or is data of the script; a batch had ``per_batch`` rollouts."""
    templates = page_templates(TEMPLATES)
    script = (TEMPLATES / "script.js").read_text()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return templates.get_template("page.html.jinja").render(
        contents=contents,
        config=config,
        generated=per_batch * len(contents.batches),
        most_tokens=TOKENS,
        no_tokens=problem,
        data=Markup(as_script_data(contents.groups)),
        style=style(TEMPLATES / "rollouts.css"),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
    )
