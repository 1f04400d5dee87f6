"""The command that executes runs for others, until it is told to stop: worker."""

import asyncio
import gc
import os
import signal
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import click

from tsuzuki import logs
from tsuzuki.backends import Backend
from tsuzuki.cli.loading import Loaded, load_flows, load_resolver
from tsuzuki.cli.params import words_of
from tsuzuki.cli.store import Store, served_store_options, strict_option
from tsuzuki.cli.wheel_sync import Wheels, wheel_options
from tsuzuki.errors import BadUsage, RunInterrupted
from tsuzuki.flowset import FlowSet
from tsuzuki.interrupts import OwnSignals, hears_of_a_lost_terminal
from tsuzuki.leaving import run_to_the_end
from tsuzuki.options import tag
from tsuzuki.runner import Compile
from tsuzuki.supply import Goods, Supply
from tsuzuki.worker import Worker, logger


def checked_tags(ctx: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Reads --tags; refuses what can be no tag before anything is started."""
    del ctx, parameter
    words = tuple(words_of(texts))
    for word in words:
        tag("each of --tags", word)
    return words


@click.command(short_help="Execute runs, until told to stop.")
@click.option(
    "--tags",
    multiple=True,
    metavar="TAG,TAG",
    callback=checked_tags,
    help="Take runs of these tags [default: default].",
)
@click.option("--concurrency", default=10, show_default=True, type=click.IntRange(1), help="So many runs at a time.")
@click.option("--worker-id", metavar="NAME", help="How it is called; the default is different every time.")
@click.option("--flows", multiple=True, metavar="FILE.py|PACKAGE", help="Where its flows are; may be repeated.")
@click.option("--flow-resolver", metavar="MODULE:FUNCTION", help="A function that gives a flow by name, or a KeyError.")
@click.option("--allow-callables", multiple=True, metavar="GLOB", help="Modules that YAML flows may call: 'mypkg.*'.")
@click.option("--expose-env", multiple=True, metavar="NAME", help="Variables that YAML flows may read with $env.NAME.")
@wheel_options
@strict_option
@served_store_options
def worker(
    store: Store,
    *,
    wheels: Wheels,
    tags: tuple[str, ...],
    concurrency: int,
    worker_id: str | None,
    flows: tuple[str, ...],
    flow_resolver: str | None,
    allow_callables: tuple[str, ...],
    expose_env: tuple[str, ...],
) -> int:
    """Execute runs of the flows in these files and packages, and of YAML flows, until told to stop.

    SIGTERM or Ctrl-C once: it takes no more, finishes or hands back what is under way within the grace period,
    and leaves. Twice: it leaves at once; others go on with what it held. It logs JSON lines on stdout.

    \b
      tsuzuki worker --flows crawl.py --tags gpu,default --concurrency 4
      tsuzuki worker --flow-resolver myteam.flows:find --backend nats://nats:4222
      tsuzuki worker --wheel-sync --tags gpu
    """  # noqa: D301 - click reads \b as: keep these lines
    wheels.begin()
    resolver = load_resolver(flow_resolver) if flow_resolver else None

    def load() -> tuple[Goods, list[str]]:
        loaded = load_flows(flows, tolerant=wheels.on)
        known = FlowSet(loaded.flows, resolver)
        if not known and resolver is None and not allow_callables and not loaded.modules and not wheels.on:
            raise BadUsage(
                "this worker knows nothing to execute; "
                "say --flows FILE.py, --flow-resolver, --allow-callables or --wheel-sync"
            )
        return Goods(known, compiler(loaded, words_of(allow_callables), words_of(expose_env))), loaded.refused

    goods, _ = (Goods(FlowSet()), ()) if wheels.on else load()
    options = {"tags": words_of(tags) or None, "concurrency": concurrency, "name": worker_id}
    return int(run_to_the_end(_work(store, goods, partial(wheels.supply, load), options)))


def compiler(loaded: Loaded, allowed: list[str], exposed: Sequence[str] = ()) -> Compile:
    """Gives what compiles YAML flows here: they may call the tasks that were loaded, and what is allowed."""
    from tsuzuki import yamlflow  # noqa: PLC0415 - YAML is heavy, and other commands do not need it
    from tsuzuki.yamlflow.callables import registered_in  # noqa: PLC0415 - the same

    return yamlflow.Compiler(yamlflow.Callables(allowed, registered_in(loaded.modules)), exposed)


async def _work(
    store: Store, goods: Goods, supplied: Callable[[Backend, Any], Supply | None], options: dict[str, Any]
) -> int:
    async with store.open() as runs:
        supply = supplied(runs.backend, options["tags"])
        worker = Worker(runs.backend, goods.flows, workflows=goods.workflows, supply=supply, **options)
        logs.configure(logs.WORKER, worker_id=worker.id)
        async with worker:
            own = _heed_signals(worker)
            names = ", ".join(worker.stock.flows) or "none by name"
            logger.info("worker %s takes runs tagged %s; flows: %s", worker.id, ", ".join(worker.tags), names)
            gc.freeze()  # what is loaded by now stays: looking through it again and again took a tenth of short runs
            await worker.run()
            logger.info("worker %s leaves: what has not ended is handed back", worker.id)
            own.over()
    return 0


def _heed_signals(worker: Worker) -> OwnSignals:
    """Lets the first SIGTERM or SIGINT stop the worker in order, and the second at once; so does a lost terminal."""
    loop = asyncio.get_running_loop()

    def heed(number: int) -> None:
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(each)
            signal.signal(each, lambda *_: os._exit(RunInterrupted.exit_code))  # even while user code holds the loop
        # Said only now: whoever reads it and tells us again would not be heard before.
        logger.info("worker %s stops: %s; again leaves at once", worker.id, signal.Signals(number).name)
        worker.stop()

    own = OwnSignals()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, heed, each)
    if hears_of_a_lost_terminal():  # whoever has started it hears that too, and asks it to stop: that is not the second
        loop.add_signal_handler(signal.SIGHUP, worker.stop)
    return own


COMMANDS: Final = (worker,)
