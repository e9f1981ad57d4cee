# SPDX-License-Identifier: Apache-2.0
"""Reads metrics as Prometheus does, and more strictly: metrics.py FILE

Each family has HELP and TYPE before its samples and stands in one piece, no sample is there
twice, names have units at their ends, histograms are cumulative and end with +Inf.
"""

import re
import sys

from prometheus_client.parser import text_string_to_metric_families

with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
assert text.endswith("\n")
families = list(text_string_to_metric_families(text))
names = [family.name for family in families]
assert len(set(names)) == len(names), "a family in two pieces"
seen = set()
for family in families:
    assert family.documentation.endswith("."), family.name
    assert family.type in ("gauge", "counter", "histogram"), family.name
    assert re.fullmatch(r"mortise_[a-z_]+", family.name)
    assert not re.search(r"_(ms|milliseconds|ns)(_|$)", family.name), family.name
    for sample in family.samples:
        key = (sample.name, tuple(sorted(sample.labels.items())))
        assert key not in seen, key
        seen.add(key)
        assert family.type != "counter" or sample.name.endswith("_total"), sample.name
    if family.type == "histogram":
        buckets = [s for s in family.samples if s.name.endswith("_bucket")]
        counts = [s.value for s in buckets]
        assert counts == sorted(counts) and buckets[-1].labels["le"] == "+Inf"
        assert [s.value for s in family.samples if s.name.endswith("_count")] == counts[-1:]
assert len(re.findall("^# HELP", text, re.M)) == len(re.findall("^# TYPE", text, re.M)) == len(names)
assert "mortise_wait_seconds" in names and "mortise_hold_seconds" in names
