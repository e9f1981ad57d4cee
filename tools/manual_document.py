# SPDX-License-Identifier: Apache-2.0
"""Makes a page of the manual of a document in Markdown: headings, paragraphs, lists of one and two
levels, code blocks, code words and links to other documents. A block "sh flock" and the block behind
it are one comparison."""

import re


def code(text):
    return re.sub(r"(?m)^([.'])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-"))


def prose(text):
    """A paragraph with its code words in bold, and the names of linked documents."""
    parts = re.split(r"`([^`]+)`", re.sub(r"\[([^\]]+)\]\([^)]*\)", r"doc/\1", text))
    out = [part if number % 2 == 0 else f"\\fB{part.replace(chr(92), chr(92) + 'e')}\\fR"
           for number, part in enumerate(parts)]
    out = [part.replace("-", "\\-") if number % 2 else part.replace("\\", "\\e")
           for number, part in enumerate(out)]
    return re.sub(r"(?m)^([.'])", r"\\&\1", "".join(out))


def blocks(text):
    """(kind, argument, lines) of each block: heading, code, item, paragraph."""
    pattern = re.compile(r"^(#+) (.*)\n|^```(.*)\n((?:.*\n)*?)```\n|^( *)- (.*\n(?:\5  +(?!- ).*\n)*)"
                         r"|^((?!#|```| *- ).+\n)+", re.M)
    for match in pattern.finditer(text):
        if match[1]:
            yield "heading", len(match[1]), match[2]
        elif match[4] is not None:
            yield "code", match[3], match[4]
        elif match[6]:
            yield "item", len(match[5]), re.sub(r"\n +", "\n", match[6]).strip()
        else:
            yield "paragraph", 0, match[0].strip()


def page(text, date, version, name, about, see):
    out = [f'.TH {name.upper()} 7 "{date}" "mortise {version}" "Miscellaneous Information"', ".SH NAME",
           f"{name} \\- {about}".replace("-", "\\-", name.count("-")), ".SH DESCRIPTION"]
    deep, after_head = 0, True
    for kind, argument, content in blocks(text):
        if kind != "item":
            out += [".RE"] * deep
            deep = 0
        if kind == "heading" and argument > 1:
            out.append(f".SS {content}")
        elif kind == "code":
            out += [] if after_head else [".PP"]
            out += [".RS 4", f'.\\" example: {argument}', ".EX", code(content.rstrip("\n")), ".EE", ".RE"]
        elif kind == "item":
            level = argument // 2
            out += [".RE"] * max(deep - level, 0) + [".RS 4"] * max(level - deep, 0)
            deep = level
            out += [".IP \\(bu 2", prose(content)]
        elif kind == "paragraph":
            out += ([] if after_head else [".PP"]) + [prose(content)]
        after_head = kind == "heading"
    out += [".RE"] * deep + [".SH SEE ALSO"]
    out += [f".BR {reference}".replace("-", "\\-") + ("," if reference != see[-1] else "")
            for reference in see]
    return "\n".join(out) + "\n"
