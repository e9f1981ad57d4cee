# SPDX-License-Identifier: Apache-2.0
"""The package itself: what it says of mortise.h, how it finds the library, how it is built and
installed, and that its documents and types are true."""

import ast
import ctypes
import doctest
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import mortise
import mortise.aio
from mortise import _errors, _library
from place import LIMIT, PACKAGE

ROOT = os.path.dirname(os.path.dirname(PACKAGE))
LIBRARY = os.path.realpath(os.environ["MORTISE_LIBRARY"])
# Functions that Python does not need: it has others, or its own means.
UNUSED = {"acquire", "try_acquire", "acquire_for", "acquire_until", "release_all", "cancel",
          "operation_detail", "fd", "next_timeout_ms", "process", "election_campaign", "lock_name",
          "hold_owner", "hold_name", "lost_fd"}
STRUCTURES = {"mortise_hold": _library.HoldValue, "mortise_cell": _library.CellRecord,
              "mortise_leader": _library.LeaderRecord, "mortise_entry": _library.EntryRecord,
              "mortise_client_options": _library.ClientOptions,
              "mortise_lock_options": _library.LockOptions,
              "mortise_election_options": _library.ElectionOptions,
              "mortise_capabilities": _library.CapabilitiesRecord,
              "mortise_stats": _library.StatsRecord}


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT * 3,
                          **options)
    return done.returncode, done.stdout + done.stderr


class Header(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(ROOT, "include", "mortise.h"), encoding="utf-8") as file:
            cls.text = file.read()

    def test_structures_are_laid_out_as_the_compiler_does(self):
        program, expected = ["#include <mortise.h>\n#include <stdio.h>\nint main(void) {"], []
        for name, made in STRUCTURES.items():
            program.append(f'printf("{name} %zu\\n", sizeof({name}));')
            expected.append(f"{name} {ctypes.sizeof(made)}")
            for field, *_ in made._fields_:
                program.append(f'printf("{name}.{field} %zu %zu\\n", (size_t)&(({name} *)0)->{field}'
                               f", sizeof((({name} *)0)->{field}));")
                place = getattr(made, field)
                expected.append(f"{name}.{field} {place.offset} {place.size}")
        with tempfile.TemporaryDirectory() as place:
            source = os.path.join(place, "a.c")
            with open(source, "w", encoding="utf-8") as file:
                file.write("\n".join(program + ["return 0; }"]))
            code, said = run("cc", "-I", os.path.join(ROOT, "include"), source, "-o", source[:-2])
            self.assertEqual(code, 0, said)
            self.assertEqual(run(source[:-2])[1].splitlines(), expected)

    def test_every_function_of_the_header_is_there_or_not_needed(self):
        code = re.sub(r"/\*.*?\*/", "", self.text, flags=re.S)
        declared = set(re.findall(r"MORTISE_API[^;]*?\bmortise_(\w+)\(", code))
        self.assertEqual(declared - set(_library.PROTOTYPES), UNUSED)
        self.assertEqual(set(_library.PROTOTYPES) - declared, set())

    def test_every_error_has_its_class(self):
        kinds = {"BUSY": mortise.BusyError, "TIMEOUT": mortise.LockTimeoutError,
                 "RETRY": mortise.RetryError, "LOST": mortise.LostError,
                 "DENIED": mortise.DeniedError, "USAGE": mortise.UsageError,
                 "CONFIG": mortise.ConfigError, "UNKNOWN": mortise.UnknownOutcomeError,
                 "INTERNAL": mortise.InternalError}
        numbers = dict(re.findall(r"MORTISE_(E\w+) = (-\d+)", self.text))
        table = re.findall(r"X\((E\w+), MORTISE_\w+, (\w+),\s*\"([^\"]*)\"\)", self.text)
        self.assertEqual(len(table), len(numbers))
        for name, kind, text in table:
            error = _errors.error_of(int(numbers[name]), "why")
            self.assertIsInstance(error, kinds[kind])
            self.assertEqual((error.name, str(error)), (name, f"{text} (why)"))
        self.assertIsInstance(_errors.error_of(-9999), mortise.InternalError)
        self.assertIsInstance(_errors.error_of(-14), PermissionError)
        self.assertIsInstance(_errors.error_of(-16), ConnectionError)

    def test_constants(self):
        for name, value in (("VALUE_MAX", _library.VALUE_MAX), ("TOKEN_SIZE", _library.TOKEN_SIZE),
                            ("NODE_SIZE", _library.NODE_SIZE)):
            self.assertIn(f"#define MORTISE_{name} {value}\n", self.text)
        self.assertIn(f'#define MORTISE_VERSION "{mortise.__version__}"', self.text)
        self.assertEqual(mortise.version(), mortise.__version__)
        for name in ("STRICT", "SHORT_LIVED", "TELL_PROCESS"):
            shift = re.search(rf"MORTISE_{name} = 1 << (\d)", self.text)[1]
            self.assertEqual(getattr(_library, name), 1 << int(shift))


class Finding(unittest.TestCase):
    def python(self, text, **environment):
        kept = {key: value for key, value in os.environ.items() if key != "MORTISE_LIBRARY"}
        return run(sys.executable, "-c", text, env={**kept, "PYTHONPATH": PACKAGE, **environment})

    def test_variable_names_the_library(self):
        code, said = self.python("import mortise; print(mortise._library.lib.path)",
                                 MORTISE_LIBRARY=LIBRARY)
        self.assertEqual((code, said.strip()), (0, LIBRARY))

    def test_missing_library_is_an_import_error_that_says_what_to_do(self):
        code, said = self.python("import mortise", MORTISE_LIBRARY="/none/libmortise.so")
        self.assertEqual(code, 1)
        self.assertIn("ImportError: the C library of mortise was not found (/none/libmortise.so",
                      said)
        self.assertIn("set MORTISE_LIBRARY to its path", said)

    def test_another_library_is_refused(self):
        code, said = self.python("import mortise", MORTISE_LIBRARY="libm.so.6")
        self.assertEqual(code, 1)
        self.assertIn("libm.so.6 is no mortise", said)

    def test_another_version_is_refused(self):
        for version in ("0.1.0", "0.3.0", "1.2.0"):
            with self.assertRaisesRegex(ImportError, f"is mortise {version}, and this package"):
                _library.check_version(version, "/usr/lib/libmortise.so")
        _library.check_version("0.2.7", "")

    def test_loader_finds_it(self):
        with tempfile.TemporaryDirectory() as place:
            os.symlink(LIBRARY, os.path.join(place, _library.SONAME))
            code, said = self.python("import mortise; print(mortise._library.lib.path)",
                                     LD_LIBRARY_PATH=place)
            self.assertEqual((code, said.strip()), (0, _library.SONAME))

    def test_library_beside_the_package(self):
        with tempfile.TemporaryDirectory() as place:
            shutil.copytree(os.path.join(PACKAGE, "mortise"), os.path.join(place, "mortise"))
            os.symlink(LIBRARY, os.path.join(place, "mortise", _library.SONAME))
            code, said = self.python("import mortise; print(mortise._library.lib.path)",
                                     PYTHONPATH=place)
            self.assertEqual((code, said.strip()),
                             (0, os.path.join(place, "mortise", _library.SONAME)))


class Built(unittest.TestCase):
    def test_wheel_and_sdist_install_without_a_compiler(self):
        with tempfile.TemporaryDirectory() as place:
            tree = os.path.join(place, "tree")
            shutil.copytree(PACKAGE, tree, ignore=shutil.ignore_patterns("__pycache__", "build",
                                                                         "*.egg-info"))
            code, said = run(sys.executable, "-m", "build", "--no-isolation", "--outdir", place,
                             tree)
            self.assertEqual(code, 0, said)
            version = mortise.__version__
            wheel = os.path.join(place, f"mortise-{version}-py3-none-any.whl")
            self.assertTrue(os.path.exists(os.path.join(place, f"mortise-{version}.tar.gz")))
            home = os.path.join(place, "venv")
            code, said = run(sys.executable, "-m", "venv", home)
            self.assertEqual(code, 0, said)
            code, said = run(os.path.join(home, "bin", "pip"), "install", "--no-index",
                             "--disable-pip-version-check", wheel, env={"PATH": "/nowhere"})
            self.assertEqual(code, 0, said)
            code, said = run(os.path.join(home, "bin", "python"), "-I", "-c", """
import importlib.metadata, importlib.resources, mortise, mortise.aio
assert "venv" in mortise.__file__
assert importlib.resources.files("mortise").joinpath("py.typed").is_file()
with mortise.Client("memory:venv") as client, client.lock("x") as hold:
    print(importlib.metadata.version("mortise"), hold.held)
""", env={"MORTISE_LIBRARY": LIBRARY}, cwd=place)
            self.assertEqual((code, said), (0, f"{version} True\n"))


class Written(unittest.TestCase):
    """Documents, types and examples."""

    def test_types_are_checked(self):
        code, said = run(shutil.which("mypy") or "mypy", "--no-incremental", "--cache-dir",
                         os.devnull, "--config-file", os.path.join(PACKAGE, "pyproject.toml"),
                         os.path.join(PACKAGE, "mortise"), os.path.join(PACKAGE, "examples"),
                         env={**os.environ, "MYPYPATH": PACKAGE})
        self.assertEqual(code, 0, said)

    def test_package_runs_on_older_pythons(self):
        """It parses as 3.9; what newer versions brought to the library is not imported."""
        for parent, _, files in os.walk(os.path.join(PACKAGE, "mortise")):
            for name in files:
                if name.endswith(".py"):
                    with open(os.path.join(parent, name), encoding="utf-8") as file:
                        ast.parse(file.read(), feature_version=(3, 9))

    def test_docstrings(self):
        for module in (mortise, mortise.aio):
            self.assertEqual(doctest.testmod(module).failed, 0)
        self.assertGreater(doctest.testmod(mortise).attempted, 1)

    def test_example(self):
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "number")
            for _ in range(3):
                code, said = run(sys.executable, os.path.join(PACKAGE, "examples", "counter.py"),
                                 path, env={**os.environ, "PYTHONPATH": PACKAGE,
                                            "MORTISE_URL": f"sqlite:{place}/locks.db"})
                self.assertEqual(code, 0, said)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), "3\n")

    def test_readme(self):
        with open(os.path.join(PACKAGE, "README.md"), encoding="utf-8") as file:
            blocks = re.findall(r"^```python\n(.*?)^```", file.read(), re.M | re.S)
        self.assertGreater(len(blocks), 1)
        with tempfile.TemporaryDirectory() as place:
            for block in blocks:
                with self.subTest(block=block):
                    code, said = run(sys.executable, "-c", block, cwd=place, env={
                        **os.environ, "PYTHONPATH": PACKAGE, "MORTISE_URL": "sqlite:locks.db"})
                    self.assertEqual(code, 0, said)


if __name__ == "__main__":
    unittest.main()
