"""The alert rules of docs/how-to/monitor.md are rules, on metrics that are told."""

import re

import promql_parser
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.acceptance.processes import ROOT
from tests.docs.snippets import File, parts_of
from tests.gateway.conftest import House

PAGE = ROOT / "docs/how-to/monitor.md"
SELECTED = re.compile(r"\b(tsuzuki_\w+)(?:\{(\w+)=\"(\w+)\"\})?")


async def test_every_alert_can_be_read_and_looks_at_what_is_told(small: House) -> None:
    files = {part.name: yaml.safe_load(part.text) for part in parts_of(PAGE) if isinstance(part, File)}
    assert files["prometheus.yml"]["rule_files"] == ["alerts.yml"]
    expressions = [rule["expr"] for group in files["alerts.yml"]["groups"] for rule in group["rules"]]
    told = (await small.client.get("/metrics")).text
    samples = {
        (sample.name, *pair)
        for family in text_string_to_metric_families(told)
        for sample in family.samples
        for pair in (("", ""), *sample.labels.items())
    }
    seen = set()
    for expression in expressions:
        promql_parser.parse(expression)
        selected = set(SELECTED.findall(expression))
        assert selected <= samples, expression
        seen |= {name for name, *_ in selected}
    assert len(expressions) == 10
    assert len(seen) >= 7
