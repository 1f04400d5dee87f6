"""What is seen of a loaded product, second by second."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from bench.http.parts import Part
from bench.plot import Curve

MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Look:
    """One look: how large everything is."""

    at: float
    memory: dict[str, float]
    file: float
    """The database with its log and its locks (MB)."""
    log: float
    """How much of that is the write-ahead log (MB)."""
    what: str = ""


@dataclass(slots=True)
class Looks:
    """All looks, and every answer between them."""

    rates: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    watched: list[int] = field(default_factory=list)
    count: int = 0
    _began: float = field(default_factory=perf_counter)
    _seen: list[Look] = field(default_factory=list)
    _answers: dict[int, list[float]] = field(default_factory=dict)

    def answered(self, seconds: float) -> None:
        """Keeps how long an answer took, under the second in which it came."""
        self.count += 1
        self._answers.setdefault(int(perf_counter() - self._began), []).append(seconds * 1000)

    def take(self, told: dict[str, Part], folder: Path, what: str = "") -> Look:
        """Looks at the processes and the files."""
        memory = {name: part.resident() for name, part in told.items()}
        sizes = {path.name: path.stat().st_size / MB for path in folder.glob("tsuzuki.db*") if path.is_file()}
        log = sizes.get("tsuzuki.db-wal", 0.0)
        look = Look(perf_counter() - self._began, memory, sum(sizes.values()), log, what)
        self._seen.append(look)
        return look

    def percentiles(self) -> tuple[float, float, float]:
        """Gives p50, p99 and the worst of all answers (ms)."""
        every = [took for answers in self._answers.values() for took in answers]
        return median(every), quantiles(every, n=100)[98], max(every)

    def latencies(self) -> list[Curve]:
        """Draws p50 and p99 of each second."""
        seconds = [(at, answers) for at, answers in sorted(self._answers.items()) if len(answers) > 1]
        return [
            Curve("p50", [(at, median(answers)) for at, answers in seconds]),
            Curve("p99", [(at, quantiles(answers, n=100)[98]) for at, answers in seconds]),
        ]

    def memory(self) -> list[Curve]:
        """Draws the memory of each process."""
        names: Sequence[str] = list(self._seen[0].memory)
        return [Curve(name, [(look.at, look.memory[name]) for look in self._seen]) for name in names]

    def files(self) -> list[Curve]:
        """Draws the size of the store."""
        return [
            Curve("database and its log", [(look.at, look.file) for look in self._seen]),
            Curve("its write-ahead log", [(look.at, look.log) for look in self._seen]),
        ]


def parts(gateway: Part, workers: Sequence[Part]) -> dict[str, Part]:
    """Names the processes."""
    return {"gateway": gateway} | {f"worker {number}": part for number, part in enumerate(workers, 1)}
