"""verify checks a log of the registry, or a proof of one of its leaves.

It is written from docs/log.md alone. It needs Python's standard library, and the command openssl for Ed25519.

    verify.py --key KEY [--remember FILE] ADDRESS     a whole log, over HTTP or in a directory
    verify.py --key KEY --proof FILE                  a proof file, offline

With --policy FILE in place of --key KEY it also asks for witnesses. --remember holds the checkpoint of the last run.
It is written when all is well. verify ends with 0 if all is well, and with 1 and a reason if not.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

WIDTH = 256
MAX_LEAF = 512
MAX_PART = WIDTH * (2 + MAX_LEAF)
MAX_CHECKPOINT = 64 << 10
MAX_SIGNATURES = 100
MAX_FILE = 16 << 20
MAX_HASHES = 63
LAST_POSITION = 253402300799999999
LOG, WITNESS = 0x01, 0x04


class Wrong(Exception):
    """Wrong says in one sentence what is wrong with a log or a proof."""


def need(condition: bool, reason: str) -> None:
    """need raises Wrong if the condition does not hold."""
    if not condition:
        raise Wrong(reason)


# Numbers, and texts of bytes.


def decimal(text: str) -> int:
    """decimal reads a number without a sign and without leading zeroes."""
    need(re.fullmatch(r"0|[1-9][0-9]{0,18}", text) is not None, f"{text[:40]!r} is not a number")
    return int(text)


def unbase64(text: str) -> bytes:
    """unbase64 reads base64, and refuses other forms of the same bytes."""
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError:
        raise Wrong(f"{text[:40]!r} is not base64") from None
    need(base64.b64encode(raw).decode() == text, f"{text[:40]!r} is not base64 in its one form")
    return raw


def unhash(text: str) -> bytes:
    raw = unbase64(text)
    need(len(raw) == 32, f"{text[:60]!r} is not a hash")
    return raw


def sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


# Canonical form and leaves.


class Number(str):
    """Number is a number as it is written in JSON."""


def parse(text: str) -> Any:
    """parse reads JSON and keeps numbers as they are written. It refuses repeated names."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = dict(pairs)
        need(len(names) == len(pairs), "an object repeats a name")
        return names

    def constant(name: str) -> Any:
        raise Wrong(f"{name} is not JSON")

    try:
        return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=constant,
                          object_pairs_hook=members)
    except (ValueError, RecursionError):
        raise Wrong("a text is not JSON") from None


def canonical(value: Any) -> str:
    """canonical writes a value of parse in canonical form."""
    if isinstance(value, dict):
        names: list[str] = sorted(value, key=lambda name: str(name).encode("utf-16-be", "surrogatepass"))
        return "{" + ",".join(quote(name) + ":" + canonical(value[name]) for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        return quote(value)
    return {None: "null", True: "true", False: "false"}[value]


SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def quote(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Wrong("a string has half of a surrogate pair") from None
    return '"' + "".join(SHORT.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in text) + '"'


@dataclass
class Leaf:
    """Leaf is one change of a public asset. A withdraw has no commitment."""

    asset: str
    kind: str
    position: int
    revision: int
    commitment: str | None


def parse_leaf(entry: bytes) -> Leaf:
    """parse_leaf reads an entry of the log."""
    need(len(entry) <= MAX_LEAF, f"a leaf has {len(entry)} bytes")
    try:
        text = entry.decode()
    except UnicodeDecodeError:
        raise Wrong("a leaf is not UTF-8") from None
    value = parse(text)
    need(isinstance(value, dict) and canonical(value) == text, f"not a leaf in canonical form: {text!r}")
    kind = value.get("kind")
    need(type(kind) is str and kind in ("publish", "change", "withdraw", "import"), f"a leaf of kind {kind!r}")
    names = {"asset", "kind", "position", "revision", "v"} | (set() if kind == "withdraw" else {"commitment"})
    need(set(value) == names, f"a leaf with the members {sorted(value)}")
    need(all(isinstance(value[name], Number) for name in ("position", "revision", "v")), "a leaf with a text as number")
    position, revision = decimal(value["position"]), decimal(value["revision"])
    need(value["v"] == "1" and 1 <= position <= LAST_POSITION and revision >= 1, f"a leaf with a wrong number: {text}")
    hexadecimal(value["asset"], 32)
    commitment = value.get("commitment")
    if kind != "withdraw":
        hexadecimal(commitment, 64)
        need(commitment != "0" * 64, "a leaf with a commitment of zeroes")
    return Leaf(value["asset"], kind, position, revision, commitment)


def hexadecimal(text: Any, digits: int) -> bytes:
    good = type(text) is str and re.fullmatch(f"[0-9a-f]{{{digits}}}", text) is not None
    need(good, f"not {digits} hexadecimal digits: {text!r}")
    return bytes.fromhex(text)


DATE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{6})([+-])(\d\d):(\d\d)", re.ASCII)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def microseconds(text: Any) -> int:
    """microseconds reads a timestamp in the form of dateModified."""
    match = DATE.fullmatch(text) if type(text) is str else None
    if match is None or match[3] + match[4] + match[5] == "-0000":
        raise Wrong(f"dateModified is {text!r}")
    try:
        offset = timedelta(hours=int(match[4]), minutes=int(match[5])) * (1 if match[3] == "+" else -1)
        at = datetime.fromisoformat(match[1]).replace(microsecond=int(match[2]), tzinfo=timezone(offset))
    except ValueError:
        raise Wrong(f"dateModified is {text!r}") from None
    return (at - EPOCH) // timedelta(microseconds=1)


def match(leaf: Leaf, asset: Any, salt: bytes) -> None:
    """match checks that a leaf commits to an asset."""
    need(leaf.commitment is not None, "a withdraw commits to nothing")
    need(isinstance(asset, dict) and asset.get("id") == leaf.asset, "the asset has another id")
    need(microseconds(asset.get("dateModified")) == leaf.position, "the asset has another dateModified")
    rest = {name: value for name, value in asset.items() if name != "dateModified"}
    need(sha256(salt, canonical(rest).encode()).hex() == leaf.commitment, "the leaf does not commit to the asset")


# Keys and signatures.


@dataclass(frozen=True)
class Key:
    """Key is the public key of a log or a witness."""

    name: str
    type: int
    id: bytes
    raw: bytes

    def verifies(self, text: bytes, signature: bytes) -> bool:
        if self.type == WITNESS:
            if len(signature) != 72 or signature[0] > 127:
                return False
            time = int.from_bytes(signature[:8], "big")
            text, signature = b"cosignature/v1\ntime %d\n" % time + text, signature[8:]
        return len(signature) == 64 and ed25519(self.raw, text, signature)


def parse_key(text: str, type: int) -> Key:
    parts = text.split("+", 2)
    need(len(parts) == 3, f"not a public key: {text[:80]!r}")
    name, id = parts[0], hexadecimal(parts[1], 8)
    typed = unbase64(parts[2])
    need(name != "" and not re.search(r"\s", name), f"a key with the name {name!r}")
    need(len(typed) == 33 and typed[0] == type, f"the key of {name} is not of type {type}")
    need(sha256(name.encode(), b"\n", typed)[:4] == id, f"the key of {name} has another id")
    return Key(name, type, id, typed[1:])


def ed25519(key: bytes, text: bytes, signature: bytes) -> bool:
    """ed25519 asks openssl whether a signature is right."""
    with tempfile.TemporaryDirectory() as folder:
        files = {"key": bytes.fromhex("302a300506032b6570032100") + key, "text": text, "signature": signature}
        for name, data in files.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
        command = ["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", "key", "-rawin"]
        done = subprocess.run(command + ["-in", "text", "-sigfile", "signature"], cwd=folder, timeout=30,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return done.returncode == 0


# Policies.


@dataclass
class Policy:
    """Policy says which checkpoints to trust."""

    logs: list[Key] = field(default_factory=list)
    witnesses: dict[str, Key] = field(default_factory=dict)
    groups: dict[str, tuple[int, list[str]]] = field(default_factory=dict)
    quorum: str = ""

    def witnessed(self, name: str, cosigned: set[str]) -> bool:
        if name in self.witnesses:
            return name in cosigned
        least, members = self.groups[name]
        return sum(self.witnessed(member, cosigned) for member in members) >= least


def parse_policy(text: str) -> Policy:
    policy, members = Policy(), set[str]()

    def define(name: str) -> None:
        free = name != "none" and name not in policy.witnesses and name not in policy.groups
        need(free, f"policy: {name} stands twice")

    for line in text.split("\n"):
        need(all(c == "\t" or c >= " " and c != "\x7f" for c in line), "policy: a control character")
        words = re.split("[ \t]+", line.strip(" \t"))
        if words == [""] or words[0].startswith("#"):
            continue
        match words:
            case ["log", key] | ["log", key, _]:
                policy.logs.append(parse_key(key, LOG))
            case ["witness", name, key] | ["witness", name, key, _]:
                define(name)
                policy.witnesses[name] = parse_key(key, WITNESS)
            case ["group", name, least, _, *_]:
                define(name)
                names = words[3:]
                known = set(names) <= set(policy.witnesses) | set(policy.groups)
                once = len(set(names)) == len(names) and not members & set(names)
                need(known and once, f"policy: the members of {name}")
                members |= set(names)
                count = {"any": 1, "all": len(names)}.get(least) or decimal(least)
                need(1 <= count <= len(names), f"policy: the number of {name}")
                policy.groups[name] = (count, names)
            case ["quorum", name]:
                known = name == "none" or name in policy.witnesses or name in policy.groups
                need(known and policy.quorum == "", "policy: the quorum")
                policy.quorum = name
            case _:
                raise Wrong(f"policy: {line[:80]!r}")
    need(policy.quorum != "", "policy: no quorum")
    for keys in (policy.logs, list(policy.witnesses.values())):
        need(len({key.raw for key in keys}) == len(keys), "policy: a key stands twice")
    return policy


# Checkpoints.


@dataclass
class Checkpoint:
    """Checkpoint is a verified checkpoint."""

    origin: str
    size: int
    root: bytes
    witnesses: list[str]


def open_checkpoint(signed: bytes, policy: Policy) -> Checkpoint:
    """open_checkpoint verifies the signatures and the quorum of a checkpoint."""
    need(len(signed) <= MAX_CHECKPOINT, "the checkpoint is too long")
    try:
        note = signed.decode()
    except UnicodeDecodeError:
        raise Wrong("the checkpoint is not UTF-8") from None
    need(all(c == "\n" or c >= " " for c in note), "the checkpoint has a control character")
    text, found, signatures = note.rpartition("\n\n")
    need(found != "" and signatures.endswith("\n"), "the checkpoint is not a signed note")
    lines = text.split("\n")
    need(len(lines) >= 3 and all(lines), "the checkpoint has too few lines, or an empty one")
    body = (text + "\n").encode()
    logs = {(key.name, key.id): key for key in policy.logs if key.name == lines[0]}
    witnesses = {(key.name, key.id): name for name, key in policy.witnesses.items()}
    signers, cosigned = 0, set[str]()
    for number, line in enumerate(signatures[:-1].split("\n")):
        need(number < MAX_SIGNATURES, "the checkpoint has too many signatures")
        parts = line.split(" ")
        need(len(parts) == 3 and parts[0] == "—" and parts[1] != "", "the checkpoint has a malformed signature line")
        raw = unbase64(parts[2])
        need(len(raw) > 4, "the checkpoint has a short signature")
        who = (parts[1], raw[:4])
        if who in logs:
            need(logs[who].verifies(body, raw[4:]), "a signature of the log is wrong")
            signers += 1
        elif who in witnesses:
            name = witnesses[who]
            need(policy.witnesses[name].verifies(body, raw[4:]), f"the cosignature of {name} is wrong")
            cosigned.add(name)
    need(signers > 0, "the checkpoint has no signature of the log")
    quorum = policy.quorum == "none" or policy.witnessed(policy.quorum, cosigned)
    need(quorum, "too few witnesses cosigned the checkpoint")
    return Checkpoint(lines[0], decimal(lines[1]), unhash(lines[2]), sorted(cosigned))


# The tree.


def leaf_hash(entry: bytes) -> bytes:
    return sha256(b"\x00", entry)


def node(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01", left, right)


def tree_root(hashes: list[bytes]) -> bytes:
    """tree_root returns the root of a tree with some hashes as leaves, as RFC 6962 defines it."""
    if len(hashes) == 1:
        return hashes[0]
    half = 1 << (len(hashes) - 1).bit_length() - 1
    return node(tree_root(hashes[:half]), tree_root(hashes[half:]))


class Tree:
    """Tree takes the entries of a log one after the other and gives its tiles."""

    def __init__(self) -> None:
        self.size = 0
        self.levels: list[list[bytes]] = []

    def append(self, hash: bytes) -> Iterator[tuple[int, int, list[bytes]]]:
        """append adds the hash of an entry. It yields the level, the number and the hashes of each full tile."""
        level = 0
        while True:
            if level == len(self.levels):
                self.levels.append([])
            self.levels[level].append(hash)
            if len(self.levels[level]) < WIDTH:
                break
            full, self.levels[level] = self.levels[level], []
            hash = tree_root(full)
            yield level, self.size >> 8 * (level + 1), full
            level += 1
        self.size += 1

    def edge(self) -> Iterator[tuple[int, int, list[bytes]]]:
        """edge yields the partial tiles."""
        for level, hashes in enumerate(self.levels):
            if hashes:
                yield level, self.size >> 8 * (level + 1), hashes

    def root(self) -> bytes:
        """root returns the root of all entries so far."""
        root = b""
        for hashes in self.levels:  # a tile's hashes are roots of complete subtrees; what is right of them comes last
            while hashes:
                count = len(hashes) & -len(hashes)
                left, hashes = tree_root(hashes[-count:]), hashes[:-count]
                root = node(left, root) if root else left
        return root or sha256()


def include(leaf: bytes, index: int, size: int, path: list[bytes]) -> bytes:
    """include returns the root to which the path leads from a leaf's hash (RFC 6962, section 2.1.1)."""
    need(0 <= index < size, "the index is not in the log")
    last, hash = size - 1, leaf
    for sibling in path:
        need(last > 0, "the path is too long")
        if index & 1 or index == last:
            hash = node(sibling, hash)
            while index & 1 == 0 and index > 0:
                index, last = index >> 1, last >> 1
        else:
            hash = node(hash, sibling)
        index, last = index >> 1, last >> 1
    need(last == 0, "the path is too short")
    return hash


# Parts of a log.


def tile_path(level: str, number: int, width: int) -> str:
    groups = [f"{number % 1000:03}"]
    while number := number // 1000:
        groups.insert(0, f"x{number % 1000:03}")
    return f"tile/{level}/{'/'.join(groups)}" + (f".p/{width}" if width < WIDTH else "")


def reader(address: str) -> Callable[[str, int], bytes | None]:
    """reader returns a function that reads a file of a log, or returns None if it is missing."""

    def over_http(path: str, limit: int) -> bytes | None:
        try:
            with urllib.request.urlopen(address.rstrip("/") + "/" + path, timeout=30) as answer:
                data: bytes = answer.read(limit + 1)
        except urllib.error.HTTPError as error:
            need(error.code == 404, f"{path}: the server answers {error.code}")
            return None
        need(len(data) <= limit, f"{path} is too long")
        return data

    def from_disk(path: str, limit: int) -> bytes | None:
        try:
            return read_file(os.path.join(address, path), limit)
        except FileNotFoundError:
            return None

    return over_http if re.match("https?://", address) else from_disk


def read_file(path: str, limit: int) -> bytes:
    with open(path, "rb") as file:
        data = file.read(limit + 1)
    need(len(data) <= limit, f"{path} is too long")
    return data


def split(bundle: bytes) -> list[bytes]:
    """split returns the entries of an entry bundle."""
    entries, at = [], 0
    while at < len(bundle):
        need(at + 2 <= len(bundle), "an entry bundle ends in a length")
        end = at + 2 + int.from_bytes(bundle[at:at + 2], "big")
        need(end <= len(bundle), "an entry bundle ends in an entry")
        entries.append(bundle[at + 2:end])
        at = end
    return entries


class Log:
    """Log reads the parts of a log, and takes a partial part from the full one if it is gone."""

    def __init__(self, address: str) -> None:
        self.read = reader(address)

    def checkpoint(self) -> bytes:
        data = self.read("checkpoint", MAX_CHECKPOINT)
        if data is None:
            raise Wrong("the log has no checkpoint")
        return data

    def part(self, level: str, number: int, width: int, cut: Callable[[bytes], list[bytes]]) -> list[bytes]:
        for asked in dict.fromkeys([width, WIDTH]):
            data = self.read(tile_path(level, number, asked), MAX_PART)
            if data is not None:
                items = cut(data)
                need(len(items) == asked, f"{tile_path(level, number, asked)} has {len(items)} items")
                return items[:width]
        raise Wrong(f"{tile_path(level, number, width)} is missing")

    def entries(self, number: int, width: int) -> list[bytes]:
        return self.part("entries", number, width, split)

    def tile(self, level: int, number: int, width: int) -> list[bytes]:
        def cut(data: bytes) -> list[bytes]:
            need(len(data) % 32 == 0, f"{tile_path(str(level), number, width)} has {len(data)} bytes")
            return [data[at:at + 32] for at in range(0, len(data), 32)]

        return self.part(str(level), number, width, cut)


# Verification.


def verify_log(address: str, policy: Policy, remembered: Checkpoint | None) -> tuple[Checkpoint, bytes]:
    """verify_log verifies a whole log, and returns its checkpoint."""
    log = Log(address)
    signed = log.checkpoint()
    checkpoint = open_checkpoint(signed, policy)
    if remembered is not None:
        need(checkpoint.origin == remembered.origin, "the log has another origin than before")
        need(checkpoint.size >= remembered.size, "the log is shorter than before")
    tree, position = Tree(), 0

    def compare(level: int, number: int, hashes: list[bytes]) -> None:
        need(log.tile(level, number, len(hashes)) == hashes, f"{tile_path(str(level), number, len(hashes))} is wrong")

    def remember() -> None:
        if remembered is not None and tree.size == remembered.size:
            need(tree.root() == remembered.root, f"at size {tree.size} the log is not what it was before")

    remember()
    for first in range(0, checkpoint.size, WIDTH):
        for entry in log.entries(first // WIDTH, min(WIDTH, checkpoint.size - first)):
            leaf = parse_leaf(entry)
            need(leaf.position > position, f"leaf {tree.size} has a position that is not greater than the one before")
            position = leaf.position
            for level, number, hashes in tree.append(leaf_hash(entry)):
                compare(level, number, hashes)
            remember()
    for level, number, hashes in tree.edge():
        compare(level, number, hashes)
    need(tree.root() == checkpoint.root, "the checkpoint has another root than the leaves")
    return checkpoint, signed


def verify_proof(file: bytes, policy: Policy) -> str:
    """verify_proof verifies a proof file, and returns what it proves."""
    head, found, signed = file.partition(b"\n\n")
    try:
        lines = head.decode("ascii").split("\n")
    except UnicodeDecodeError:
        raise Wrong("the proof is not ASCII") from None
    need(found != b"" and lines.pop(0) == "c2sp.org/tlog-proof@v1", "not a proof of version 1")
    need(len(lines) > 1 and lines[0].startswith("extra "), "the proof has no evidence")
    extra = unbase64(lines.pop(0).removeprefix("extra "))
    need(lines[0].startswith("index ") and len(lines) <= 1 + MAX_HASHES, "the proof has no index, or too many hashes")
    index, path = decimal(lines.pop(0).removeprefix("index ")), [unhash(line) for line in lines]
    checkpoint = open_checkpoint(signed, policy)
    try:
        evidence = parse(extra.decode())
    except UnicodeDecodeError:
        raise Wrong("the evidence is not UTF-8") from None
    good = isinstance(evidence, dict) and "leaf" in evidence and set(evidence) <= {"leaf", "salt", "asset"}
    need(good, "the evidence has other members than leaf, salt and asset")
    need(("salt" in evidence) == ("asset" in evidence), "salt and asset come together")
    entry = canonical(evidence["leaf"]).encode()
    leaf = parse_leaf(entry)
    root = include(leaf_hash(entry), index, checkpoint.size, path)
    need(root == checkpoint.root, "the path does not lead to the root")
    what = f"{leaf.kind} of asset {leaf.asset}, revision {leaf.revision}, is leaf {index} of {checkpoint.size}"
    if "asset" not in evidence:
        return what + (", without content" if leaf.commitment is None else ", its content is erased")
    match(leaf, evidence["asset"], hexadecimal(evidence["salt"], 64))
    return what + ", its content is proven"


def main() -> None:
    parser = argparse.ArgumentParser(description="Verify a log of the registry, or a proof of one of its leaves.")
    trust = parser.add_mutually_exclusive_group(required=True)
    trust.add_argument("--key", help="the log's public key")
    trust.add_argument("--policy", help="a policy file")
    parser.add_argument("--remember", help="the file that holds the checkpoint of the last run")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--proof", help="a proof file")
    what.add_argument("address", nargs="?", help="the log's prefix, or a directory")
    arguments = parser.parse_args()
    try:
        if arguments.policy:
            policy = parse_policy(read_file(arguments.policy, MAX_FILE).decode("utf-8", "surrogateescape"))
        else:
            policy = Policy(logs=[parse_key(arguments.key, LOG)], quorum="none")
        if arguments.proof:
            print(verify_proof(read_file(arguments.proof, MAX_FILE), policy))
            return
        remembered = None
        if arguments.remember and os.path.exists(arguments.remember):
            remembered = open_checkpoint(read_file(arguments.remember, MAX_CHECKPOINT), policy)
        checkpoint, signed = verify_log(arguments.address, policy, remembered)
        if arguments.remember:
            with open(arguments.remember + ".new", "wb") as file:
                file.write(signed)
            os.replace(arguments.remember + ".new", arguments.remember)
        print(f"{checkpoint.origin}: {checkpoint.size} leaves, cosigned by {len(checkpoint.witnesses)}")
    except (Wrong, OSError, http.client.HTTPException, RecursionError) as error:
        sys.exit(f"verify: {error}")


if __name__ == "__main__":
    main()
