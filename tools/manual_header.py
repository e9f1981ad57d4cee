# SPDX-License-Identifier: Apache-2.0
"""Reads include/mortise.h: what it declares, and the comment that each declaration has.

A comment at the start of a line and the declarations right below it are one Group. In a comment the
paragraph that begins with "0;", "0 and", "0:", "0,", "Negative:" or "Errors as" at the start of a
line is the contract: what the function returns. "Source:" begins what is named for credit.
"""

import re

CONTRACT = re.compile(r"^(?=0[;:,.]|0 and\b|Negative: |Errors as )", re.M)


class Declaration:
    """One function, type, macro or enumeration; `name` is its key."""

    def __init__(self, text):
        self.text = text.strip()
        self.code = re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", self.text, flags=re.S)).strip()
        self.kind, self.name = self.classify()

    def classify(self):
        code = self.code
        if match := re.match(r"#define (\w+)", code):
            return "macro", match[1]
        if match := re.match(r"MORTISE_API .*?\b(mortise_\w+)\(", code):
            return "function", match[1]
        if match := re.match(r"typedef .*\(\*(\w+)\)\(", code):
            return "callback", match[1]
        if match := re.match(r"typedef (struct|enum)\b.*?(\w+);$", code):
            return match[1], match[2]
        if match := re.match(r"enum (\w+)", code):
            return "enum", match[1]
        if match := re.match(r"enum \{ (\w+)", code):
            return "flags", match[1]
        raise ValueError(f"no declaration that tools/header.py knows: {code}")

    def members(self):
        """(member, comment) of a structure or an enumeration, in order."""
        body = re.search(r"\{(.*)\}", self.text, re.S)
        end = ";" if self.kind == "struct" else ","
        found, before = [], ""
        for match in re.finditer(rf"(\n[ \t]*)?/\*(.*?)\*/|([^\s/][^{end}/]*)(?:{end}|$)",
                                 body[1] if body else "", re.S):
            if match[3]:
                found.append([re.sub(r"\s+", " ", match[3]).strip(), before])
                before = ""
            elif match[1] is None and found and not before:
                found[-1][1] += uncommented(match[2])
            else:
                before += uncommented(match[2])
        return found

    def parameters(self):
        """Of a function or callback: (what stands before the parenthesis, the parameters)."""
        head, _, rest = self.code.removeprefix("MORTISE_API ").rpartition("(")
        return head, [p.strip() for p in rest.rstrip(");").split(",")]


class Group:
    """A comment and what it is about."""

    def __init__(self, comment, declarations):
        self.declarations = declarations
        text, _, self.source = comment.partition("Source: ")
        parts = CONTRACT.split(text, maxsplit=1)
        self.text, self.contract = parts[0].strip(), (parts[1] if len(parts) > 1 else "").strip()

    def functions(self):
        return [d for d in self.declarations if d.kind == "function"]


def uncommented(comment):
    """The words of a comment without its stars, its lines as they are."""
    starred = re.search(r"^[ \t]*\*", comment, re.M)
    mark = r"^[ \t]*\*? ?" if starred else r"^[ \t]*"
    return "\n".join(re.sub(mark, "", line).rstrip() for line in comment.splitlines()).strip("\n")


def declarations_in(code):
    """Splits code into declarations: by the semicolon, or by the line of a macro."""
    depth, begin, at = 0, 0, 0
    while at < len(code):
        if code.startswith("/*", at):
            at = code.index("*/", at) + 2
            continue
        if code.startswith("#", at) and not code[begin:at].strip():
            end = re.compile(r"(?<!\\)\n").search(code + "\n", at).start()
            yield Declaration(code[at:end])
            begin = at = end
            continue
        depth += {"{": 1, "}": -1}.get(code[at], 0)
        if code[at] == ";" and depth == 0:
            yield Declaration(code[begin:at + 1])
            begin = at + 1
        at += 1


def parts_of(code):
    """Code, cut at the empty lines that stand outside of braces."""
    part = ""
    for line in code.splitlines(keepends=True):
        if not line.strip() and part.count("{") == part.count("}"):
            yield part
            part = ""
        part += line
    yield part


def groups(header):
    """(the comment of the file, the groups in order)."""
    head, _, rest = header.partition("#ifndef MORTISE_H\n")
    overview = uncommented(re.findall(r"/\*(.*?)\*/", head, re.S)[-1])
    rest = rest[rest.index("#define MORTISE_VERSION"):]
    rest = rest[:rest.rindex("#ifdef __cplusplus")]
    rest = re.sub(r"(?m)^/\* -+ .*\*/$", "", rest)
    found = []
    for match in re.finditer(r"(?:^/\*(?P<comment>(?:(?!\*/)[\s\S])*)\*/\n)?"
                             r"(?P<code>(?:(?!/\*).*\n)*)", rest, re.M):
        comment = uncommented(match["comment"] or "")
        for part in parts_of(match["code"]):
            declared = list(declarations_in(part))
            if declared:
                found.append(Group(comment, declared))
            comment = ""
    return overview, found
