# SPDX-License-Identifier: Apache-2.0
"""Another client's view of a server: SERVERS AUTH COMMAND PATH [PERMISSIONS SCHEME ID].

AUTH is scheme:data, or "-". Commands: acl (prints it, a line an entry), children, delete,
make (with parents), set (the ACL). A command that fails prints the exception's name and exits
with 1."""

import sys

from kazoo.client import KazooClient
from kazoo.security import ACL, Id

LETTERS = {"r": 1, "w": 2, "c": 4, "d": 8, "a": 16}


def entries(words):
    """ACL entries of triples of words; "-" for a right is none."""
    triples = zip(words[::3], words[1::3], words[2::3])
    return [ACL(sum(LETTERS.get(c, 0) for c in rights), Id(scheme, name))
            for rights, scheme, name in triples]


def run(client, command, path, words):
    if command == "acl":
        for entry in client.get_acls(path)[0]:
            rights = "".join(c for c, bit in LETTERS.items() if entry.perms & bit)
            print(rights, f"{entry.id.scheme}:{entry.id.id}")
    elif command == "children":
        print(*client.get_children(path), sep="\n")
    elif command == "delete":
        client.delete(path)
    elif command == "make":
        client.ensure_path(path)
        if words:
            client.set_acls(path, entries(words))
    elif command == "set":
        client.set_acls(path, entries(words))


def main():
    servers, auth, command, path, *words = sys.argv[1:]
    client = KazooClient(hosts=servers, timeout=10,
                         auth_data=[tuple(auth.split(":", 1))] if auth != "-" else None)
    client.start(timeout=20)
    try:
        run(client, command, path, words)
    except Exception as fault:
        print(type(fault).__name__)
        sys.exit(1)
    finally:
        client.stop()


main()
