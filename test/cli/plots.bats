#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bench/plot, and the plots that doc/PERFORMANCE.md shows.
load helper

ROOT="$BATS_TEST_DIRNAME/../.."
PLOT="$ROOT/bench/plot"

# figures CHART: a file of figures with this chart.
figures() {
    cat >figures.json <<END
{"name": "name", "title": "a < b & c", "measured": "today", "machine": "this", "command": "none", "charts": [$1]}
END
}

@test "plots: those of the documents are drawn from bench/figures" {
    mkdir drawn
    "$PLOT" "$ROOT"/bench/figures/*.json --into drawn
    diff -r drawn "$ROOT/doc/plots"
    for plot in drawn/*; do
        grep -F "(plots/$(basename "$plot"))" "$ROOT/doc/PERFORMANCE.md"
    done
}

@test "plots: well-formed, and a bar is as long as its figure says" {
    python3 - "$ROOT" <<'END'
import glob, json, os, sys
import xml.etree.ElementTree as tree

root, space = sys.argv[1], "{http://www.w3.org/2000/svg}"
files = sorted(glob.glob(os.path.join(root, "bench/figures/*.json")))
assert len(files) >= 5, files
for path in files:
    with open(path, encoding="utf-8") as file:
        charts = json.load(file)["charts"]
    name = os.path.splitext(os.path.basename(path))[0]
    svg = tree.parse(os.path.join(root, "doc/plots", name + ".svg")).getroot()
    assert svg.tag == space + "svg"
    bars = [rect for rect in svg.iter(space + "rect") if rect.get("x")]
    assert len(bars) == sum(len(chart["bars"]) for chart in charts), name
    for chart in charts:
        mine, bars = bars[:len(chart["bars"])], bars[len(chart["bars"]):]
        most = max([value for _, _, value in chart["bars"]] + [chart.get("line", 0)])
        for rect, (_, who, value) in zip(mine, chart["bars"]):
            assert abs(float(rect.get("width")) - 350 * value / most) < 0.1, (name, who)
            assert (rect.get("fill") == "#0b6e4f") == who.startswith("mortise"), who
END
}

@test "plots: names are text, whatever they contain" {
    figures '{"title": "<b>", "unit": "ms", "better": "less", "bars": [["", "mortise & <more>", 1]]}'
    "$PLOT" figures.json
    python3 -c 'import xml.etree.ElementTree as t
texts = [e.text for e in t.parse("figures.svg").iter("{http://www.w3.org/2000/svg}text")]
assert {"a < b & c", "<b>", "mortise & <more>"} <= set(texts), texts'
}

@test "plots: no chart without bars, figures, or which way is better" {
    for chart in '{"title": "x", "unit": "ms", "better": "less", "bars": []}' \
        '{"title": "x", "unit": "ms", "better": "less", "bars": [["", "mortise", null]]}' \
        '{"title": "x", "unit": "ms", "better": "less", "bars": [["", "mortise", NaN]]}' \
        '{"title": "x", "unit": "ms", "bars": [["", "mortise", 1]]}' ''; do
        figures "$chart"
        run -1 "$PLOT" figures.json
        [[ "$output" == "bench/plot: "* ]]
        [ ! -e figures.svg ]
    done
}

@test "plots: --keep leaves a benchmark's rounds out, and draws the same" {
    figures '{"title": "x", "unit": "ms", "better": "less", "bars": [["", "mortise", 1]]}'
    sed -i 's/{"name"/{"rounds": [1, 2], "name"/' figures.json
    mkdir kept drawn
    "$PLOT" figures.json --keep kept
    run ! grep rounds kept/name.json
    "$PLOT" kept/name.json --into drawn
    cmp figures.svg drawn/name.svg
}
