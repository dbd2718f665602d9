"""A server that speaks the routes TRL's vLLM client calls, and generates with transformers.

Strict where vLLM is: weights are taken between start and finish alone, a route or a sampling parameter that is not
known is refused, and no completion is given from a prefix cache of older weights. What goes wrong between a trainer and
an engine can be switched on.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

Answer = tuple[int, dict[str, Any]]
NEUTRAL = {"repetition_penalty": (1.0,), "top_p": (1.0,), "top_k": (0, -1), "min_p": (0.0,), "logprobs": (0,)}
REQUIRED = {"model", "prompt", "return_token_ids", "return_tokens_as_token_ids", "n", "temperature", "max_tokens"}
OPTIONAL = {"seed", "ignore_eos"}


class TransformersServer:
    """The engine behind the routes.

    Attributes:
        stale: parameters whose updates are dropped: parts of their names; ``lm_head`` may be one of a tied model too.
        raw_logprobs: whether log-probabilities are reported before the temperature, as vLLM's default does.
        num_updates: finished weight updates.
        requests: every body that asked for completions.
    """

    def __init__(self, model: Path) -> None:
        self.name = str(model)
        self.requests: list[dict[str, Any]] = []
        self.start()

    def start(self, dtype: torch.dtype = torch.float32) -> None:
        """Load the model anew, with no fault switched on."""
        self.dtype = dtype
        self.model = AutoModelForCausalLM.from_pretrained(self.name, dtype=dtype).eval()
        self.head = self.model.lm_head.weight.detach().clone()  # as an engine that packs its weights holds it
        self.tied = self.model.config.tie_word_embeddings
        self.model.lm_head.register_forward_hook(lambda _, inputs, __: torch.nn.functional.linear(*inputs, self.head))
        self.generator = torch.Generator().manual_seed(0)
        self.stale: tuple[str, ...] = ()
        self.raw_logprobs = False
        self.num_updates = 0
        self._updating = self._cache_is_stale = False

    def get(self, route: str) -> Answer:
        info = {
            "weight_transfer_config": {"backend": "file"},
            "model_config": {
                "logprobs_mode": "raw_logprobs" if self.raw_logprobs else "processed_logprobs",
                "dtype": str(self.dtype),
            },
        }
        answers: dict[str, dict[str, Any]] = {
            "/health": {},
            "/v1/models": {"data": [{"id": self.name}]},
            "/server_info": {"vllm_config": info},
            "/get_world_size": {"world_size": 1},
        }
        return (200, answers[route]) if route in answers else (404, {"error": f"no route {route}"})

    def post(self, route: str, body: dict[str, Any]) -> Answer:
        if route in ("/update_weights", "/finish_weight_update") and not self._updating:
            return 409, {"error": "no weight update was started"}
        if route == "/v1/completions":
            return self._completions(body)
        if route == "/start_weight_update":
            self._updating = True
        elif route == "/update_weights":
            self._load(load_file(body["update_info"]["path"]))
        elif route == "/finish_weight_update":
            self._updating, self._cache_is_stale = False, True
            self.num_updates += 1
        elif route == "/reset_prefix_cache":
            self._cache_is_stale = False
        elif route != "/init_weight_transfer_engine":
            return 404, {"error": f"no route {route}"}
        return 200, {"success": True}

    @torch.no_grad()
    def _load(self, tensors: dict[str, torch.Tensor]) -> None:
        own = dict(self.model.named_parameters())
        assert tensors.keys() <= own.keys(), f"unknown parameters: {tensors.keys() - own.keys()}"
        head = tensors.get("model.embed_tokens.weight" if self.tied else "lm_head.weight")
        if head is not None and "lm_head" not in self.stale:
            self.head.copy_(head)
        for name, tensor in tensors.items():
            if not any(part in name for part in self.stale):
                own[name].copy_(tensor)

    def _completions(self, body: dict[str, Any]) -> Answer:
        given = set(body)
        if not given >= REQUIRED or not given <= REQUIRED | OPTIONAL | NEUTRAL.keys():
            return 400, {"error": f"unknown or missing: {given ^ REQUIRED}"}
        if any(body[name] not in usual for name, usual in NEUTRAL.items()):
            return 400, {"error": f"only neutral values of {[*NEUTRAL]}"}
        if self._cache_is_stale:
            return 409, {"error": "the prefix cache holds keys of older weights"}
        self.requests.append(body)
        seed = body.get("seed")
        generator = self.generator if seed is None else torch.Generator().manual_seed(seed)
        answers: dict[int, list[dict[str, Any]]] = {}
        prompts = body["prompt"]
        for length in sorted({len(prompt) for prompt in prompts}):  # without padding
            places = [place for place, prompt in enumerate(prompts) if len(prompt) == length]
            rows = self._samples([prompts[place] for place in places], body, generator)
            for place in places:
                answers[place] = [_choice(prompts[place], *next(rows)) for _ in range(body["n"])]
        return 200, {"choices": [choice for place in range(len(prompts)) for choice in answers[place]]}

    @torch.no_grad()
    def _samples(
        self, prompts: list[list[int]], body: dict[str, Any], generator: torch.Generator
    ) -> Iterator[tuple[list[int], list[float]]]:
        temperature, end = body["temperature"], self.model.config.eos_token_id
        ids, scores = torch.tensor(prompts).repeat_interleave(body["n"], 0), []
        for _ in range(body["max_tokens"]):
            logits = self.model(ids).logits[:, -1].float()
            scaled = (logits / temperature if temperature > 0 else logits).log_softmax(-1)
            chosen = torch.multinomial(scaled.exp(), 1, generator=generator) if temperature > 0 else scaled.argmax(-1)
            chosen = chosen.view(-1, 1)
            reported = logits.log_softmax(-1) if self.raw_logprobs else scaled
            ids, scores = torch.cat([ids, chosen], dim=1), [*scores, reported.gather(1, chosen)]
        rows = ids[:, len(prompts[0]) :].tolist()
        for tokens, logprobs in zip(rows, torch.cat(scores, dim=1).tolist(), strict=True):
            length = tokens.index(end) + 1 if end in tokens and not body.get("ignore_eos") else len(tokens)
            yield tokens[:length], logprobs[:length]

    @contextmanager
    def listening(self) -> Iterator[str]:
        """Serve on a free port; what is given is the address."""
        engine = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self, status: int, body: dict[str, Any]) -> None:
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def do_GET(self) -> None:
                self.answer(*engine.get(self.path.partition("?")[0]))

            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.answer(*engine.post(self.path, json.loads(content or b"{}")))

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()


def _choice(prompt: list[int], tokens: list[int], logprobs: list[float]) -> dict[str, Any]:
    names = [f"token_id:{token}" for token in tokens]
    scores = {"tokens": names, "token_logprobs": logprobs, "top_logprobs": [None] * len(tokens)}
    return {"prompt_token_ids": prompt, "token_ids": tokens, "logprobs": scores}
