# The environment of the multi-GPU runs.
#
#     docker build -t evenkeel .                                           # ZeRO with DeepSpeed
#     docker build -t evenkeel --build-arg EXTRAS=deepspeed,vllm .         # and rollouts with vLLM
#     docker run --rm --init --gpus all --ipc=host -v evenkeel-cache:/cache -v evenkeel-runs:/opt/evenkeel/runs \
#         evenkeel --config_file configs/accelerate/zero3.yaml -m evenkeel train RUN
#
# Arguments are those of `accelerate launch`. --ipc=host: NCCL and the data loaders need more shared memory than Docker gives.
# W&B: add -e WANDB_API_KEY, or -e WANDB_MODE=offline. Keys come from the environment; none are written into the image.
# A folder of the host instead of a volume: add --user "$(id -u):$(id -g)"; the folders written to are open to every user.
#
# The base is a *devel* image because DeepSpeed compiles its operators on first use; they are kept in /cache. Any Debian 12 or
# Ubuntu 22.04 and later with Python 3.11 to 3.13 works as a base. Not verified: that the default tag exists, GPUs, vLLM.
ARG BASE_IMAGE=nvidia/cuda:13.0.2-devel-ubuntu24.04
FROM ${BASE_IMAGE}

# hadolint ignore=DL3008
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
        ca-certificates g++ git python3 python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*

# A user without rights.
RUN useradd --create-home --uid 10001 evenkeel \
    && mkdir --parents /cache /opt/evenkeel/runs \
    && chmod 1777 /cache /opt/evenkeel/runs

ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    HF_HOME=/cache/huggingface \
    TORCH_EXTENSIONS_DIR=/cache/torch_extensions \
    TRITON_CACHE_DIR=/cache/triton \
    TORCHINDUCTOR_CACHE_DIR=/cache/torchinductor \
    VLLM_CACHE_ROOT=/cache/vllm

# Dependencies first: this layer, the large one, is rebuilt when they change and not when the code does. The empty files are
# what an editable installation looks at; the code takes their place.
WORKDIR /opt/evenkeel
ARG EXTRAS=deepspeed
COPY pyproject.toml setup.py constraints.txt LICENSE ./
RUN mkdir --parents trainer/public rewards configs \
    && touch README.md trainer/__init__.py trainer/public/__init__.py rewards/__init__.py \
    && python3 -m venv /opt/venv \
    && python -m pip install --no-cache-dir --constraint constraints.txt --editable ".[${EXTRAS}]"
COPY . .

USER 10001
ENTRYPOINT ["accelerate", "launch"]
CMD ["--help"]
