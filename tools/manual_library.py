# SPDX-License-Identifier: Apache-2.0
"""Makes the pages of section 3 of include/mortise.h, man/library.pages and man/examples.

Each page has one form: NAME, SYNOPSIS, DESCRIPTION, RETURN VALUE, ERRORS, NOTES, EXAMPLE, SEE ALSO.
The words are those of the header's comments. A name of the header is marked, with its page if that
is another one; the short name of an error is written in full.
"""

import os
import re
import textwrap

import manual_header

WIDTH = 66  # of code in a page, so that a terminal of 80 columns shows it unbroken


def key_pages(text):
    """[(page, about, [names])] of man/library.pages."""
    found = []
    for line in re.sub(r"(?m)^#.*\n", "", text).splitlines():
        if match := re.match(r"(\w+): (.*)", line):
            found.append((match[1], match[2], []))
        elif line.strip():
            found[-1][2].extend(line.split())
    return found


def faults_of_names(header, text):
    """Names of the header that are on no page or on two, and functions without a contract."""
    _, groups = manual_header.groups(header)
    for group in groups:
        if not group.contract and not re.match("The same|1 if|Whether", group.text):
            yield from (f"include/mortise.h: no line of the comment of {d.name} begins with \"0;\" and "
                        "its errors" for d in group.functions() if re.match(
                            r"MORTISE_API int mortise_", d.code))
    declared = [d.name for group in groups for d in group.declarations]
    listed = [name for _, _, names in key_pages(text) for name in names]
    yield from (f"man/library.pages: {name} of include/mortise.h is on no page"
                for name in declared if name not in listed)
    yield from (f"man/library.pages: {name} is not in include/mortise.h"
                for name in sorted(set(listed)) if name not in declared)
    yield from (f"man/library.pages: {name} is on {listed.count(name)} pages"
                for name in sorted(set(listed)) if listed.count(name) > 1)


def escaped(text):
    return re.sub(r"(?m)^([.'])", r"\\&\1", text.replace("\\", "\\e"))


def code(text):
    return escaped(text).replace("-", "\\-")


class Library:
    """All that the pages need to know of each other."""

    def __init__(self, header, pages, map_text, date, version, example):
        self.overview, self.groups = manual_header.groups(header)
        self.pages = key_pages(pages)
        self.page_of = {name: page for page, _, names in self.pages for name in names}
        for group in self.groups:  # the members of an enumeration are where it is
            for declaration in group.declarations:
                if declaration.kind in ("enum", "flags"):
                    for member, _ in declaration.members():
                        self.page_of.setdefault(member.split()[0], self.page_of[declaration.name])
        self.errors = re.findall(r'X\((\w+), \w+, (\w+), "(.*?)"\)', header)
        self.numbers = dict(re.findall(r"MORTISE_(\w+) = (-?\d+)", header))
        self.since = {name: release for release, names in re.findall(
            r"MORTISE_([\d.]+) \{(.*?)\}", map_text, re.S) for name in re.findall(r"mortise_\w+", names)}
        self.date, self.version, self.example = date, version, example

    # ------------------------------------------------------------------------------- words

    def marked(self, text, page):
        """Prose with names marked: a function of another page as name(3)."""
        def mark(match):
            name = match[0]
            if name[0] == "`":
                return f"\\fI{name[1:-1]}\\fR"
            if name[0] == '"':
                return name
            if re.fullmatch(r"E[A-Z]+", name):
                return f"\\fBMORTISE_{name}\\fR"
            if name.startswith("MORTISE_") or self.page_of.get(name, page) == page:
                return f"\\fB{name}\\fR" + ("()" if self.is_function(name) else "")
            return f"\\fB{name}\\fR(3)"
        short = "|".join(sorted((error for error, _, _ in self.errors), key=len, reverse=True))
        text = re.sub(r"\\", r"\\e", text)
        text = re.sub(r"(?<![\w`])-(?=\d)", r"\\-", text)
        text = re.sub(rf"`[^`]+`|\"\w+\"|\bmortise_\w+\b|\bMORTISE_\w+\b|\b(?:{short})\b", mark, text)
        return re.sub(r"(?m)^([.'])", r"\\&\1", text)

    def is_function(self, name):
        return any(d.name == name for g in self.groups for d in g.functions())

    def prose(self, text, page):
        """A comment as roff: paragraphs, and lists of a term, spaces and what it means."""
        lines, out, item = text.splitlines(), [], False
        for line in lines:
            term = re.match(r" {2,3}(\S.*?) {2,}(\S.*)$", line)
            if term:
                out += [".TP", "\\fB" + code(term[1]) + "\\fR", self.marked(term[2], page)]
                item = True
            elif item and re.match(r" {4,}\S", line):
                out.append(self.marked(line.strip(), page))
            elif not line.strip():
                out.append(".PP")
                item = False
            else:
                if item:
                    out.append(".PP")
                item = False
                out.append(self.marked(line.strip(), page))
        return out

    # ---------------------------------------------------------------------------- synopsis

    @staticmethod
    def prototype(declaration):
        """A function or a callback in lines, its parameters in italics."""
        head, parameters = declaration.parameters()
        room = WIDTH - len(head) - 1
        lines, line = [], []
        for number, parameter in enumerate(parameters):
            end = ", " if number < len(parameters) - 1 else ");"
            line.append(parameter + end)
            following = parameters[number + 1] if end == ", " else ""
            if not following or len("".join(line)) + len(following) + 2 > max(room, 30):
                lines.append("".join(line).rstrip())
                line = []
        def marks(text):
            return re.sub(r"(\w+)((?:\[\w+\])?(?:,|\);))",
                          lambda m: f"\\fI{m[1]}\\fB{m[2]}" if m[1] != "void" else m[0], text)
        indent = " " * (len(head) + 1)
        if len(head) > 30 and len(lines) > 1 and max(map(len, lines)) + len(indent) > WIDTH + 6:
            indent = " " * 8
            lines.insert(0, "")
        first = f"\\fB{head}({marks(lines[0])}\\fR"
        return [first] + [f"\\fB{indent}{marks(line)}\\fR" for line in lines[1:]]

    def synopsis(self, declarations):
        out = [".nf", "\\fB#include <mortise.h>\\fR"]
        last = None
        for d in declarations:
            out += [""] if d.kind != last or d.kind in ("struct", "enum", "flags") else []
            last = d.kind
            if d.kind in ("function", "callback"):
                out += self.prototype(d)
            elif d.kind == "macro":
                out.append(f"\\fB{code(d.code if '(X)' not in d.code else '#define ' + d.name + '(X)')}\\fR")
            elif d.kind == "struct" and not d.members():
                out.append(f"\\fB{d.code}\\fR")
            else:
                out += self.body(d)
        return [line.replace("-", "\\-") if "\\-" not in line else line
                for line in out[:2]] + out[2:] + [".fi", ".PP",
                "\\fBcc \\fIprogram.c\\fB $(pkg\\-config \\-\\-cflags \\-\\-libs mortise)\\fR"]

    @staticmethod
    def body(d):
        """A structure or an enumeration with its members and without its comments."""
        head = re.match(r"[^{]*", d.code)[0].strip()
        tail = d.code.rpartition("}")[2]
        if d.name == "mortise_error":
            return ["\\fBenum mortise_error;\\fR"]
        mark = "," if d.kind in ("enum", "flags") else ";"
        return [f"\\fB{head} {{", *(f"    {code(member)}{mark}" for member, _ in d.members()),
                f"}}{tail}\\fR"]

    # ------------------------------------------------------------------------- description

    def description(self, groups, page):
        out = []
        for group, declarations in groups:
            functions = [d for d in declarations if d.kind == "function"]
            text = self.prose(group.text, page)
            members = [line for d in declarations for line in self.member_list(d, page)]
            if not text and not members:
                continue
            named = functions or declarations
            title = ", ".join(d.name + ("()" if d.kind == "function" else "") for d in named)
            if named[0].kind == "flags":
                title = "Flags"
            out += [f".SS {title}", *text, *members]
        return out

    def member_list(self, d, page):
        if d.name == "mortise_error":
            return [".TP\n\\fBMORTISE_OK\\fR (0)\nNo error.", *self.error_list(
                [error for error, _, _ in self.errors], numbers=True)]
        out = []
        for member, comment in d.members() if d.kind in ("struct", "enum", "flags") else ():
            if comment:
                out += [".TP", f"\\fB{code(member)}\\fR", *self.prose(
                    re.sub(r"\n\n", "\n", comment), page)]
        return out

    # ------------------------------------------------------------------ return value, errors

    def contract_of(self, group):
        """The contract of a group, or of the one above it that it is the same as."""
        at = self.groups.index(group)
        while at > 0 and not self.groups[at].contract and self.groups[at].text.startswith("The same"):
            at -= 1
        return self.groups[at].contract

    def returns(self, groups, page):
        found = {}
        for group, declarations in groups:
            for d in declarations:
                if d.kind == "function":
                    found.setdefault(self.returned(group, d, page), []).append(d)
        return [line for text, functions in found.items() for line in (".TP", heads(functions), text)]

    def returned(self, group, d, page):
        contract = self.contract_of(group)
        head = d.parameters()[0]
        if head.startswith("void "):
            return "Nothing."
        if contract.startswith("Negative"):
            what = "Milliseconds" if d.name.endswith("_ms") else "The descriptor"
            return what + ", or a negative error: see ERRORS."
        if contract.startswith("Errors as"):
            contract = "0"
            made = re.search(r"\*\*(\w+)", d.code)
            contract = f"0 and *{made[1]}" if made else "0"
        if contract:
            success = re.match(r"0(?: and (?:\*\w+|both handles))?", contract)[0]
            return self.marked(success + ", or a negative error: see ERRORS.", page)
        first = re.match(r"(?s).*?[.](?=\s|$)", re.sub(r"\s+", " ", group.text))
        return self.marked(first[0] if first else "", page)

    def error_paragraphs(self, groups, page):
        """The contracts' words on errors, and the texts of all errors that they name."""
        out, named, found = [], [], {}
        for group, declarations in groups:
            functions = [d for d in declarations if d.kind == "function"]
            contract = self.contract_of(group)
            rest = re.sub(r"^0(?: and (?:\*\w+|both handles))?[;,.]? ?(?:or )?", "", contract)
            rest = re.sub(r"^Negative: ", "", rest).strip()
            rest = re.sub(r"^(?:Errors|else) as ", "As ", rest)
            text = contract + (group.text if group.text.startswith("The same") else "")
            named += [error for error, _, _ in self.errors
                      if functions and re.search(rf"\b(?:MORTISE_)?{error}\b", text)]
            if functions and rest:
                found.setdefault(rest, []).extend(functions)
        for rest, functions in found.items():
            out += [".TP", heads(functions), self.marked(rest[0].upper() + rest[1:], page)]
        if not named:
            return ["None."]
        out += [".PP", "Their meaning, and the kind of each (\\fBmortise_error_kind\\fR):"
                if page == "mortise_error_text" else
                "Their meaning, and the kind of each; see \\fBmortise_error_text\\fR(3):"]
        return out + self.error_list(list(dict.fromkeys(named)))

    def error_list(self, named, numbers=False):
        out = []
        for error, kind, text in sorted(self.errors, key=lambda e: -int(self.numbers[e[0]])):
            if error in named:
                number = f" ({self.numbers[error]})".replace("-", "\\-") if numbers else ""
                out += [".TP", f"\\fBMORTISE_{error}\\fR{number}",
                        f"{text[0].upper()}{text[1:]}. \\fBMORTISE_KIND_{kind}\\fR."]
        return out

    # --------------------------------------------------------------------------- the rest

    def waits(self, group):
        """Whether a callback may not call it, by its contract or one that this refers to."""
        contract = self.contract_of(group)
        if re.search(r"EDEADLOCK\b[^;.]*\bin(?:side)?\s+a\s+(?:client's\s+)?callback", contract):
            return True
        named = re.findall(r"(?:\bas|\bwhat)\s+(mortise_\w+)(?:\s+and\s+(mortise_\w+))?", contract)
        return any(other is not group and any(d.name in pair for pair in named)
                   and self.waits(other) for other in self.groups for d in other.functions())

    def notes(self, groups, page):
        functions = [(g, d) for g, declarations in groups for d in declarations if d.kind == "function"]
        blocking = [d.name for g, d in functions if self.waits(g)]
        out = ["Threads: any thread may call these functions, and none of them in a signal handler;",
               "\\fBmortise\\fR(3) has the rules of threads, callbacks and forks."]
        if page == "mortise":
            out = out[:1]
            out[0] = out[0].rstrip(";") + "."
        if blocking:
            out.append("These answer \\fBMORTISE_EDEADLOCK\\fR inside a callback, because they may wait:"
                       if len(blocking) > 1 else
                       "This one answers \\fBMORTISE_EDEADLOCK\\fR inside a callback, because it may wait:")
            out.append(", ".join(f"\\fB{name}\\fR()" for name in blocking) + ".")
        releases = {}
        for _, d in functions:
            if d.name in self.since and self.since[d.name] != min(self.since.values()):
                releases.setdefault(self.since[d.name], []).append(d.name)
        for release, names in sorted(releases.items()):
            out += [".PP", f"Since {release}: " + ", ".join(f"\\fB{n}\\fR()" for n in names) + "."]
        sources = dict.fromkeys(re.sub(r"\s+", " ", g.source).strip() for g, _ in groups if g.source)
        if sources:
            out += [".PP", "Sources:"]
            out += [self.marked(s, page) for s in sources]
        return out

    def see_also(self, text, page):
        named = {self.page_of[n] for n in re.findall(r"\b(?:mortise|MORTISE)_\w+", text)
                 if n in self.page_of} | {"mortise"}
        references = [f".BR {name} (3)," for name in sorted(named - {page})]
        return references + [".BR mortise\\-stores (7)"]

    def page(self, name, about, names):
        groups = [(g, [d for d in g.declarations if d.name in names]) for g in self.groups]
        groups = [(g, declarations) for g, declarations in groups if declarations]
        order = {"struct": 1, "enum": 1, "flags": 1, "macro": 0, "callback": 1, "function": 2}
        declarations = sorted((d for _, ds in groups for d in ds), key=lambda d: order[d.kind])
        described = sorted(groups, key=lambda g: 0 if g[0].functions() else 1)
        words = [d.name for d in declarations if d.kind == "function"]
        words += [d.name for d in declarations if d.name.startswith("mortise") and d.name not in words]
        words = [name] + [word for word in words if word != name]
        overview = self.prose(self.overview.partition("\n")[2], name) if name == "mortise" else []
        body = [".SH DESCRIPTION", *overview, *self.description(described, name),
                ".SH RETURN VALUE", *self.returns(groups, name),
                ".SH ERRORS", *self.error_paragraphs(groups, name),
                ".SH NOTES", *self.notes(groups, name)]
        body = cleaned(body)
        example, output = self.example(name)
        shown = [".PP", "It prints:", ".PP", '.\\" example: output', ".EX", code(output.strip("\n")),
                 ".EE"] if output else []
        text = "\n".join([
            f'.TH {name.upper()} 3 "{self.date}" "mortise {self.version}" "Library Functions"',
            ".nh", ".ad l", ".SH NAME", ", ".join(words) + f" \\- {about}",
            ".SH SYNOPSIS", *self.synopsis(declarations), *body,
            ".SH EXAMPLE", ".EX", code(example.strip("\n")), ".EE", *shown,
            ".SH SEE ALSO", *self.see_also("\n".join(body) + example, name)]) + "\n"
        return text


def heads(functions):
    return ", ".join(f"\\fB{d.name}\\fR()" for d in functions)


def cleaned(lines):
    """Roff without empty lines and without paragraphs that nothing follows or precedes."""
    lines = [line for line in lines if line.strip()]
    around = zip([".SH"] + lines, lines, lines[1:] + [".SH"])
    return [line for before, line, behind in around if line != ".PP"
            or not behind.startswith((".PP", ".SS", ".SH", ".TP")) and not before.startswith(".S")]


def example_of(path):
    """A program without the comments above it, and the output that the second of them shows."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    output = re.search(r"\A.*\n/\*(?:(?!\*/).)*?\bprints:\n(.*?) \*/\n", text, re.S)
    return (re.sub(r"\A(?:/\*.*?\*/\n)+", "", text, flags=re.S),
            re.sub(r"(?m)^ \* ?", "", output[1]) if output else "")


def make(root, date):
    """{file name: text} of all pages."""
    def read(*path):
        with open(os.path.join(root, *path), encoding="utf-8") as file:
            return file.read()
    header = read("include", "mortise.h")
    version = re.search(r'MORTISE_VERSION "(.*?)"', header)[1]
    library = Library(header, read("man", "library.pages"), read("src", "mortise.map"), date, version,
                      lambda name: example_of(os.path.join(root, "man", "examples", name + ".c")))
    return {f"{name}.3": library.page(name, about, names) for name, about, names in library.pages}
