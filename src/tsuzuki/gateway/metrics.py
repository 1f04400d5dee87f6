"""The route of metrics, in the text format of Prometheus; what the store knows is read when it is asked for."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Final

from fastapi import APIRouter
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString
from starlette.responses import Response

from tsuzuki.crew import ALIVE
from tsuzuki.gateway.answers import problems
from tsuzuki.gateway.session import InSession, Session
from tsuzuki.lifecycle import Status
from tsuzuki.overview import Figures
from tsuzuki.tallies import SECONDS, SIZES, Histogram, Tallies

router: Final = APIRouter(tags=["metrics"])

TEXT: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "Prometheus text.", "content": {"text/plain": {"schema": {"type": "string"}}}}
}
MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


@router.get(
    "/metrics",
    summary="Metrics for Prometheus",
    responses=TEXT | problems(),
    response_class=Response,
)
async def metrics(session: InSession) -> Response:
    """Gives figures of the store and of this gateway."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures(await session.overview.figures(), session))
    return Response(generate_latest(registry), media_type=None, headers={"Content-Type": MEDIA_TYPE})


class _Figures(Collector):
    """Figures of one moment, as Prometheus collects them."""

    def __init__(self, figures: Figures, session: Session) -> None:
        self._figures = figures
        self._streams = session.gateway.streams.open

    def collect(self) -> Iterable[Metric]:
        """Gives the gauges."""
        figures = self._figures
        yield _by_status("tsuzuki_runs_total", "Runs in the store, by status.", figures.runs)
        yield _by_status("tsuzuki_runs_today_total", "Runs that changed since midnight UTC, by status.", figures.today)
        yield from _plain(figures, self._streams)
        yield from _counted(figures.tallies)


def _counted(tallies: Tallies) -> Iterator[Metric]:
    """Gives what workers have counted; they tell it with their heartbeats, so it may be some seconds old."""
    yield CounterMetricFamily("tsuzuki_claims", "Claims of runs that workers began to execute.", tallies.claims)
    yield CounterMetricFamily("tsuzuki_retries", "Tries of steps and items after their first.", tallies.retries)
    yield _histogram("tsuzuki_run_duration_seconds", "How long runs that ended were executed.", tallies.runs, SECONDS)
    yield _histogram("tsuzuki_step_duration_seconds", "How long steps and items took.", tallies.steps, SECONDS)
    text = "How much went together into a write of the store: requests on SQLite, facts on NATS."
    yield _histogram("tsuzuki_write_batch_size", text, tallies.writes, SIZES)


def _histogram(name: str, text: str, histogram: Histogram, bounds: Sequence[float]) -> Metric:
    family = HistogramMetricFamily(name, text)
    so_far = list(accumulate(histogram.counts))
    names = [*map(floatToGoString, bounds), "+Inf"]
    family.add_metric([], list(zip(names, so_far, strict=True)), histogram.total)
    return family


def _plain(figures: Figures, streams: int) -> Iterator[Metric]:
    alive = sum(worker.state in ALIVE for worker in figures.workers)
    yield _gauge("tsuzuki_workers_alive_total", "Workers that live.", alive)
    yield _gauge("tsuzuki_dlq_messages_total", "Dead letters in the store.", figures.letters)
    yield _gauge("tsuzuki_queue_age_seconds", "How long the run that waits longest has waited.", figures.queue_age)
    yield _gauge("tsuzuki_gateway_streams", "Streams that are open at this gateway.", streams)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _by_status(name: str, text: str, counts: dict[str, int]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=["status"])
    for status in Status:
        family.add_metric([status.value], counts.get(status.value, 0))
    return family
