# SPDX-License-Identifier: Apache-2.0
"""Makes HTML of the manual, by mandoc, and of the documents, by lowdown where it is installed.

A folder: index.html, man/NAME.SECTION.html for each page, and each document at its own path, found
by following links from README.md. Other files of the tree that a document links to are copied. A
name with its section, as mortise-run(1), links to that page.
"""

import html
import os
import re
import shutil
import subprocess

STYLE = """body { max-width: 50em; margin: 2em auto; padding: 0 1em; font: 16px/1.5 sans-serif; }
pre, code { font: 14px/1.4 monospace; background: #f4f4f4; }
pre { padding: .6em; overflow-x: auto; }
td, th { padding: .1em .6em; text-align: left; }
table.head, table.foot { width: 100%; color: #666; }
h1 { font-size: 1.3em; } h2 { font-size: 1.1em; }
dt { margin-top: .6em; } a.permalink { color: inherit; text-decoration: none; }
@media (prefers-color-scheme: dark) {
  body { background: #111; color: #ddd; } pre, code { background: #222; } a { color: #8bf; } }
"""
SECTIONS = {"1": "Commands", "3": "Library", "5": "Files and settings", "7": "Further subjects"}


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def whole(title, body, up):
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
            f'<link rel="stylesheet" href="{up}manual.css"/><title>{html.escape(title)}</title>'
            f'</head><body>\n<p><a href="{up}index.html">mortise</a></p>\n{body}\n</body></html>\n')


def linked(body, names):
    """The body of a page with links to the other pages that it names."""
    def link(match):
        page = names.get((match[1], match[2]))
        return f'<a href="{page}.html"><b>{match[1]}</b>({match[2]})</a>' if page else match[0]
    return re.sub(r"<b>([\w-]+)</b>\((\d)\)", link, body)


def make_pages(pages, names_of, directory):
    """Writes the pages; [(section, names, what the page is about, its file)]."""
    names = {(name, file[-1]): file for file, text in pages.items() for name in names_of(text)}
    found = []
    for file, text in pages.items():
        body = subprocess.run(["mandoc", "-Thtml", "-O", "fragment"], input=text, text=True,
                              capture_output=True, check=True).stdout
        stem, section = file.rsplit(".", 1)
        write(os.path.join(directory, "man", file + ".html"),
              whole(f"{stem}({section})", linked(body, names), "../"))
        about = re.search(r"^\.SH NAME\n.*? \\- (.*?)\n\.SH", text, re.M | re.S)[1]
        found.append((section, names_of(text), about.replace("\n", " ").replace("\\-", "-"), file))
    return found


def links_of(text):
    """Pictures too."""
    return re.findall(r'<(?:a href|img src)="([^"#:]+)(#[^"]*)?"', text)


def make_documents(root, directory):
    """Writes README.md and all documents that it leads to; [(path, title)]."""
    found, waiting = {}, ["README.md"]
    while waiting:
        path = waiting.pop(0)
        if path in found:
            continue
        body = subprocess.run(["lowdown", "-Thtml", os.path.join(root, path)], text=True,
                              capture_output=True, check=True).stdout
        for target, _ in dict.fromkeys(links_of(body)):
            other = os.path.normpath(os.path.join(os.path.dirname(path), html.unescape(target)))
            place = os.path.join(root, other)
            if other.endswith(".md") and os.path.isfile(place):
                waiting.append(other)
                body = re.sub(rf'href="{re.escape(target)}(#|")',
                              f'href="{target.removesuffix(".md")}.html\\1', body)
            elif os.path.isfile(place):
                os.makedirs(os.path.dirname(os.path.join(directory, other)), exist_ok=True)
                shutil.copyfile(place, os.path.join(directory, other))
            else:  # a folder
                body = re.sub(rf'<a href="{re.escape(target)}">(.*?)</a>', r"\1", body)
        title = re.search(r"<h1[^>]*>(.*?)</h1>", body, re.S)
        title = re.sub(r"<[^>]*>", "", title[1]) if title else path
        found[path] = html.unescape(title)
        write(os.path.join(directory, path.removesuffix(".md") + ".html"),
              whole(found[path], body, "../" * path.count("/")))
    return list(found.items())


def index(pages, documents):
    out = ["<h1>mortise</h1>"]
    for section, title in SECTIONS.items():
        out += [f"<h2>{title}</h2><ul>"]
        out += [f'<li><a href="man/{file}.html">{", ".join(names)}</a>({section}): '
                f"{html.escape(about)}</li>"
                for of, names, about, file in sorted(pages, key=lambda page: page[1])
                if of == section] + ["</ul>"]
    if documents:
        out += ["<h2>Documents</h2><ul>"]
        out += [f'<li><a href="{path.removesuffix(".md")}.html">{html.escape(title)}</a></li>'
                for path, title in documents] + ["</ul>"]
    return whole("mortise", "\n".join(out), "")


def make(root, pages, names_of, directory):
    shutil.rmtree(directory, ignore_errors=True)
    write(os.path.join(directory, "manual.css"), STYLE)
    made = make_pages(pages, names_of, directory)
    documents = make_documents(root, directory) if shutil.which("lowdown") else []
    write(os.path.join(directory, "index.html"), index(made, documents))


def faults(directory):
    """Links to files that are not there, and pages that the index does not name."""
    known, named = set(), set()
    for parent, _, files in os.walk(directory):
        for file in (f for f in files if f.endswith(".html")):
            path = os.path.join(parent, file)
            known.add(os.path.relpath(path, directory))
            with open(path, encoding="utf-8") as opened:
                text = opened.read()
            for target, _ in links_of(text):
                place = os.path.normpath(os.path.join(parent, html.unescape(target)))
                if not os.path.isfile(place):
                    yield f"{os.path.relpath(path, directory)}: links to {target}, which is not there"
                elif path == os.path.join(directory, "index.html"):
                    named.add(os.path.relpath(place, directory))
    yield from (f"index.html does not name {path}" for path in sorted(known - named - {"index.html"}))
