#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A candidate by the rule of client-go's leader election, with the Python client of Kubernetes.

    lease_candidate.py PLACE NAME IDENTITY WITNESS [--turns N COUNTER] [--keep] [--clock SECONDS]

PLACE is a directory of tools/servers. The rule: a record that has not changed for its own
leaseDurationSeconds, by this process's monotonic clock since it saw the change, may be replaced; so
may one whose holderIdentity is empty. An update carries the resourceVersion that was read. A change
of holder raises leaseTransitions by one. A leader that could not renew until its deadline stops;
this one also as soon as it reads of another, which client-go's does not. A release writes an empty
holder, one second, and the same transitions.

While it leads it has an exclusive kernel lock on the file WITNESS; if it does not get that at once,
there were two leaders, and it ends with 3. It prints "waits" after its first look, "leads
TRANSITIONS", and "stopped". It ends when its input does: by a release, or without one (--keep).
--turns: it leads so many times, counts each turn in the file COUNTER, and ends. --clock: what it
writes as times is so many seconds off.
"""

import argparse
import datetime
import fcntl
import json
import os
import random
import select
import sys
import time

import kubernetes

LEASE, DEADLINE, RETRY = 8, 4, 0.3  # seconds; of client-go by default: 15, 10, 2
NAMESPACE = "mortise"
Refused = kubernetes.client.rest.ApiException


def api_of(place):
    with open(f"{place}/servers.json", encoding="utf-8") as file:
        state = json.load(file)
    with open(f"{place}/token", encoding="utf-8") as file:
        token = file.read().strip()
    configuration = kubernetes.client.Configuration()
    configuration.host = f"http{'s' if state['tls'] else ''}://127.0.0.1:{state['ports'][0]}"
    configuration.ssl_ca_cert = f"{place}/ca.pem" if state["tls"] else None
    configuration.api_key = {"authorization": f"Bearer {token}"}
    configuration.retries = False  # client-go's requests are sent once
    return kubernetes.client.CoordinationV1Api(kubernetes.client.ApiClient(configuration))


class Candidate:
    """One elector: what it saw of the Lease, and when."""

    def __init__(self, api, name, identity, skew):
        self.api, self.name, self.identity, self.skew = api, name, identity, skew
        self.lease = None  # as read or written last
        self.observed, self.observed_at = None, 0.0

    def moment(self):
        now = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self.skew)
        return now.replace(microsecond=now.microsecond or 1)  # the client would leave out a zero

    def observe(self, lease):
        self.lease = lease
        if lease.spec.to_dict() != self.observed:
            self.observed, self.observed_at = lease.spec.to_dict(), time.monotonic()

    def leads(self):
        return bool(self.observed) and self.observed["holder_identity"] == self.identity

    def spec(self, transitions, acquired, holder, seconds):
        return kubernetes.client.V1LeaseSpec(
            holder_identity=holder, lease_duration_seconds=seconds, acquire_time=acquired,
            renew_time=self.moment(), lease_transitions=transitions)

    def write(self, spec, left=DEADLINE):
        self.lease.spec = spec
        self.observe(self.api.replace_namespaced_lease(self.name, NAMESPACE, self.lease,
                                                       _request_timeout=left))

    def create(self):
        lease = kubernetes.client.V1Lease(
            metadata=kubernetes.client.V1ObjectMeta(name=self.name, namespace=NAMESPACE),
            spec=self.spec(0, self.moment(), self.identity, LEASE))
        self.observe(self.api.create_namespaced_lease(NAMESPACE, lease, _request_timeout=DEADLINE))

    def try_acquire_or_renew(self, left=DEADLINE):
        """Whether it leads now."""
        try:
            self.observe(self.api.read_namespaced_lease(self.name, NAMESPACE,
                                                        _request_timeout=left))
        except Refused as refused:
            if refused.status != 404:
                return False
            return self.attempt(self.create)
        except Exception:  # pylint: disable=broad-except
            return False  # no answer
        record = self.observed
        valid = self.observed_at + (record["lease_duration_seconds"] or 0) > time.monotonic()
        if record["holder_identity"] and valid and not self.leads():
            return False
        transitions, acquired = record["lease_transitions"] or 0, record["acquire_time"]
        if not self.leads():
            transitions, acquired = transitions + 1, self.moment()
        return self.attempt(lambda: self.write(
            self.spec(transitions, acquired, self.identity, LEASE), left))

    @staticmethod
    def attempt(call):
        try:
            call()
            return True
        except Exception:  # pylint: disable=broad-except
            return False  # refused, or no answer

    def release(self):
        if self.leads():
            self.attempt(lambda: self.write(self.spec(
                self.observed["lease_transitions"] or 0, self.moment(), "", 1)))


def ended():
    """Whether its input has; one that counts turns does not heed it."""
    return "--turns" not in sys.argv and bool(select.select([sys.stdin], [], [], 0)[0])


def pause():
    time.sleep(RETRY * (1 + 1.2 * random.random()))


def campaign(candidate):
    """Until it leads, which is True, or its input has ended."""
    while not candidate.try_acquire_or_renew():
        print("waits", flush=True)
        if ended():
            return False
        pause()
    return True


def renew_until(candidate, over):
    """Renews; False: not until its deadline, and so it leads no longer."""
    while not over():
        end = time.monotonic() + DEADLINE
        while not candidate.try_acquire_or_renew(max(0.1, end - time.monotonic())):
            if time.monotonic() >= end or not candidate.leads():
                return False
            time.sleep(RETRY)
        wake = time.monotonic() + RETRY
        while time.monotonic() < wake and not over():
            time.sleep(0.02)
    return True


def lead(candidate, witness, work):
    with open(witness, "a", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print("two leaders", flush=True)
            os._exit(3)
        print(f"leads {candidate.observed['lease_transitions'] or 0}", flush=True)
        return work()


def count(counter):
    with open(counter, "r+", encoding="ascii") as file:
        value = int(file.read())
        time.sleep(0.02)
        file.seek(0)
        file.write(f"{value + 1}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for word in ("place", "name", "identity", "witness"):
        parser.add_argument(word)
    parser.add_argument("--turns", nargs=2)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--clock", type=float, default=0)
    arguments = parser.parse_args()
    candidate = Candidate(api_of(arguments.place), arguments.name, arguments.identity,
                          arguments.clock)
    if arguments.turns:
        for _ in range(int(arguments.turns[0])):
            if not campaign(candidate):
                return
            lead(candidate, arguments.witness, lambda: count(arguments.turns[1]))
            candidate.release()
            pause()
        return
    while campaign(candidate):
        stays = lead(candidate, arguments.witness, lambda: renew_until(candidate, ended))
        print("stopped", flush=True)
        if stays:
            break
    if not arguments.keep:
        candidate.release()


main()
