# SPDX-License-Identifier: Apache-2.0
"""An agent stands still for two leases with a holder at work, on a store with leases.

    agent_still.py MORTISE URL DIRECTORY TRIALS

The holder works as long as HELD has promised, counted from when it sent HELD, and takes a lock of
the kernel for that time. A command on the same store takes the mortise lock as soon as it can, and
then the kernel's, without waiting: if the kernel's is taken, that is an overlap. Prints counts; ends
with 1 after an overlap, or if nothing was handed on.
"""
import fcntl
import os
import random
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
MORTISE, URL, DIRECTORY, TRIALS = sys.argv[1:5]
LEASE = 2.0
os.environ["T"] = DIRECTORY
from agent import Client  # pylint: disable=wrong-import-position


def start_agent():
    agent = subprocess.Popen([MORTISE, "agent", "--url", URL, "--socket", DIRECTORY + "/agent.sock"],
                             stdout=subprocess.PIPE, text=True)
    agent.stdout.readline()
    return agent


def hold_while_promised():
    """A holder at work; it ends when the promise is over."""
    client = Client()
    fence = client.call("LOCK deploy -1")
    with open(DIRECTORY + "/witness", "a", encoding="ascii") as witness:
        sent = time.monotonic()
        until = sent + client.call("HELD deploy") / 1000
        fcntl.flock(witness, fcntl.LOCK_EX | fcntl.LOCK_NB)
        print("works", flush=True)
        client.send("HELD deploy")
        sent = time.monotonic()
        while time.monotonic() < until:
            if client.has_reply(0.02):
                until = max(until, sent + client.reply() / 1000)
                sent = time.monotonic()
                client.send("HELD deploy")
        fcntl.flock(witness, fcntl.LOCK_UN)
    print(f"worked {fence}", flush=True)


def trial(agent, draw):
    """Exit code of the command that took the lock next: 9 is an overlap."""
    holder = subprocess.Popen([sys.executable, __file__, *sys.argv[1:5], "hold"],
                              stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "works\n"
    command = subprocess.Popen(
        [MORTISE, "run", "-w", "60", "--url", URL, "deploy", "--", "flock", "-n", "-E", "9",
         DIRECTORY + "/witness", "sleep", "0.05"])
    time.sleep(draw.random() * LEASE)
    os.kill(agent.pid, signal.SIGSTOP)
    time.sleep(2 * LEASE)
    code = command.wait()
    os.kill(agent.pid, signal.SIGCONT)
    assert holder.wait() == 0
    return code


def main():
    draw = random.Random(int(time.time()))
    agent = start_agent()
    try:
        codes = [trial(agent, draw) for _ in range(int(TRIALS))]
    finally:
        agent.kill()
    overlaps = codes.count(9)
    print(f"{len(codes)} trials, {codes.count(0)} handed on, {overlaps} overlaps")
    return 1 if overlaps or codes.count(0) != len(codes) else 0


if sys.argv[5:] == ["hold"]:
    hold_while_promised()
else:
    sys.exit(main())
