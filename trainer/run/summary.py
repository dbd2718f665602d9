"""The summary of a finished run, its reward curve, and the table on the terminal."""

import resource
import shlex
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenkeel.trainer.run.config import RunConfig
from evenkeel.trainer.run.record.files import REWARD_CURVE, SUMMARY, SUMMARY_TEXT, write_json
from evenkeel.trainer.run.record.run_record import RunRecord

ACCURACY = "verifier/accuracy"
"""The metric that is a run's accuracy; an evaluation's begins with ``eval_``."""


def write_summary(run: Path, summary: Mapping[str, Any]) -> None:
    """Write ``summary.md``, without unknown values, and then ``summary.json``, which marks the run as finished."""
    known = {key: value for key, value in summary.items() if value is not None}
    shown = {key: f"{value:.4g}" if isinstance(value, float) else value for key, value in known.items()}
    rows = [f"| {key.replace('_', ' ')} | {value} |" for key, value in shown.items()]
    (run / SUMMARY_TEXT).write_text(
        "\n".join([f"# {summary['name']}", "", "| | |", "|---|---|", *rows, ""]), encoding="utf-8"
    )
    write_json(run / SUMMARY, summary)


def draw_reward_curve(run: Path) -> None:
    """``reward_curve.png`` from ``metrics.jsonl``: mean reward of the rollout batches, held-out accuracy."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    lines = RunRecord(run).metrics
    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for key, label, style in (
        ("reward", "mean reward, rollout batch", {"color": "#0072B2", "linewidth": 1.2}),
        (f"eval_{ACCURACY}", "held-out accuracy", {"color": "#D55E00", "marker": "o", "linestyle": "--"}),
    ):
        points = [(line["step"], line[key]) for line in lines if line.get(key) is not None]
        if points:
            axes.plot(*zip(*points, strict=True), label=label, **style)
    axes.set_xlabel("optimizer step")
    axes.set_ylabel("reward, accuracy")
    axes.grid(alpha=0.3)
    if axes.lines:
        figure.legend(loc="outside upper center", ncols=2, frameon=False)
    figure.savefig(run / REWARD_CURVE, dpi=150)
    pyplot.close(figure)


def report(trainer: Any, config: RunConfig, run: Path) -> dict[str, Any]:
    """``summary.json``, ``summary.md`` and ``reward_curve.png``, and the table on the terminal; the summary."""
    record, state = RunRecord(run), trainer.state
    parts, seconds = len(record.parts), record.seconds
    before, after = (record.metric_at(step, f"eval_{ACCURACY}") for step in (0, state.global_step))
    count = sum(len(rows) for rows in (trainer.eval_dataset or {}).values())
    rewards = [entry["reward"] for entry in state.log_history if entry.get("reward") is not None]

    def median(metric: str) -> float | None:
        values = [entry[metric] for entry in state.log_history if entry.get(metric)]
        return statistics.median(values) if values else None

    draw_reward_curve(run)
    summary = {
        "name": config.name,
        "seed": config.run_seed,
        **trainer.strategies.names,
        "held_out_rows": count,
        "accuracy_before": before,
        "accuracy_after": after,
        "accuracy_gain": None if before is None or after is None else after - before,
        "best_metric": state.best_metric,
        "best_checkpoint": state.best_model_checkpoint,
        "reward_first": rewards[0] if rewards else None,
        "reward_last": rewards[-1] if rewards else None,
        "optimizer_steps": state.global_step,
        "tokens_seen": state.num_input_tokens_seen,
        "tokens_generated_per_second_per_device": median("perf/generated_tokens_per_second"),
        "tokens_trained_per_second_per_device": median("perf/trained_tokens_per_second"),
        "mfu_percent": median("perf/mfu"),
        "wall_seconds": seconds,
        "peak_memory_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "parts": parts,
    }
    write_summary(run, summary)
    took = f" in {seconds:.0f} s" + (f", {parts} parts together" if parts > 1 else "")
    print(f"\n{config.name}, seed {config.run_seed}: {state.global_step} optimizer steps{took}")
    for label, value in (("before", before), ("after", after)):
        if value is not None:
            print(f"  held-out accuracy {label:<6}  {value:.3f}   ({count} rows)")
    where = shlex.quote(str(run))
    print(f"  written to {run}: {SUMMARY_TEXT}, {REWARD_CURVE}. Next:")
    to = shlex.quote(f"exported/{config.name}")
    for command in (f"rollouts {where}", f"export {where} --to {to}", f"report {where}"):
        print(f"  evenkeel {command}", flush=True)
    return summary
