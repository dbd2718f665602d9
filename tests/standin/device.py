"""The device ``standin`` for Python: built once, then installed as torch's third-party backend.

`install` comes before accelerate is imported, and only in a process that is to run on the device: torch keeps one name
for such a backend, and accelerate takes the device that is there.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import sys
import types
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

SOURCE = Path(__file__).with_name("standin.cpp")
NAME = "standin"
_MODULE = "evenkeel_standin"


def why_not() -> str | None:
    """Why the device cannot be built on this machine; ``None`` = it can."""
    if not sys.platform.startswith("linux"):
        return f"the stand-in device needs Linux (memfd_create); this is {sys.platform}"
    absent = [name for name in (os.environ.get("CXX", "c++"), "ninja") if shutil.which(name) is None]
    return f"the stand-in device is compiled with {' and '.join(absent)}, not found on PATH" if absent else None


def is_installed() -> bool:
    """Whether this process runs on the device."""
    return f"torch.{NAME}" in sys.modules


@cache
def install() -> Any:
    """Make ``torch.device("standin")`` a device, and the one that accelerate takes.

    Returns:
        The compiled module: ``on_host_wait(listener)``, ``allocated_and_peak()``, ``reset_peak()``.
    """
    import torch

    native = _built()
    native.do_not_check(_operators_without_check())
    torch.utils.rename_privateuse1_backend(NAME)
    module = _device_module(native)
    torch._register_device_module(NAME, module)
    sys.modules[f"torch.{NAME}"] = module
    torch.utils.generate_methods_for_privateuse1_backend(for_tensor=True, for_module=True, for_storage=True)
    # `parameter.data = …` cannot change the device here, and a new parameter would not be the one that a tied head
    # holds: `.to(device)` has to swap the contents.
    torch.__future__.set_swap_module_params_on_conversion(True)
    os.environ["ACCELERATE_TORCH_DEVICE"] = f"{NAME}:0"  # accelerate looks for devices by their names
    import transformers.training_args

    transformers.training_args.is_torch_bf16_gpu_available = lambda: True  # and so does this
    return native


def _built() -> Any:
    """The compiled module; compiled (half a minute) where there is none of this text, torch and Python."""
    import torch
    from torch.utils.cpp_extension import load

    key = hashlib.sha256(SOURCE.read_bytes() + torch.__version__.encode() + sys.version.encode()).hexdigest()[:12]
    cache_folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "evenkeel"
    folder = Path(os.environ.get("EVENKEEL_STANDIN_BUILD", cache_folder))
    library = folder / f"standin-{key}.so"
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder) as build:  # ninja would compile anew for each checkout
            module = load(_MODULE, [str(SOURCE)], extra_cflags=["-O1"], build_directory=build)
            (Path(build) / f"{_MODULE}.so").replace(library)
        return module
    spec = importlib.util.spec_from_file_location(_MODULE, library)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _operators_without_check() -> set[str]:
    """Operators whose CUDA kernels torch lets see tensors of several devices: most take a CPU number beside theirs."""
    import torchgen

    text = (Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml").read_text()
    entries = re.findall(r"^- func: ([\w.]+)\((.*?)(?=^- func: |\Z)", text, flags=re.DOTALL | re.MULTILINE)
    return {f"aten::{name}" for name, entry in entries if "device_check: NoCheck" in entry}


class _Stream:
    """Of streams and events there is one of each: everything runs in the caller's order."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __enter__(self) -> "_Stream":
        return self

    def __exit__(self, *_: Any) -> None: ...

    def _nothing(self, *_: Any) -> None: ...

    synchronize = wait = wait_stream = wait_event = record = _nothing

    def query(self) -> bool:
        return True

    def elapsed_time(self, _: "_Stream") -> float:
        return 0.0


def _device_module(native: Any) -> types.ModuleType:
    """``torch.standin``: what torch, accelerate and transformers ask of ``torch.cuda``."""
    import torch

    generator = native.default_generator()

    def seed(number: int) -> None:
        generator.manual_seed(int(number))

    def nothing(*_: Any, **__: Any) -> None: ...

    members: dict[str, Any] = {
        # the device
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "_is_in_bad_fork": lambda: False,
        "init": nothing,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": nothing,
        "device": nullcontext,
        "synchronize": nothing,
        "get_device_name": lambda *_: "a stand-in for a GPU",
        "get_device_capability": lambda *_: (9, 0),
        "get_amp_supported_dtype": lambda: [torch.bfloat16, torch.float16],
        "is_bf16_supported": lambda *_: True,
        # random numbers
        "manual_seed": seed,
        "manual_seed_all": seed,
        "seed_all": nothing,
        "initial_seed": generator.initial_seed,
        "get_rng_state": lambda *_: generator.get_state(),
        "set_rng_state": lambda state, *_: generator.set_state(state),
        "get_rng_state_all": lambda: [generator.get_state()],
        "set_rng_state_all": lambda states: generator.set_state(states[0]),
        # memory
        "memory_allocated": lambda *_: native.allocated_and_peak()[0],
        "memory_reserved": lambda *_: native.allocated_and_peak()[0],
        "max_memory_allocated": lambda *_: native.allocated_and_peak()[1],
        "max_memory_reserved": lambda *_: native.allocated_and_peak()[1],
        "reset_peak_memory_stats": lambda *_: native.reset_peak(),
        "mem_get_info": lambda *_: (2**34, 2**35),
        "empty_cache": nothing,
        "ipc_collect": nothing,
        # streams
        "Stream": _Stream,
        "Event": _Stream,
        "stream": nullcontext,
        "current_stream": lambda *_: _Stream(),
        "default_stream": lambda *_: _Stream(),
    }
    module = types.ModuleType(f"torch.{NAME}")
    vars(module).update(members)
    return module
