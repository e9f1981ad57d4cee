#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tools/pictures: a recorded session becomes SVG; and the pictures that README shows.
load helper

ROOT="$BATS_TEST_DIRNAME/../.."
PICTURES="$ROOT/tools/pictures"

# read_svg FILE: its lines of text, as a terminal would show them; fails if it is not well-formed.
read_svg() {
    python3 - "$1" <<'END'
import sys
import xml.etree.ElementTree as tree

svg = tree.parse(sys.argv[1]).getroot()
assert svg.tag == "{http://www.w3.org/2000/svg}svg"
rows = {}
for text in svg.iter("{http://www.w3.org/2000/svg}text"):
    column = round((float(text.get("x")) - 14) / 8.4)
    row = rows.setdefault(int(text.get("y")), "").ljust(column)
    rows[int(text.get("y"))] = row + text.text.replace("\xa0", " ")
print("\n".join(rows[y] for y in sorted(rows)))
END
}

@test "pictures: the screen of a session, with its colours" {
    "$PICTURES" record x.svg --columns 30 --say 'words <&>' -- \
        printf 'gone\rplain \033[31mred\033[0m <b> &amp;\n\n  \033[7mturned\033[0m \033[1;32mgreen\033[0m\n'
    [ "$(read_svg x.svg)" = $'$ words <&>\nplain red <b> &amp;\n  turned green' ]
    grep '#e06c75' x.svg | grep '>red<'
    grep '#98c379' x.svg | grep 'bold' | grep '>green<'
    grep '<rect x="30.8" ' x.svg | grep '#d8dee9' # behind "turned", two columns in
}

@test "pictures: a program that goes on is taken when its screen has the pattern" {
    "$PICTURES" record x.svg --until 'count 3' -- \
        sh -c 'echo $$ >pid; for i in 1 2 3; do printf "\033[Hcount %s" $i; sleep 0.5; done; sleep 600'
    [ "$(read_svg x.svg)" = "count 3" ]
    is_gone "$(cat pid)"
}

@test "pictures: a command that fails, or never shows the pattern, makes none" {
    run -1 "$PICTURES" record x.svg -- sh -c 'echo words; exit 3'
    [[ "$output" == *"ended with 3:"*words* ]]
    run -1 "$PICTURES" record x.svg --until never -- echo words
    [[ "$output" == *"ended with 0:"*words* ]]
    run -1 "$PICTURES" record x.svg -- ./missing
    [[ "$output" == *"ended with 127:"* ]]
    [ ! -e x.svg ]
}

@test "pictures: README's are well-formed and small, and show top as it is" {
    for picture in run.svg top.svg serve.webp; do
        [ "$(stat -c %s "$ROOT/doc/pictures/$picture")" -lt 60000 ]
        grep -F "(doc/pictures/$picture)" "$ROOT/README.md"
    done
    read_svg "$ROOT/doc/pictures/run.svg" >run
    [ "$(head -n 1 run)" = '$ make run' ]
    [[ "$(tail -n 1 run)" =~ ^without\ lock:\ [0-9]+\ of\ 4000\ updates\ lost\;\ with\ lock:\ 0\ of ]]
    "$PICTURES" --build "$(dirname "$MORTISE")" --into "$T" top
    read_svg "$ROOT/doc/pictures/top.svg" >shown
    read_svg top.svg >now
    grep '^deploy/web .* 2/2  *2 .*web1' now
    for line in 2 6; do # the columns, and the keys
        [ "$(sed -n "${line}s/  */ /gp" shown)" = "$(sed -n "${line}s/  */ /gp" now)" ]
    done
}
