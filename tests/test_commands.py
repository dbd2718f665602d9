"""Every command of the README and of docs/commands.md, run as it is written: from a wheel, in a folder of its user's.

What takes long is run with fewer steps, or to its first step; what needs GPUs is checked. Slow, and to be run on one
process (``-n 0``): the commands share a folder, in their order.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from evenkeel.trainer.run.config.yaml_document import write
from evenkeel.trainer.run.launcher import parsed
from tests.paths import ROOT
from tests.trainer.lab.doctor.test_readers import TRL_LINES, VERL_LINES, jsonl
from tests.trainer.lab.reports.recorded_sweep import VARIANTS, record_sweep
from tests.waiting import wait_until

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q")
IN_A_CHECKOUT = {
    "bash scripts/quickstart.sh",
    "source .venv/bin/activate",
    'pip install -e ".[deepspeed,vllm]" -c constraints.txt',
    "pip wheel --no-deps -w dist . && pip install dist/trl_evenkeel-*.whl",
}
"""What the pages' blocks hold besides commands of ours."""
FEW = "trl.max_steps=25 trl.save_steps=25 trl.max_completion_length=48 trl.num_generations=4 evaluation.before=false"
FEW += " algorithm.prompts_per_rollout=4 algorithm.sequences_per_update=16 trl.per_device_train_batch_size=8"
FEW += " data.test.generator.test=8 logging.rollouts=all logging.report_to=none"
BASES = " common_random_numbers=true trl.max_steps=80 trl.save_steps=80"


def commands() -> list[str]:
    """Every line of a shell block, and every example of a help text, without variables and comments."""
    found = {}
    for page in ("README.md", "docs/commands.md"):
        for kind, block in re.findall(r"```(bash|text)\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL):
            pattern = r"^(\S.*)$" if kind == "bash" else r"^    ((?:evenkeel|accelerate) .+)$"
            for line in re.findall(pattern, re.sub(r" \\\n\s*", " ", block), flags=re.MULTILINE):
                found[re.sub(r"^([A-Z_]+=\S+ )+|\s+# .*", "", line).strip()] = None
    return [*found]


COMMANDS = [command for command in commands() if command not in IN_A_CHECKOUT]
AGREED = (  # a pattern → what is added, and how it may end
    (r"evenkeel train quickstart seed", f" {FEW} name=another", {0}),
    (r"evenkeel train quickstart|evenkeel launch --cpu", f" {FEW}", {0}),
    (r"evenkeel sweep (run|cell)", "", {130}),  # at the first step
    (r"evenkeel gradients quickstart", " --batches 2", {0}),
    (r"evenkeel evaluate .*--last", "", {2}),  # no such run
    (r"evenkeel evaluate runs/", " data.test.generator.test=8 trl.max_completion_length=16", {0}),
    (r"evenkeel (audit|doctor) ", "", {0, 1}),  # 1: findings
    (r"evenkeel claim claims/", "", {2}),  # what does not ship is named
    (r"evenkeel check (knights|a_strangers)|evenkeel evaluate Qwen", "", {0, 2}),  # the hub
)
RULES = """
def math_reward(completions, answer, **kwargs):
    return [float(str(each) in str(completion)) for completion, each in zip(completions, answer)]


def reward(completions, gold_text, **kwargs):
    return [float(str(each) in str(completion)) for completion, each in zip(completions, gold_text)]
"""


def test_a_command_of_a_page_is_ours_or_listed():
    assert {*commands()} >= IN_A_CHECKOUT
    assert [command for command in COMMANDS if not command.startswith("evenkeel ")] == []
    assert len(COMMANDS) > 50


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("wheel")
    source = str(built / "source")
    subprocess.run(["git", "clone", "-q", str(ROOT), source], check=True)
    subprocess.run([*PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", str(built), source], check=True)
    return next(built.glob("trl_evenkeel-*.whl"))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> dict[str, str]:
    """Variables of a shell in which the wheel is installed, beside this environment's other packages.

    And beside packages of others that have our folders' names.
    """
    home = tmp_path_factory.mktemp("home")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home / "venv")], check=True)
    (packages,) = home.glob("venv/lib/python*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = str(home / "venv/bin/python")
    subprocess.run([*PIP, "--python", python, "install", "--no-deps", str(wheel)], check=True)
    for name in ("rewards", "trainer", "configs"):
        (packages / name).mkdir()
        (packages / name / "__init__.py").write_text("raise ImportError('the package of another')\n")
    for folder in (".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"):
        (home / folder).mkdir(parents=True)
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    variables |= {"HOME": str(home), "PATH": f"{home}/venv/bin:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    return variables | {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline"}


def ran(line: str, folder: Path, environment: dict[str, str], allowed: set[int]) -> str:
    ended = subprocess.run(["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True)
    said = ended.stdout + ended.stderr
    assert "Traceback" not in said, said[-3000:]
    assert ended.returncode in allowed, said[-3000:]
    return said


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Path:
    """What the pages take as there: runs with checkpoints, a finished sweep, logs of others, files of a user's."""
    home = tmp_path_factory.mktemp("folder")
    ran(f"evenkeel train quickstart {FEW}", home, environment, {0})
    ran("evenkeel configs copy quickstart my_run.yaml", home, environment, {0})
    for seed, name in enumerate(("base", "base-2", "base-3")):
        ran(f"evenkeel train quickstart name={name} seed={seed} {FEW}{BASES}", home, environment, {0})
    shutil.copytree(home / "runs/quickstart", home / "runs/knights_knaves")
    for name in ("quickstart", "earlier"):
        record_sweep(home / "runs/sweeps" / name)
    claim = {"claim": "Lopti helps.", "source": "none", "variant": "lopti", "against": ["grpo"], "matters": 0.02}
    sweep = {"config": "configs/quickstart.yaml", "baseline": "grpo", "seeds": [*range(5)], "variants": VARIANTS}
    variants = {"grpo": {}, "rloo": {"algorithm.advantage": "rloo"}}
    state = {"global_step": 500, "log_history": TRL_LINES}
    verl = "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
    wandb_run = home / "wandb" / "offline-run-20260101_120000-abcdef"
    for name, text in {
        "my_claims.yaml": write({"sweep": "my_sweep.yaml", "claims": {"lopti_helps": claim}}),
        "my_sweep.yaml": write({**sweep, "output_dir": "runs/sweeps/earlier"}),
        "variants.yaml": write({"baseline": "grpo", "rollouts": 82, "variants": variants}),
        "my_rewards.py": RULES,
        "rows.jsonl": '{"prompt": "1", "reference": "2"}\n' * 9,
        "verl_rewards/gsm8k.py": f"{verl}    return float(ground_truth in solution_str)\n",
        "outputs/checkpoint-500/trainer_state.json": json.dumps(state),
        "logs/metrics.jsonl": jsonl(VERL_LINES).decode(),
        "a_strangers_run.yaml": "extends: configs/quickstart.yaml\nrewards: [{verifier: theirs:judge}]\n",
    }.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    log = f"import wandb; run = wandb.init(mode='offline', dir={str(home)!r}, project='theirs')\n"
    log += f"[run.log({{'train/global_step': n, 'train/reward': 0.5}}) for n in range({len(TRL_LINES)})]; run.finish()"
    subprocess.run([sys.executable, "-c", log], env=environment, check=True, capture_output=True)
    (written,) = (path for path in (home / "wandb").glob("offline-run-*") if path.is_dir())
    written.rename(wandb_run)
    return home


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_it_does_what_the_page_says(command: str, folder: Path, environment: dict[str, str]):
    of_it = (rest for pattern, *rest in AGREED if re.match(pattern, command))
    added, allowed = next(of_it, ("", {0}))
    if command.startswith("evenkeel launch --config_file"):
        return of_gpus(command, folder, environment)
    if 130 in allowed:
        return to_its_first_step(command, folder, environment)
    if "configs copy" in command:
        (folder / "my_run.yaml").unlink(missing_ok=True)
    if "exported/quickstart" in command:
        shutil.rmtree(folder / "exported/quickstart", ignore_errors=True)
    said = ran(f"{command}{added}", folder, environment, allowed)
    if "claims/" in command:
        assert "python -m scripts.tiny_policy.make" in said
    return None


@pytest.mark.slow
def test_the_notebook_trains(environment: dict[str, str], tmp_path: Path):
    """Its cells as one program, in a checkout that it installs: a line of a shell begins with ! or %."""
    subprocess.run(["git", "clone", "-q", str(ROOT), str(tmp_path / "checkout")], check=True)
    cells = json.loads((ROOT / "examples" / "quickstart.ipynb").read_text())["cells"]
    program = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    line = r"import os\nassert os.system('\1') in (0, 256)"  # status 1 is the doctor's: findings
    program = re.sub(r"^!(.+)$", line, re.sub("^%", "!python -m ", program, flags=re.M), flags=re.M)
    (tmp_path / "checkout" / "examples" / "notebook.py").write_text(program)
    variables = {**environment, "PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1", "MPLBACKEND": "agg"}
    said = ran("python notebook.py", tmp_path / "checkout" / "examples", variables, {0})
    before, after = map(float, re.findall(r"held-out accuracy (\S+) → (\S+)", said)[0])
    assert after > before + 0.2


def of_gpus(command: str, folder: Path, environment: dict[str, str]) -> None:
    """Everything of the run is right but what needs the hub or a package that is not here."""
    given, processes = parsed(command.split()[2:])
    _, *words = given.training_script_args
    if words[0] == "CHECKPOINT":  # of any evaluation
        return
    words = [word for word in words if word not in ("--resume", "auto")]
    line = " ".join(["evenkeel check", *words, f"--processes {processes} --json"])
    ended = subprocess.run(["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True)
    errors = [each for each in json.loads(ended.stdout)["problems"] if each["severity"] == "error"]
    away = {"unreadable-model", "no-vllm"}
    assert [each for each in errors if each["code"] not in away and "without network" not in each["text"]] == []


def to_its_first_step(command: str, folder: Path, environment: dict[str, str]) -> None:
    """In a folder of its own, and stopped as Ctrl-C does."""
    here = folder / "long"
    shutil.rmtree(here, ignore_errors=True)
    here.mkdir()
    with (here / "said").open("w") as said:
        started = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=here,
            env=environment,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        logs = "runs/sweeps/*/*/run/metrics.jsonl"
        wait_until(
            lambda: any('"loss"' in path.read_text() for path in here.glob(logs)),
            (here / "said").read_text,
            can_still=lambda: started.poll() is None,
            seconds=600,
        )
        started.send_signal(signal.SIGINT)
        status = started.wait(timeout=300)
    assert status == 130, (here / "said").read_text()
    assert "Traceback" not in (here / "said").read_text()
