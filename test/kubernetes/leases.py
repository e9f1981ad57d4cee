# SPDX-License-Identifier: Apache-2.0
"""Leases as a Kubernetes API server keeps them, in memory and in a file.

Made after the API server's source (1.20 to 1.34): one resourceVersion grows over all objects; an
update needs the newest one, and a PUT to a name that is not there creates, unless it names a uid;
a PUT that changes nothing writes nothing; a field that the server does not know is dropped. Not
here: finalizers, server-side apply, JSON patches, protobuf, tables.

One condition variable guards all. The file has one line for each event; it survives the process,
and nothing more.
"""

import base64
import copy
import json
import re
import threading
import time
import uuid

GROUP = "coordination.k8s.io"
VERSION = f"{GROUP}/v1"
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
QUALIFIED = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?")
LABEL = re.compile(r"([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?")
MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")
SPEC = {"holderIdentity": str, "leaseDurationSeconds": int, "acquireTime": "time",
        "renewTime": "time", "leaseTransitions": int, "strategy": str, "preferredHolder": str}
ANNOTATIONS_MAX = 256 * 1024
REASONS = {400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound",
           405: "MethodNotAllowed", 406: "NotAcceptable", 409: "Conflict", 410: "Expired",
           413: "RequestEntityTooLarge", 415: "UnsupportedMediaType", 422: "Invalid",
           429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}
MODIFIED = ("the object has been modified; please apply your changes to the latest version and try "
            "again")


class Refusal(Exception):
    """An answer that is an object of the kind Status."""

    def __init__(self, code, message, reason=None, **details):
        super().__init__(message)
        self.code = code
        self.status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                       "message": message, "reason": reason or REASONS[code], "code": code}
        if details:
            self.status["details"] = details


def of_lease(code, name, text, reason=None, **more):
    return Refusal(code, text.replace("LEASE", f'leases.{GROUP} "{name}"'), reason,
                   name=name, group=GROUP, kind="leases", **more)


def conflict(name, why):
    return of_lease(409, name, f"Operation cannot be fulfilled on LEASE: {why}")


def not_found(name):
    return of_lease(404, name, "LEASE not found")


def invalid(name, faults):
    """faults: (field, message) each."""
    causes = [{"reason": "FieldValueInvalid", "message": text, "field": field}
              for field, text in faults]
    listed = [f"{field}: {text}" for field, text in faults]
    text = listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
    return Refusal(422, f'Lease.{GROUP} "{name}" is invalid: {text}', name=name, group=GROUP,
                   kind="Lease", causes=causes)


def undecodable(why):
    return Refusal(400, f'Lease in version "v1" cannot be handled as a Lease: {why}')


def decoded_spec(given):
    """The fields that a Lease has, of the types that they have."""
    if not isinstance(given, dict):
        raise undecodable("json: cannot unmarshal into Go struct field Lease.spec of type "
                          "v1.LeaseSpec")
    spec = {}
    for field, kind in SPEC.items():
        value = given.get(field)
        if value is None:
            continue
        if kind == "time":
            if not isinstance(value, str) or not MICRO_TIME.fullmatch(value):
                raise undecodable(f'parsing time {json.dumps(value)} as '
                                  '"2006-01-02T15:04:05.000000Z07:00": cannot parse it')
        elif not isinstance(value, kind) or isinstance(value, bool) or \
                (kind is int and not -2**31 <= value < 2**31):
            name = "int32" if kind is int else "string"
            raise undecodable("json: cannot unmarshal value into Go struct field "
                              f"LeaseSpec.spec.{field} of type {name}")
        spec[field] = value
    return spec


def decoded_texts(metadata, field):
    """Annotations or labels: texts by names."""
    texts = metadata.get(field) or {}
    if not isinstance(texts, dict) or not all(isinstance(v, str) for v in texts.values()):
        raise undecodable("json: cannot unmarshal value into Go struct field "
                          f"ObjectMeta.metadata.{field} of type string")
    return texts


def decoded(body, namespace):
    """An object of a request, checked as far as decoding does."""
    if not isinstance(body, dict):
        raise Refusal(400, "the object provided is unrecognized (must be of type Lease)")
    if body.get("apiVersion", VERSION) != VERSION or body.get("kind", "Lease") != "Lease":
        raise Refusal(400, f"the API version in the data ({body.get('apiVersion')}) does not match "
                           f"the expected API version ({VERSION})")
    given = body.get("metadata") or {}
    if given.get("namespace", namespace) != namespace:
        raise Refusal(400, "the namespace of the provided object does not match the namespace sent "
                           "on the request")
    metadata = {"name": given.get("name", ""), "namespace": namespace}
    for field in ("uid", "resourceVersion", "generateName"):
        if given.get(field):
            if not isinstance(given[field], str):
                raise undecodable("json: cannot unmarshal value into Go struct field "
                                  f"ObjectMeta.metadata.{field} of type string")
            metadata[field] = given[field]
    for field in ("labels", "annotations"):
        texts = decoded_texts(given, field)
        if texts:
            metadata[field] = dict(sorted(texts.items()))
    return {"kind": "Lease", "apiVersion": VERSION, "metadata": metadata,
            "spec": decoded_spec(body.get("spec") or {})}


def faults_of(lease):
    metadata, spec, found = lease["metadata"], lease["spec"], []
    name = metadata["name"]
    if len(name) > 253 or not SUBDOMAIN.fullmatch(name):
        found.append(("metadata.name", f'Invalid value: "{name}": a lowercase RFC 1123 subdomain '
                      "must consist of lower case alphanumeric characters, '-' or '.', and must "
                      "start and end with an alphanumeric character"))
    for field in ("labels", "annotations"):
        for key, value in metadata.get(field, {}).items():
            if not QUALIFIED.fullmatch(key.lower() if field == "annotations" else key):
                found.append((f"metadata.{field}", f'Invalid value: "{key}": name part must consist '
                              "of alphanumeric characters, '-', '_' or '.'"))
            if field == "labels" and not LABEL.fullmatch(value):
                found.append(("metadata.labels", f'Invalid value: "{value}": a valid label must be '
                              "an empty string or consist of alphanumeric characters"))
    size = sum(len(k.encode()) + len(v.encode()) for k, v in
               metadata.get("annotations", {}).items())
    if size > ANNOTATIONS_MAX:
        found.append(("metadata.annotations", f"Too long: may not be more than {ANNOTATIONS_MAX} "
                                              "bytes"))
    if spec.get("leaseDurationSeconds", 1) <= 0:
        found.append(("spec.leaseDurationSeconds",
                      f"Invalid value: {spec['leaseDurationSeconds']}: must be greater than 0"))
    if spec.get("leaseTransitions", 0) < 0:
        found.append(("spec.leaseTransitions", f"Invalid value: {spec['leaseTransitions']}: must be "
                                               "greater than or equal to 0"))
    return found


def parsed_version(text):
    if not text.isdigit():
        raise Refusal(400, f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid '
                           "syntax")
    return int(text)


def selector(fields, labels):
    """A predicate of Leases: fieldSelector and labelSelector, as far as equality goes."""
    wanted = []
    for text, place in ((fields, "field"), (labels, "label")):
        for term in filter(None, (text or "").split(",")):
            match = re.fullmatch(r"([^=!]+)(==|=|!=)([^=!]*)", term)
            if not match:
                raise Refusal(400, f"unable to parse requirement: {term}")
            if place == "field" and match[1] not in ("metadata.name", "metadata.namespace"):
                raise Refusal(400, f'field label not supported: {match[1]}')
            wanted.append((place, match[1], match[2] != "!=", match[3]))

    def fits(lease):
        metadata = lease["metadata"]
        return all(((metadata[key[len("metadata."):]] if place == "field"
                     else metadata.get("labels", {}).get(key)) == value) == equal
                   for place, key, equal, value in wanted)
    return fits


def merged(old, patch):
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


class Leases:
    """All objects, and all events since the last compaction."""

    def __init__(self, file=None):
        self.changed = threading.Condition()
        self.objects = {}  # by (namespace, name)
        self.events = []  # (version, type, object, the object before or None)
        self.version = 1000
        self.compacted = 1000
        self.journal = []  # what was written since the start, for tests
        self.file = None
        if file:
            self.load(file)
            self.file = open(file, "a", encoding="utf-8")

    def load(self, file):
        try:
            with open(file, encoding="utf-8") as lines:
                for line in lines:
                    if line.endswith("\n"):
                        self.remember(*json.loads(line))
        except FileNotFoundError:
            pass
        self.compacted = self.version  # a server that starts has no events

    def remember(self, kind, lease):
        key = (lease["metadata"]["namespace"], lease["metadata"]["name"])
        self.version = int(lease["metadata"]["resourceVersion"])
        before = self.objects.pop(key, None)
        if kind != "DELETED":
            self.objects[key] = lease
        self.events.append((self.version, kind, lease, before))

    def write(self, kind, lease, agent):
        """Under the lock: gives it the next version, and tells all watches."""
        lease = copy.deepcopy(lease)
        lease["metadata"]["resourceVersion"] = str(self.version + 1)
        if kind != "DELETED":
            lease["metadata"]["managedFields"] = [{
                "manager": (agent or "unknown").split("/")[0], "operation": "Update",
                "apiVersion": VERSION, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {f"f:{field}": {} for field in lease["spec"]}}}]
        self.remember(kind, lease)
        spec = lease["spec"]
        self.journal.append({"version": self.version, "type": kind, "at": time.monotonic(),
                             "name": lease["metadata"]["name"],
                             "holder": spec.get("holderIdentity", ""),
                             "transitions": spec.get("leaseTransitions", 0)})
        if self.file:
            self.file.write(json.dumps([kind, lease]) + "\n")
            self.file.flush()
        self.changed.notify_all()
        return lease

    def create(self, namespace, body, agent=None):
        lease = decoded(body, namespace)
        metadata = lease["metadata"]
        if metadata.pop("resourceVersion", None):
            raise Refusal(500, "resourceVersion should not be set on objects to be created")
        generate = metadata.get("generateName")
        if generate and not metadata["name"]:
            metadata["name"] = generate + uuid.uuid4().hex[:5]
        if not metadata["name"]:
            raise Refusal(422, f'Lease.{GROUP} "" is invalid: metadata.name: Required value: name or '
                               "generateName is required", group=GROUP, kind="Lease", causes=[
                                   {"reason": "FieldValueRequired", "field": "metadata.name",
                                    "message": "Required value: name or generateName is required"}])
        with self.changed:
            if (namespace, metadata["name"]) in self.objects:
                raise of_lease(409, metadata["name"], "LEASE already exists", "AlreadyExists")
            return self.write_new(lease, agent)

    def write_new(self, lease, agent):
        faults = faults_of(lease)
        if faults:
            raise invalid(lease["metadata"]["name"], faults)
        lease["metadata"].update(uid=str(uuid.uuid4()), creationTimestamp=time.strftime(
            "%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
        lease["metadata"].pop("resourceVersion", None)
        return self.write("ADDED", lease, agent)

    def update(self, namespace, name, body, agent=None, may_create=lambda: None):
        """(the object, whether it was created). may_create refuses who has no right to."""
        lease = decoded(body, namespace)
        metadata = lease["metadata"]
        if metadata["name"] != name:
            raise Refusal(400, f"the name of the object ({metadata['name']}) does not match the name "
                               f"on the URL ({name})")
        with self.changed:
            old = self.objects.get((namespace, name))
            uid = old["metadata"]["uid"] if old else ""
            if metadata.get("uid", uid) != uid:
                raise conflict(name, "Precondition failed: UID in precondition: "
                                     f"{metadata['uid']}, UID in object meta: {uid}")
            if not old:
                may_create()
                return self.write_new(lease, agent), True
            return self.write_over(old, lease, agent), False

    def write_over(self, old, lease, agent):
        metadata, before = lease["metadata"], old["metadata"]
        name = metadata["name"]
        if parsed_version(metadata.get("resourceVersion", "0")) == 0:
            raise invalid(name, [("metadata.resourceVersion",
                                  "Invalid value: 0x0: must be specified for an update")])
        if metadata["resourceVersion"] != before["resourceVersion"]:
            raise conflict(name, MODIFIED)
        faults = faults_of(lease)
        if faults:
            raise invalid(name, faults)
        for field in ("uid", "creationTimestamp", "generateName"):
            if field in before:
                metadata[field] = before[field]
        same = {key: value for key, value in before.items() if key != "managedFields"}
        if lease["spec"] == old["spec"] and metadata == same:
            return old  # nothing is written
        return self.write("MODIFIED", lease, agent)

    def patch(self, namespace, name, body, agent=None):
        with self.changed:
            old = self.objects.get((namespace, name))
            if not old:
                raise not_found(name)
            lease = decoded(merged(old, body), namespace)
            if lease["metadata"]["name"] != name:
                raise Refusal(400, "the name of the object does not match the name on the URL")
            if lease["metadata"].get("uid") != old["metadata"]["uid"]:
                raise conflict(name, "Precondition failed: UID in precondition")
            return self.write_over(old, lease, agent)

    def delete(self, namespace, name, options=None):
        conditions = (options or {}).get("preconditions") or {}
        with self.changed:
            old = self.objects.get((namespace, name))
            if not old:
                raise not_found(name)
            metadata = old["metadata"]
            for field, title, why in (("uid", "UID", "deleted and then recreated"),
                                      ("resourceVersion", "ResourceVersion", "modified")):
                wanted = conditions.get(field)
                if wanted is not None and wanted != metadata[field]:
                    raise conflict(name, f"the {title} in the precondition ({wanted}) does not match "
                                   f"the {title} in record ({metadata[field]}). The object might "
                                   f"have been {why}")
            self.write("DELETED", old, None)
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                "details": {"name": name, "group": GROUP, "kind": "leases",
                            "uid": metadata["uid"]}}

    def get(self, namespace, name, version=""):
        with self.changed:
            self.refuse_future(version)
            lease = self.objects.get((namespace, name))
        if not lease:
            raise not_found(name)
        return lease

    def refuse_future(self, version):
        if version and parsed_version(version) > self.version:
            raise Refusal(504, f"Timeout: Too large resource version: {version}, current: "
                               f"{self.version}", causes=[{
                                   "reason": "ResourceVersionTooLarge",
                                   "message": "Too large resource version"}], retryAfterSeconds=1)

    def since(self, version):
        """The events behind a version; each has the next version."""
        return self.events[len(self.events) - (self.version - version):] \
            if version < self.version else []

    def at(self, version):
        """All objects as they were; under the lock."""
        found = {}
        for _, _, lease, before in self.since(version):
            found.setdefault((lease["metadata"]["namespace"], lease["metadata"]["name"]), before)
        return {key: lease for key, lease in {**self.objects, **found}.items() if lease}

    def list(self, namespace, fits, limit=0, start="", version="", behind=0):
        """A LeaseList; behind: by how many versions version 0 may be too old."""
        after = ("", "")
        with self.changed:
            self.refuse_future(version)
            number = self.version
            if start:
                try:
                    number, *after = json.loads(base64.urlsafe_b64decode(start))
                except ValueError as error:
                    raise Refusal(400, f"invalid continue token: {error}") from None
                if number < self.compacted:
                    raise Refusal(410, "The provided continue parameter is too old to display a "
                                       "consistent list result.")
            elif version == "0":
                number = max(self.compacted, number - behind)
            objects = self.at(number) if number != self.version else self.objects
            rows = [lease for key, lease in sorted(objects.items())
                    if key > tuple(after) and namespace in (None, key[0]) and fits(lease)]
        metadata = {"resourceVersion": str(number)}
        if limit and len(rows) > limit:
            last = rows[limit - 1]["metadata"]
            metadata["continue"] = base64.urlsafe_b64encode(json.dumps(
                [number, last["namespace"], last["name"]]).encode()).decode()
            metadata["remainingItemCount"] = len(rows) - limit
            rows = rows[:limit]
        return {"kind": "LeaseList", "apiVersion": VERSION, "metadata": metadata, "items": [
            {key: row[key] for key in ("metadata", "spec")} for row in rows]}

    def compact(self):
        with self.changed:
            self.compacted = self.version
            self.events.clear()
            self.changed.notify_all()

    def begin_watch(self, version):
        """(the version to go on from, events to begin with)."""
        with self.changed:
            if version in ("", "0"):
                return self.version, [("ADDED", lease) for _, lease in sorted(self.objects.items())]
            number = parsed_version(version)
            if number < self.compacted:
                raise Refusal(410, f"too old resource version: {number} ({self.compacted})")
            return number, []

    def news(self, version, namespace, fits, timeout):
        """(the newest version, events behind `version`), once there are some, or after a timeout."""
        with self.changed:
            if version >= self.version:
                self.changed.wait(timeout)
            if version < self.compacted:
                raise Refusal(410, f"too old resource version: {version} ({self.compacted})")
            newest = max(version, self.version)
            events = []
            for _, kind, lease, before in self.since(version):
                if namespace not in (None, lease["metadata"]["namespace"]):
                    continue
                is_in = kind != "DELETED" and fits(lease)
                was_in = before is not None and fits(before)
                if is_in or was_in:
                    events.append(("ADDED" if not was_in else "MODIFIED" if is_in else "DELETED",
                                   lease))
        return newest, events
