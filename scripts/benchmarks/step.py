"""A whole step: how long it waits for generation and verification, and what of it is ours beyond stock TRL.

An engine that needs no GPU answers TRL's own vLLM client over HTTP, with random tokens at a stated speed; a verifier
takes a stated time. The policy is a random Qwen3; completions have log-normal lengths. In each round every case trains
one rollout batch: generation, scoring, judging, one optimizer step, a log line, metrics and rollouts written.

Time counts for the code that is innermost: what `RLVRTrainer` overrides, our callbacks and our gradient hook are ours,
what these call of `GRPOTrainer` is TRL's. So ``ours`` is all that a step does beyond stock TRL, but for the comparisons
of gradients (5 steps of a run) and with vLLM (one sync in some), which are switched off here. Weights take no time to
travel: TRL's transport takes CUDA.
"""

import argparse
import json
import math
import os
import statistics
import tempfile
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer
from trl.generation import vllm_client, vllm_generation

from evenkeel.trainer.run.callbacks import MetricsFile, Rollouts
from evenkeel.trainer.run.config.schema import LoggingSection
from evenkeel.trainer.run.experiment import silence
from evenkeel.trainer.step import metrics
from evenkeel.trainer.step.options import Guards, Speed
from evenkeel.trainer.step.trainer import EndOfStep, RLVRTrainer
from scripts.benchmarks.rounds import in_turn, round_ratios, shown_ratio
from scripts.benchmarks.update import Size, SyntheticRollouts, random_policy, word_tokenizer

SIZES = {
    "50m": Size(512, 12, 8192, "float32", 2, 8, 4, 24, 30, 96),
    "1m": Size(128, 4, 1024, "float32", 2, 8, 4, 24, 30, 96),
}
_PLANNED = Speed(microbatches="planned", verify_steps=0)
TRAINERS: dict[str, tuple[Speed | None, dict[str, Any]]] = {
    "stock": (None, {}),
    "ours, TRL's cut": (Speed(), {}),
    "a run file's": (Speed(microbatches="planned", verify_steps=0, skip_old_logps=None), {}),
    "π_old scored": (_PLANNED, {}),
    "π_old and reference scored": (_PLANNED, {"beta": 0.04}),
}
"""Name → ``speed`` of `RLVRTrainer`, ``None`` = `trl.GRPOTrainer`; and arguments of both."""
Case = tuple[str, float, float]
"""Trainer, tokens per second of the engine, seconds that the verifier takes."""
OURS, TRLS = "ours", "TRL's"
GENERATION, VERIFICATION = ("_generate", "_generate_single_turn", "sync_weights"), ("_calculate_rewards",)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What this benchmark alone is asked."""
    command.add_argument("--size", choices=list(SIZES), default="50m", help="model and rollout batch; default 50m")
    for name, values in (("--tokens-per-second", [50.0, 400.0]), ("--verifier-seconds", [2.0, 8.0])):
        command.add_argument(name, type=float, nargs="+", default=values, help="default %(default)s")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Everything, in three tables."""
    size, speeds, verifiers = SIZES[options.size], options.tokens_per_second, options.verifier_seconds
    found = whole_steps(size, cases(speeds, verifiers), rounds=options.rounds)
    print("\n".join([*waits_table(found, speeds, verifiers[0]), *hidden_table(found), *ours_table(found)]))
    return {"cases": [{"case": case, "rounds": rounds} for case, rounds in found.items()]}


def cases(speeds: Iterable[float], verifiers: Iterable[float]) -> list[Case]:
    """What is timed: with engines of these speeds, with verifiers of these times, and with neither."""
    first, *_ = verifiers = list(verifiers)
    waiting = [(name, speed, first) for speed in speeds for name in ("stock", "a run file's")]
    judged = [(name, math.inf, seconds) for seconds in verifiers for name in [*TRAINERS][3:]]
    return waiting + judged + [(name, math.inf, 0.0) for name in [*TRAINERS][1:3]]


def whole_steps(
    size: Size, wanted: list[Case], *, rounds: int, say: Callable[[str], None] = print
) -> dict[Case, list[dict[str, Any]]]:
    """Case → of each round ``seconds`` by ``<whose> <method>``, and ``timing``, what the trainer logged of the step."""
    engine, verifier = Engine(size), Verifier()
    found: dict[Case, list[dict[str, Any]]] = {case: [] for case in wanted}
    with (
        tempfile.TemporaryDirectory() as folder,
        engine.listening() as address,
        timed() as seconds,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        trainers = {
            name: trainer_of(Path(folder), str(number), size, verifier, address, *TRAINERS[name])
            for number, name in enumerate(dict.fromkeys(name for name, *_ in wanted))
        }
        for number in range(rounds + 1):  # the first one warms up
            engine.rollouts.number = number
            for place in in_turn([*map(str, range(len(wanted)))], number):
                case = name, engine.tokens_per_second, verifier.seconds = wanted[int(place)]
                seconds.clear()
                trainers[name].train()
                timing = {key: value for key, value in trainers[name].state.log_history[0].items() if "timing" in key}
                if number:
                    found[case].append({"seconds": dict(seconds), "timing": timing})
            say(f"  round {number} of {rounds}" + ("" if number else " (not counted)"))
    return found


def waits_table(found: dict[Case, list[dict[str, Any]]], speeds: Iterable[float], verifier: float) -> Iterator[str]:
    """What part of the step is spent waiting, with engines of some speeds."""
    yield f"\nthe verifier takes {verifier:g} s"
    yield "| engine, tokens/s | trainer | × faster than stock | waits for generation | waits for verification | ours |"
    yield "|---|---|---|---|---|---|"
    for speed in speeds:
        stock = found["stock", speed, verifier]
        for name in ("stock", "a run file's"):
            rounds = found[name, speed, verifier]
            faster = shown_ratio(round_ratios([*map(total, stock)], [*map(total, rounds)]))
            shares = [median_share(rounds, TRLS, places) for places in (GENERATION, VERIFICATION)]
            shown = " | ".join(f"{share:.0%}" for share in shares)
            yield f"| {speed:g} | {name} | {faster} | {shown} | {median_share(rounds, OURS):.2%} |"


def hidden_table(found: dict[Case, list[dict[str, Any]]]) -> Iterator[str]:
    """What of the verifier's time ran beside scoring: of all its time, and of what the scoring has room for."""
    yield "\n| verifier | engine, tokens/s | trainer | scoring takes, × verifier | hidden | of what can be |"
    yield "|---|---|---|---|---|---|"
    for (name, speed, verifier), rounds in found.items():
        if not verifier or name == "stock":
            continue
        room, hidden, of_room = [], [], []
        for logged in (each["timing"] for each in rounds):
            judging = logged["timing/verify_s"]
            room.append((logged["timing/old_logps_s"] + logged["timing/reference_s"]) / judging)
            hidden.append(1 - logged["timing/verify_wait_s"] / judging)
            of_room.append(hidden[-1] / min(1.0, room[-1]) if room[-1] > 0.01 else math.nan)
        shares = " | ".join(f"{statistics.median(values):.0%}" for values in (hidden, of_room))
        yield f"| {verifier:g} s | {speed:g} | {name} | {statistics.median(room):.2f} | {shares} |".replace(
            "nan%", "none can"
        )


def ours_table(found: dict[Case, list[dict[str, Any]]]) -> Iterator[str]:
    """Our own time in each override, beside generation and update, with an engine and a verifier that take none."""
    for name in [*TRAINERS][1:3]:
        rounds = found[name, math.inf, 0.0]
        yield f"\n{name}: the largest of ours"
        yield "| method | ms a rollout batch | of the step |\n|---|---|---|"
        places = {place for each in rounds for place in each["seconds"] if place.startswith(OURS)}
        medians = {place: statistics.median(each["seconds"].get(place, 0.0) for each in rounds) for place in places}
        for place in sorted(medians, key=medians.__getitem__, reverse=True)[:8]:
            method = place.removeprefix(f"{OURS} ")
            yield f"| `{method}` | {1000 * medians[place]:.1f} | {median_share(rounds, OURS, (method,)):.2%} |"
        everything = statistics.median(share_of(each, OURS) * total(each) for each in rounds)
        yield f"| all | {1000 * everything:.1f} | {median_share(rounds, OURS):.2%} |"


def total(measured: dict[str, Any]) -> float:
    """Seconds of the step."""
    return sum(measured["seconds"].values())


def share_of(measured: dict[str, Any], whose: str, methods: Iterable[str] | None = None) -> float:
    """What part of the step went into ``methods``, or all, of TRL's or of ours."""
    own = {place.removeprefix(f"{whose} "): s for place, s in measured["seconds"].items() if place.startswith(whose)}
    return sum(s for method, s in own.items() if methods is None or method in methods) / total(measured)


def median_share(rounds: list[dict[str, Any]], whose: str, methods: Iterable[str] | None = None) -> float:
    """The median of `share_of`."""
    return statistics.median(share_of(each, whose, methods) for each in rounds)


@contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Seconds by ``<whose> <method>`` of trainers that are made and trained inside, each of the innermost method."""
    seconds: dict[str, float] = defaultdict(float)
    innermost, since = [f"{TRLS} train"], time.perf_counter()

    def count() -> None:
        nonlocal since
        now = time.perf_counter()
        seconds[innermost[-1]] += now - since
        since = now

    def counted(place: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(*positional: Any, **keywords: Any) -> Any:
            count()
            innermost.append(place)
            try:
                return method(*positional, **keywords)
            finally:
                count()
                innermost.pop()

        return call

    overrides = [n for n, each in vars(RLVRTrainer).items() if callable(each) and hasattr(GRPOTrainer, n)]
    methods: list[tuple[Any, str, str]] = [
        (owner, name, whose)
        for name in overrides
        if not name.startswith("__")
        for owner, whose in ((RLVRTrainer, OURS), (GRPOTrainer, TRLS))
    ]
    methods += [(RLVRTrainer, "_sync_weights", OURS), (vllm_generation.VLLMGeneration, "sync_weights", TRLS)]
    methods += [(EndOfStep, "on_step_end", OURS), (MetricsFile, "on_log", OURS), (metrics, "_add_contributions", OURS)]
    with ExitStack() as stack:
        for owner, name, whose in methods:
            method = counted(f"{whose} {name}", getattr(owner, name))
            stack.enter_context(patch.object(owner, name, method))
        yield seconds


def trainer_of(
    folder: Path,
    name: str,
    size: Size,
    verifier: "Verifier",
    address: str,
    speed: Speed | None,
    arguments: dict[str, Any],
) -> Any:
    """Each ``train()`` of it trains one rollout batch in one optimizer step, with the engine at `address`."""
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    policy = folder / f"policy-{os.environ.get('RANK', '0')}"
    if not policy.exists():
        torch.manual_seed(0)
        random_policy(size).save_pretrained(policy)
    args = GRPOConfig(
        output_dir=str(folder / name),
        num_generations=size.group_size,
        per_device_train_batch_size=size.rows_each,
        gradient_accumulation_steps=size.rows // size.rows_each // processes,
        max_completion_length=size.longest,
        use_vllm=True,
        vllm_mode="server",
        vllm_server_base_url=address,
        vllm_importance_sampling_mode="token_truncate",
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        report_to="none",
        save_strategy="no",
        logging_steps=1,
        learning_rate=1e-6,
        **{"max_steps": 1, **arguments},
    )
    rows = Dataset.from_list([{"prompt": "a " * size.prompt_length}] * size.prompts)
    given = {"args": args, "train_dataset": rows, "processing_class": word_tokenizer()}
    if speed is None:
        trainer = GRPOTrainer(str(policy), verifier, **given)
    else:
        trainer = RLVRTrainer(str(policy), verifier, speed=speed, guards=Guards(folder / "faults"), **given)
        trainer.add_callback(MetricsFile(folder / f"{name}.jsonl"))
        trainer.add_callback(Rollouts(trainer, folder / name, LoggingSection()))
    silence(trainer)
    return trainer


class Verifier:
    """A reward function that takes ``seconds`` and pays every other response."""

    __name__ = "verifier"
    may_run_in_thread = True
    seconds = 0.0

    def __call__(self, completions: list[Any], log_extra: Callable[[str, list[Any]], None], **_: Any) -> list[float]:
        time.sleep(self.seconds)
        right = [float(row % 2 == 0) for row in range(len(completions))]
        log_extra("correct", right)
        return right


class Client(vllm_client.VLLMClient):
    """TRL's, but for the weights' transport, which takes CUDA: none of them is sent."""

    def init_communicator(self, device: Any = 0) -> None:
        """There is none."""

    def update_named_params(self, metadata: Any, named_params: Iterable[Any]) -> None:
        """Walks through them, as gathering them is a collective."""
        for _ in named_params:
            pass


class Engine:
    """Answers TRL's vLLM client with random tokens, ``tokens_per_second`` of them for all rows together."""

    tokens_per_second = math.inf

    def __init__(self, size: Size) -> None:
        self.rollouts = SyntheticRollouts(size, half_dead=False)
        self.logprob = -math.log(size.vocabulary)  # about what a random policy says of every token

    def completions(self, body: dict[str, Any]) -> dict[str, Any]:
        """What vLLM answers to ``/v1/completions``."""
        started = time.perf_counter()
        prompts = [prompt for prompt in body["prompt"] for _ in range(body["n"])]
        rows = [[2, *row[1:]] for row in self.rollouts(prompts, None)["completion_ids"]]  # groups share a prefix
        choices = [
            {
                "prompt_token_ids": prompt,
                "token_ids": row,
                "logprobs": {
                    "tokens": [f"token_id:{token}" for token in row],
                    "token_logprobs": [self.logprob] * len(row),
                    "top_logprobs": [None] * len(row),
                },
            }
            for prompt, row in zip(prompts, rows, strict=True)
        ]
        due = sum(map(len, rows)) / self.tokens_per_second
        time.sleep(max(0.0, started + due - time.perf_counter()))
        return {"choices": choices}

    @contextmanager
    def listening(self) -> Iterator[str]:
        """Serve on a free port, to TRL's client in this process; what is given is the address."""
        engine = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else an answer waits 40 ms for the acknowledgement of its header

            def do_GET(self) -> None:
                config = {"model_config": {"logprobs_mode": "processed_logprobs"}}
                self.answer({"data": [{"id": "random"}], "vllm_config": config})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
                self.answer(engine.completions(body) if self.path == "/v1/completions" else {})

            def answer(self, body: dict[str, Any]) -> None:
                content = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            with use_client():
                yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()


@contextmanager
def use_client() -> Iterator[None]:
    """Inside, trainers with vLLM take `Client`; the package vllm need not be installed."""
    with ExitStack() as stack:
        for module in (vllm_client, vllm_generation):
            stack.enter_context(patch.object(module, "is_vllm_available", lambda *_, **__: True))
        stack.enter_context(patch.object(vllm_generation, "VLLMClient", Client))
        yield
