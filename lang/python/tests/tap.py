# SPDX-License-Identifier: Apache-2.0
"""Runs modules of tests and prints a TAP line a case: tap.py [URL] MODULE[.Class[.case]]..."""

import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


class Result(unittest.TestResult):
    """One line a case, and the traces behind it."""

    def line(self, word, test, more=""):
        print(f"{word} {self.testsRun} - {test.id()}{more}", flush=True)

    def fault(self, test, text):
        self.line("not ok", test)
        print("".join(f"# {line}\n" for line in text.splitlines()), flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.line("ok", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.line("ok", test, f" # skip {reason}")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.fault(test, self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self.fault(test, self.errors[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.fault(subtest, str(err[1]))


def main():
    # A shell ignores SIGINT in what it starts in the background, and programs inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    names = sys.argv[1:]
    if ":" in names[0]:
        os.environ["MORTISE_TEST_URL"] = names.pop(0)
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    result = Result()
    suite.run(result)
    print(f"1..{result.testsRun}")
    sys.exit(0 if result.wasSuccessful() and result.testsRun > 0 else 1)


if __name__ == "__main__":  # multiprocessing imports it again
    main()
