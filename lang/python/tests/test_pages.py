# SPDX-License-Identifier: Apache-2.0
"""The pages for those who come from another library, line by line on a real server.

A page's blocks share their variables, as its reader would type them; the address of a server that
they name becomes that of the tests."""

import contextlib
import io
import os
import re
import unittest

import mortise
from place import PACKAGE

PAGES = {"zk": ("from-kazoo.md", "kazoo", "127.0.0.1:2181"),
         "redis": ("from-redis-py.md", "redis", "127.0.0.1:6379")}


class Page(unittest.TestCase):
    def test_every_block_runs(self):
        url = os.environ["MORTISE_TEST_URL"].split("?")[0]
        scheme, address = url.split("://")
        page, peer, written = PAGES[scheme]
        with open(os.path.join(PACKAGE, page), encoding="utf-8") as file:
            blocks = re.findall(r"^```python (\w+)\n(.*?)^```", file.read(), re.M | re.S)
        self.assertEqual([who for who, _ in blocks], [peer, "mortise"] * (len(blocks) // 2))
        self.assertGreater(len(blocks), 16)
        variables = {"__name__": "page"}
        for _, block in blocks:
            block = block.replace(written, address).replace(
                f"port={written.split(':')[1]}", f"port={address.split(':')[1]}")
            with self.subTest(block=block), contextlib.redirect_stdout(io.StringIO()) as said:
                exec(compile(block, page, "exec"), variables)  # pylint: disable=exec-used
                self.assertNotIn("too late", said.getvalue())
        self.assertTrue(variables["client"].closed)
        with mortise.Client(url) as client:
            left = [entry for entry in client.list() if not entry.name.startswith("test_")]
        self.assertEqual(left, [])
