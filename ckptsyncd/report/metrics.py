"""Prometheus: a collector that reads the newest snapshot when it is asked, and counts nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from ckptsyncd.report.latency import BOUNDS
from ckptsyncd.report.metric_reads import Seen
from ckptsyncd.report.metrics_table import METRICS, PREFIX, Metric
from ckptsyncd.report.probes import NAMES, Probes
from ckptsyncd.report.web import Answer, Pages

CONTENT_TYPE = CONTENT_TYPE_LATEST

Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily


class Metrics(Collector):
    """Turns what ``look`` sees into families of samples; ``page`` may be called by any thread."""

    def __init__(self, look: Callable[[], Seen]) -> None:
        """Have a registry of its own: nothing of other libraries is exposed."""
        self._look = look
        self._lock = threading.Lock()
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)

    def page(self) -> bytes:
        """Return everything in Prometheus' text format."""
        with self._lock:
            return generate_latest(self._registry)

    def describe(self) -> Iterator[Family]:
        """Yield the families without samples, so that registering looks at nothing."""
        for metric in METRICS:
            yield _family(metric)

    def collect(self) -> Iterator[Family]:
        """Yield every family with its samples of now."""
        seen = self._look()
        for metric in METRICS:
            family = _family(metric)
            if isinstance(family, HistogramMetricFamily):
                bounds = [*(str(bound) for bound in BOUNDS), "+Inf"]
                counts = accumulate(seen.latency.counts)
                family.add_metric([], list(zip(bounds, counts, strict=True)), seen.latency.sum)
            else:
                for labels, value in metric.read(seen):
                    family.add_metric(labels, value)
            yield family


def pages(look: Callable[[], Seen], probes: Probes) -> Pages:
    """Return what the web server serves: the metrics and the three probes."""
    metrics = Metrics(look)

    def probed(name: str) -> Callable[[], Answer]:
        def answer() -> Answer:
            verdict = probes.ask(name)
            assert verdict is not None  # noqa: S101 - the names are the probes' own
            return Answer.line(200 if verdict.is_good else 503, verdict.text)

        return answer

    scraped = {"/metrics": lambda: Answer(200, metrics.page(), CONTENT_TYPE)}
    return {**scraped, **{f"/{name}": probed(name) for name in NAMES}}


def _family(metric: Metric) -> Family:
    name, labels = PREFIX + metric.name, metric.labels or None
    if metric.kind == "counter":
        return CounterMetricFamily(name, metric.meaning, labels=labels)
    if metric.kind == "gauge":
        return GaugeMetricFamily(name, metric.meaning, labels=labels)
    return HistogramMetricFamily(name, metric.meaning, labels=labels)
