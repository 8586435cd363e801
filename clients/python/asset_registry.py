"""asset_registry is a client of the asset registry. It needs the standard library only.

The client keeps numbers exact: `quantity` is a Decimal, and coordinates keep their digits. It repeats a request
after 429 and 503 when `Retry-After` permits, and gives up at a deadline. Keys and tokens never stand in errors or
in `repr`. See docs/contract.md for the behaviour of the registry.
"""

from __future__ import annotations

import base64
import contextlib
import email.utils
import hashlib
import hmac
import http.client
import io
import itertools
import json
import mimetypes
import os
import random
import re
import selectors
import socket
import ssl
import threading
import time
import urllib.parse
import uuid
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Generic, Literal, NamedTuple, TypedDict, TypeVar, cast

# A release writes its own version.
__version__ = "0.0.0"

API_VERSION = "2.5"
"""API_VERSION is the version of the API that the client speaks."""

# The fields of an asset: docs/contract.md, "Asset" and the sections after it. A field that an answer lacks is absent.


class Classification(TypedDict, total=False):
    """Classification is a code of a scheme, such as CAV-PS."""

    scheme: str
    id: str
    description: str
    description_en: str
    description_ru: str
    uri: str


class Unit(TypedDict, total=False):
    """Unit is a unit of measurement."""

    code: str
    name: str
    name_en: str
    name_ru: str


class Address(TypedDict, total=False):
    """Address is a postal address."""

    countryName: str
    countryName_en: str
    countryName_ru: str
    streetAddress: str
    locality: str
    region: str
    postalCode: str


class Location(TypedDict, total=False):
    """Location holds coordinates, which come back as sent."""

    latitude: str | int | Decimal
    longitude: str | int | Decimal
    elevation: str | int | Decimal


class RegistrationDetails(TypedDict, total=False):
    """RegistrationDetails is the state of an item's registration."""

    status: Literal["unknown", "registering", "complete"]
    registrationID: str
    registrationDate: str


class Item(TypedDict, total=False):
    """Item is one thing of an asset. `quantity` is exact; input may also be an int or a numeric string."""

    id: str
    description: str
    description_en: str
    description_ru: str
    classification: Classification
    additionalClassifications: list[Classification]
    unit: Unit
    quantity: Decimal
    address: Address
    location: Location
    registrationDetails: RegistrationDetails
    schema_properties: dict[str, Any]


class Decision(TypedDict, total=False):
    """Decision is a decision that the asset rests on."""

    id: str
    title: str
    title_en: str
    title_ru: str
    decisionDate: str
    decisionID: str
    decisionOf: str
    relatedItem: str


class Document(TypedDict, total=False):
    """Document is one version of a document. Documents.upload gives the registry its file."""

    id: str
    documentType: str
    title: str
    title_en: str
    title_ru: str
    description: str
    description_en: str
    description_ru: str
    language: str
    index: int
    url: str
    hash: str
    sha256: str
    size: int
    accessDetails: str
    format: str
    documentOf: Literal["asset", "item"]
    relatedItem: str
    author: str
    datePublished: str
    dateModified: str
    previousVersions: list[Document]
    thumbnails: list[Thumbnail]


class Thumbnail(TypedDict, total=False):
    """Thumbnail is a small version of an illustration. A reading may find that there is none."""

    url: str
    side: int


class Identifier(TypedDict, total=False):
    """Identifier names an organisation. `id` comes back as sent."""

    scheme: str
    id: str | int
    legalName: str
    legalName_en: str
    legalName_ru: str
    uri: str


class ContactPoint(TypedDict, total=False):
    """ContactPoint needs `email` or `telephone`."""

    name: str
    name_en: str
    name_ru: str
    email: str
    telephone: str
    faxNumber: str
    url: str


class Organisation(TypedDict, total=False):
    """Organisation is a custodian or a holder of an asset."""

    name: str
    name_en: str
    name_ru: str
    identifier: Identifier
    additionalIdentifiers: list[Identifier]
    address: Address
    contactPoint: ContactPoint
    additionalContactPoints: list[ContactPoint]
    kind: Literal["general", "special", "other"]


class RelatedProcess(TypedDict, total=False):
    """RelatedProcess links an asset to a lot or an auction."""

    id: str
    type: Literal["asset", "auction", "lot"]
    relatedProcessID: str
    identifier: str
    parentID: str


class Period(TypedDict, total=False):
    """Period has a start and an end, both timestamps."""

    startDate: str
    endDate: str


class Asset(TypedDict, total=False):
    """Asset is an asset as the registry shows it. An entry of a page has `id`, `dateModified` and the asked fields."""

    id: str
    assetID: str
    assetType: str
    status: Literal["draft", "pending", "verification", "active", "complete", "deleted"]
    mode: str
    title: str
    title_en: str
    title_ru: str
    description: str
    description_en: str
    description_ru: str
    items: list[Item]
    decisions: list[Decision]
    documents: list[Document]
    relatedProcesses: list[RelatedProcess]
    assetCustodian: Organisation
    assetHolder: Organisation
    rectificationPeriod: Period
    sandboxParameters: str
    owner: str
    date: str
    dateModified: str


class OwnAsset(Asset, total=False):
    """OwnAsset is an entry of the list of own assets. `reference` is the name that the broker gave the asset."""

    reference: str


class TransferData(TypedDict, total=False):
    """TransferData is the public part of a transfer. `usedFor` is the path of the asset that took it."""

    id: str
    date: str
    usedFor: str


class Revision(TypedDict, total=False):
    """Revision is one change of an asset. `changes` is a JSON Patch (RFC 6902). `erased` tells who erased it."""

    revision: int
    date: str
    author: dict[str, str]
    changes: list[dict[str, Any]]
    changesSize: int
    erased: dict[str, Any]


class Leaf(TypedDict, total=False):
    """Leaf is an entry of the public log: one change of a public asset (docs/log.md, "Leaves")."""

    asset: str
    commitment: str
    kind: Literal["publish", "change", "withdraw", "import"]
    position: int
    revision: int
    v: int


class Proof(TypedDict, total=False):
    """Proof shows that the public log has a change (docs/log.md, "Proofs"). This module does not verify it.

    A withdrawal and an erased revision have no `salt` and no `asset`.
    """

    index: int
    leaf: Leaf
    salt: str
    path: list[str]
    checkpoint: str
    asset: Asset


class WebhookFilters(TypedDict, total=False):
    """WebhookFilters are filters of a search. Each is met by any of its values."""

    status: list[str]
    type: list[str]
    classification: list[str]
    region: list[str]
    locality: list[str]
    custodian: list[str]
    owner: list[str]


class Webhook(TypedDict, total=False):
    """Webhook sends the changes of the feed to an address (docs/contract.md, "Webhooks").

    A new one needs `url`. `state` "disabled" pauses it, "active" resumes it. `behind` is in seconds.
    """

    id: str
    dateCreated: str
    broker: str
    byAdministrator: bool
    url: str
    version: str
    mode: Literal["", "test", "_all_"]
    opt_fields: Literal["", "*"]
    filters: WebhookFilters
    state: Literal["unverified", "active", "disabled"]
    reason: Literal["paused", "stopped", "gone", "failing", "unverified"]
    offset: str
    behind: int
    failures: int
    lastError: str
    next: str
    succeeded: str
    publicKey: str


class SearchHit(TypedDict, total=False):
    """SearchHit is a found asset with some of its fields. Long texts are cut."""

    id: str
    dateModified: str
    assetID: str
    assetType: str
    status: str
    date: str
    title: str
    title_en: str
    description: str
    owner: str
    rectificationPeriod: Period
    assetCustodian: Organisation
    items: list[Item]


class SearchFacetValue(TypedDict, total=False):
    """SearchFacetValue is a value, as the filter takes it, and how many assets have it. Not each has a `name`."""

    value: str
    name: str
    name_en: str
    count: int


class SearchFacet(TypedDict, total=False):
    """SearchFacet counts the found assets by the values of a property."""

    values: list[SearchFacetValue]
    more: bool


class SearchReplacement(TypedDict):
    """SearchReplacement is a word of a question and another one in its place."""

    word: str
    by: str


class SearchRange(TypedDict, total=False):
    """SearchRange is a range of areas in the words of a question. It is a filter by quantities."""

    words: str
    quantity_from: float
    quantity_to: float
    quantity_unit: str


class SearchInterpretation(TypedDict, total=False):
    """SearchInterpretation says how the words of a question were read, if they found nothing as they are or have a range."""

    steps: list[str]
    used: list[str]
    left_out: list[str]
    replaced: list[SearchReplacement]
    not_found: list[str]
    range: SearchRange


class SearchSuggestions(TypedDict):
    """SearchSuggestions are texts to search for."""

    data: list[str]


class SearchAnswer(TypedDict, total=False):
    """SearchAnswer is what a search finds. It has every change of the feed up to `position`."""

    data: list[SearchHit]
    total: int
    position: str
    facets: dict[str, SearchFacet]
    next_page: dict[str, str]
    interpreted: SearchInterpretation


# Segment is a file of a snapshot, with the assets of a range of ids as lines, compressed with zstd.
Segment = TypedDict("Segment", {  # "from" is a word of the language
    "from": str, "to": str, "assets": int, "bytes": int, "uncompressedBytes": int, "sha256": str, "path": str,
})


class Snapshot(TypedDict, total=False):
    """Snapshot lists the files with all listed assets. `position` is where to follow the feed from."""

    position: str
    date: str
    assets: int
    bytes: int
    uncompressedBytes: int
    files: int
    fileBytes: int
    checkpoint: str
    segments: list[Segment]


T = TypeVar("T")


@dataclass(frozen=True)
class Answer(Generic[T]):
    """Answer is an object as the registry returned it, with its `ETag` for If-Match; "" if there was none.

    `ignored` names fields that a write has sent and the registry has ignored, such as `documents` in an asset. It is
    empty if an object was sent back as the registry had given it: one with a `dateModified`.
    """

    data: T
    etag: str = ""
    ignored: tuple[str, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class Created(Answer[Asset]):
    """Created is an asset with its owner token and its transfer token, which the registry shows this once."""

    token: str = field(default="", repr=False)
    transfer: str = field(default="", repr=False)


@dataclass(frozen=True)
class Transfer(Answer[TransferData]):
    """Transfer is a new transfer. After a take-over, the asset has its tokens."""

    token: str = field(default="", repr=False)
    transfer: str = field(default="", repr=False)


@dataclass(frozen=True)
class NewWebhook:
    """NewWebhook is a webhook with its secret, which verifies signatures `v1`. The registry shows it this once."""

    data: Webhook
    secret: str = field(default="", repr=False)


@dataclass(frozen=True)
class Message:
    """Message is a message to the receiver of a webhook.

    `type` is "assets.changed", with `entries` up to `offset`, or "webhook.challenge", whose answer is
    `{"challenge": challenge}` with a status 2xx.
    """

    type: str
    timestamp: str
    offset: str = ""
    entries: Sequence[Asset] = ()
    challenge: str = ""


@dataclass(frozen=True)
class Page:
    """Page is a page of the feed. `next` and `previous` are offsets; `previous` is "" without a previous page."""

    entries: list[Asset]
    next: str
    previous: str


@dataclass(frozen=True)
class Change:
    """Change is an entry of the feed. A follower that starts at `position` goes on after this entry."""

    data: Asset
    position: str


# Errors.


class ErrorObject(NamedTuple):
    """ErrorObject is one problem of a request, as the registry tells it."""

    location: str
    name: str
    description: str


class RegistryError(Exception):
    """RegistryError is the base of all errors of this module. `attempts` counts the requests that were sent.

    `uncertain` tells that an earlier attempt of the same write may have been done.
    """

    attempts: int = 0
    uncertain: bool = False


class TransportError(RegistryError):
    """TransportError: no whole answer arrived. The registry may have done the request or not."""


class DeadlineExceeded(TransportError):
    """DeadlineExceeded: no whole answer arrived in time."""


class BadAnswer(RegistryError):
    """BadAnswer: the answer is too large, or it is not what the API describes."""


class BadSignature(RegistryError):
    """BadSignature: a message to a receiver is not of the registry, or it is not of now."""


class ApiError(RegistryError):
    """ApiError is a refusal by the registry, with all of its error objects.

    `retry_after` is in seconds, None without the header. `request_id` names the request in the registry's log. A 412
    that is `uncertain` can be the effect of the caller's own change, whose answer was lost.
    """

    def __init__(self, request: str, status: int, errors: Sequence[ErrorObject], retry_after: float | None = None,
                 request_id: str = "") -> None:
        texts = [f"{e.location}/{e.name}: {e.description}" for e in errors]
        super().__init__(f"{request}: {status} {'; '.join(texts)}".rstrip())
        self.status = status
        self.errors = tuple(errors)
        self.retry_after = retry_after
        self.request_id = request_id


class InvalidRequest(ApiError):
    """InvalidRequest is a 400: each faulty field is in `errors`."""


class Unauthorized(ApiError):
    """Unauthorized is a 401: no valid API key."""


class Forbidden(ApiError):
    """Forbidden is a 403: the key may not do this, or the owner token is wrong."""


class NotFound(ApiError):
    """NotFound is a 404."""


class OffsetGone(NotFound):
    """OffsetGone is the 404 of a listing's offset: a synchroniser starts its copy over."""


class Conflict(ApiError):
    """Conflict is a 409: others keep changing the same asset, or a reference stands for one with other fields."""


class PreconditionFailed(ApiError):
    """PreconditionFailed is a 412: the asset has changed since it had the tag of `if_match`."""


class TooLarge(ApiError):
    """TooLarge is a 413: the body or the asset is too large."""


class TooManyRequests(ApiError):
    """TooManyRequests is a 429 that was still there after the retries."""


class Unavailable(ApiError):
    """Unavailable is a 502, 503 or 504 that was still there after the retries."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: InvalidRequest, 401: Unauthorized, 403: Forbidden, 404: NotFound, 409: Conflict, 412: PreconditionFailed,
    413: TooLarge, 429: TooManyRequests, 502: Unavailable, 503: Unavailable, 504: Unavailable,
}

# JSON with exact numbers.


def _decode(text: bytes) -> Any:
    """_decode reads JSON. Fractions become Decimal; `quantity` always does. It raises ValueError."""
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_no_constant, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError("it nests too deeply") from None
    except ArithmeticError:
        raise ValueError("a number is beyond all bounds") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if type(value.get("quantity")) is int:
        value["quantity"] = Decimal(value["quantity"])
    return value


def _encode(value: Any) -> str:
    """_encode writes JSON. It raises TypeError for a float, which cannot hold a decimal exactly."""
    if value is None or isinstance(value, (bool, int, str)):
        return json.dumps(value)
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError("a number must be finite")
        return str(value)
    if isinstance(value, float):
        raise TypeError("a float is not exact: use Decimal, int or str")
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(str(name))}:{_encode(member)}" for name, member in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ",".join(map(_encode, value)) + "]"
    raise TypeError(f"JSON has no {type(value).__name__}")


# The connection. Every wait for the network ends at a deadline, a time of time.monotonic.

_IDLE = 60.0  # seconds for which an unused connection is kept; the registry closes one after 120
_SILENCE = 30.0  # seconds without a byte after which a stream is given up (docs/contract.md, "Streams")
_LOOK = 0.1  # seconds between two looks at `stop` while a stream is silent


class _Wire:
    """_Wire is a socket that raises TimeoutError once its deadline has passed.

    With `stop`, the wire carries a stream: each read has a deadline of its own, and `stop` is the end.
    """

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self.sock = sock
        self.deadline = deadline
        self.stop: threading.Event | None = None

    def await_bytes(self, stop: threading.Event) -> bool:
        """await_bytes waits until there is something to read. It returns False if `stop` is set before."""
        self.deadline = time.monotonic() + _SILENCE
        while not stop.is_set():
            pending = isinstance(self.sock, ssl.SSLSocket) and self.sock.pending() > 0
            if pending or _readable([self.sock], min(_LOOK, _left(self.deadline))):
                return True
        return False

    def arm(self) -> socket.socket:
        self.sock.settimeout(_left(self.deadline))
        return self.sock

    def sendall(self, data: bytes) -> None:
        self.arm().sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Reader(self))

    def close(self) -> None:
        self.sock.close()


class _Reader(io.RawIOBase):
    """_Reader reads from a wire. The socket stays open until the wire and the reader are closed."""

    def __init__(self, wire: _Wire) -> None:
        self.wire = wire
        self.raw = wire.sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self.wire.stop is not None and not self.wire.await_bytes(self.wire.stop):
            return 0
        self.wire.arm()
        return self.raw.readinto(buffer)

    def close(self) -> None:
        self.raw.close()
        super().close()


def _readable(sockets: Sequence[socket.socket], within: float) -> list[Any]:
    """_readable returns the sockets that have something to read or are closed. It waits until there is one."""
    # select fails for descriptors above 1,023. Windows has no poll, and no such bound.
    selector: selectors.BaseSelector = getattr(selectors, "PollSelector", selectors.SelectSelector)()
    with selector:
        for sock in sockets:
            selector.register(sock, selectors.EVENT_READ)
        return [key.fileobj for key, _ in selector.select(within)]


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("deadline exceeded")
    return left


class _Connection(http.client.HTTPConnection):
    """_Connection is an open connection to the registry."""

    def __init__(self, address: tuple[str, int], tls: ssl.SSLContext | None, deadline: float) -> None:
        super().__init__(*address)
        sock = socket.create_connection(address, _left(deadline))
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls is not None:
                sock.settimeout(_left(deadline))
                sock = tls.wrap_socket(sock, server_hostname=address[0])
        except BaseException:
            sock.close()
            raise
        self.wire = _Wire(sock, deadline)
        self.sock = self.wire
        self.used = time.monotonic()


class _ServerID:
    """_ServerID holds the cookie that names the registry's data (docs/contract.md, "Server cookie")."""

    def __init__(self, value: str = "") -> None:
        self.value = value

    def update(self, sent: str, headers: http.client.HTTPMessage) -> bool:
        """update keeps the cookie of an answer. It reports whether the request sent the cookie of other data.

        A request of another thread may have got the new cookie before. So it is compared with the one that was sent.
        """
        for line in headers.get_all("Set-Cookie") or []:
            if match := re.match(r"SERVER_ID=([!#-+\--:<-\[\]-~]{1,200})(?:;|$)", line):
                self.value = match[1]
                return sent not in ("", match[1])
        return False


@dataclass(frozen=True)
class _Request:
    """_Request is a request. `repeatable` tells that doing it twice is harmless."""

    method: str
    path: str
    headers: dict[str, str] = field(repr=False)
    body: bytes | Callable[[], Iterator[bytes]] | None = field(repr=False)
    repeatable: bool
    longer: float = 0.0
    """longer is how many seconds an attempt may take beyond the bounds of all others."""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True)
class _Reply:
    """_Reply is an answer that was read to its end."""

    status: int
    headers: http.client.HTTPMessage
    text: bytes

    def json(self, request: _Request) -> dict[str, Any]:
        """json returns the object of the body. It raises BadAnswer."""
        try:
            value = _decode(self.text)
        except ValueError as error:
            raise BadAnswer(f"{request}: {self.status} with a body that is no JSON: {type(error).__name__}") from None
        if not isinstance(value, dict) or "data" not in value:
            raise BadAnswer(f"{request}: {self.status} with a body that is no object with data")
        return value


def _at(body: Any, kind: type[T], *path: str) -> T:
    """_at returns the value of a type at a path in an answer. It raises BadAnswer."""
    value = body
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if not isinstance(value, kind):
        raise BadAnswer(f"the answer has no {kind.__name__} at {'.'.join(path)}")
    return value


def _list(body: dict[str, Any]) -> list[Any]:
    """_list returns the objects of an answer. It raises BadAnswer."""
    data = _at(body, list, "data")
    if not all(isinstance(entry, dict) for entry in data):
        raise BadAnswer("the answer has a list of other values than objects")
    return data


def _token(body: dict[str, Any], name: str) -> str:
    """_token returns a token of an answer, "" if it has none."""
    access = body.get("access")
    token = access.get(name) if isinstance(access, dict) else None
    return token if isinstance(token, str) else ""


def _api_error(request: _Request, reply: _Reply) -> ApiError:
    """_api_error reads a refusal. A proxy's refusal may lack error objects."""
    errors = []
    try:
        for e in _decode(reply.text)["errors"]:
            errors.append(ErrorObject(str(e["location"]), str(e["name"]), str(e["description"])))
    except (ValueError, KeyError, TypeError):
        pass  # the status alone says what kind of refusal it is
    kind = _BY_STATUS.get(reply.status, ApiError)
    if kind is NotFound and any((e.location, e.name) == ("querystring", "offset") for e in errors):
        kind = OffsetGone
    return kind(str(request), reply.status, errors, _retry_after(reply.headers), reply.headers.get("X-Request-ID", ""))


def _retry_after(headers: http.client.HTTPMessage) -> float | None:
    """_retry_after returns the seconds of Retry-After (RFC 9110, 10.2.3), None if there are none."""
    value = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"[0-9]+", value):
        return _LONGEST if len(value) > 9 else float(value)
    try:
        return min(_LONGEST, max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time()))
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _inflate(text: bytes, most: int) -> bytes:
    """_inflate undoes gzip, up to `most` bytes and one more. It raises HTTPException if the end is missing."""
    plain = b""
    while text and len(plain) <= most:
        inflater = zlib.decompressobj(wbits=31)
        try:
            plain += inflater.decompress(text, most + 1 - len(plain))
        except zlib.error:
            raise http.client.HTTPException("it is no gzip") from None
        if len(plain) <= most and not inflater.eof:
            raise http.client.IncompleteRead(b"")
        text = inflater.unused_data  # a further member
    return plain


# Streams (docs/contract.md, "Streams").

_MOST_MESSAGE = 8 << 20  # bytes of one message


class _Message(NamedTuple):
    """_Message is a message of an event stream. A heartbeat is empty."""

    event: str
    id: str
    data: str
    retry: float | None  # seconds


def _messages(read: Callable[[], bytes]) -> Iterator[_Message]:
    """_messages reads an event stream. It leaves out a message without its end. It raises ValueError."""
    fields: dict[str, list[str]] = {}
    size = 0
    for line in _lines(read):
        size += len(line)
        if size > _MOST_MESSAGE:
            raise ValueError(f"a message has more than {_MOST_MESSAGE} bytes")
        if line:
            name, _, value = line.decode().partition(":")
            fields.setdefault(name, []).append(value.removeprefix(" "))
            continue
        event, offset, retry = (fields.get(name, [""])[-1] for name in ("event", "id", "retry"))
        yield _Message(event, offset, "\n".join(fields.get("data", [])),
                       int(retry) / 1000 if re.fullmatch(r"[0-9]{1,9}", retry) else None)
        fields, size = {}, 0


def _lines(read: Callable[[], bytes]) -> Iterator[bytes]:
    """_lines reads lines, without their ends. It leaves out a line without its end. It raises ValueError."""
    rest = bytearray()
    while chunk := read():
        begin, searched = 0, len(rest)
        rest += chunk
        while (end := rest.find(b"\n", max(begin, searched))) >= 0:
            yield bytes(rest[begin:end]).removesuffix(b"\r")
            begin = end + 1
        del rest[:begin]
        if len(rest) > _MOST_MESSAGE:
            raise ValueError(f"a message has more than {_MOST_MESSAGE} bytes")


def _entry(message: _Message) -> Page:
    """_entry returns a message as a page, which has no entry for a bookmark. It raises ValueError."""
    if not message.data or message.event not in ("", "bookmark"):
        return Page([], "", "")
    entry = _decode(message.data.encode())
    if not message.id or not isinstance(entry, dict):
        raise ValueError("a message has no offset or no object")
    if not message.event and not isinstance(entry.get("dateModified"), str):
        raise ValueError("an entry has no dateModified")
    return Page([cast(Asset, entry)] if not message.event else [], message.id, "")


_BACKOFF = 0.25  # seconds before the second attempt, if there is no Retry-After; then twice as long each time
_BACKOFF_MOST = 30.0
_ATTEMPT = 20.0  # seconds for one attempt; the registry itself answers within 10
_LONGEST = 999_999_999.0  # seconds, which a longer Retry-After counts as
_LONGEST_FOLLOW = 3600.0  # seconds that a follower waits at most before it asks again


def _pause(error: RegistryError, attempt: int) -> float:
    """_pause returns the seconds to wait after a failed attempt: Retry-After and up to a quarter, or a backoff."""
    after = error.retry_after if isinstance(error, ApiError) else None
    if after:  # a server that says 0 each time is not asked without a pause
        return after + random.uniform(0, after / 4 + _BACKOFF)
    return random.uniform(0.5, 1) * min(_BACKOFF * 2.0 ** min(attempt - 1, 20), _BACKOFF_MOST)


@contextlib.contextmanager
def _told(request: _Request) -> Iterator[None]:
    """_told raises failures of the connection as TransportError, and failures of the text as BadAnswer."""
    try:
        yield
    except TimeoutError as error:
        raise DeadlineExceeded(f"{request}: no whole answer in time") from error
    except (OSError, http.client.HTTPException) as error:
        raise TransportError(f"{request}: {type(error).__name__}: no whole answer") from error
    except ValueError as error:
        raise BadAnswer(f"{request}: the body cannot be read: {error}") from error


def _with_cookie(headers: dict[str, str], server_id: str) -> dict[str, str]:
    return headers | ({"Cookie": f"SERVER_ID={server_id}"} if server_id else {})


def _page(body: dict[str, Any]) -> Page:
    """_page returns the page of an answer. It raises BadAnswer."""
    entries, offset = _list(body), _at(body, str, "next_page", "offset")
    if entries and not offset or not all(isinstance(entry.get("dateModified"), str) for entry in entries):
        raise BadAnswer("the answer has no offset of the next page or of an entry")
    return Page(entries, offset, _at(body, str, "prev_page", "offset") if "prev_page" in body else "")


def _secret(name: str, value: str) -> str:
    """_secret checks a key or a token. Its errors never hold the value."""
    if not re.fullmatch(r"[!-~]{1,1000}", value):
        raise ValueError(f"{name} must have 1 to 1000 visible ASCII characters")
    return value


class Client:
    """Client speaks to one registry. Several threads may use it at the same time.

    base_url is the address of the registry without /api, key an API key ("" to read only). timeout bounds each call,
    its retries included, in seconds. attempts bounds the requests of one call, max_answer the bytes of an answer.
    on_retry hears of each failed attempt and of the seconds until the next one. The resolution of a name by the
    system is the only wait that the deadline does not end.

    The client repeats every request after a 429. After a 502, 503, 504 or a lost answer, the registry may have done
    the request. The client then repeats reads, create, make_transfer, take_over, changes and replays of webhooks, and
    writes with if_match. A second attempt of a write that was done is refused with PreconditionFailed.
    """

    def __init__(self, base_url: str, key: str = "", *, timeout: float = 60.0, attempts: int = 6,
                 max_answer: int = 16 << 20, tls: ssl.SSLContext | None = None,
                 on_retry: Callable[[RegistryError, float], None] | None = None) -> None:
        url = urllib.parse.urlsplit(base_url)
        if url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment or "@" in url.netloc:
            raise ValueError("base_url must be http://HOST or https://HOST, without a key, a query or a fragment")
        self._address = (url.hostname, url.port or (443 if url.scheme == "https" else 80))
        self._tls = (tls or ssl.create_default_context()) if url.scheme == "https" else None
        self._base = url.path.rstrip("/")
        self._root = f"{self._base}/api/{API_VERSION}"
        self._headers = {"Host": url.netloc, "User-Agent": f"asset-registry-python/{__version__}",
                         "Accept": "application/json", "Accept-Encoding": "gzip"}
        if key:
            if ":" in key:
                raise ValueError("key must not contain a colon")
            text = base64.b64encode((_secret("key", key) + ":").encode()).decode()
            self._headers["Authorization"] = f"Basic {text}"
        self._base_url = base_url
        self._timeout, self._attempts, self._max_answer, self._on_retry = timeout, attempts, max_answer, on_retry
        self._server = _ServerID()
        self._lock = threading.Lock()
        self._idle: list[_Connection] = []
        self.items: Parts[Item] = Parts(self, "items")
        self.decisions: Parts[Decision] = Parts(self, "decisions")
        self.documents = Documents(self, "documents")
        self.related_processes: Parts[RelatedProcess] = Parts(self, "related_processes")
        self.webhooks = Webhooks(self)

    def __repr__(self) -> str:
        return f"Client({self._base_url!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """close closes the idle connections. The client can still be used."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    # Assets.

    def create(self, asset: Asset, *, idempotency_key: str = "", reference: str = "") -> Created:
        """create creates a draft. Without an idempotency_key it makes one, so that its retries create one asset.

        A caller that repeats a failed create within 24 hours passes a key of its own, the same each time.

        A reference is the broker's own name for the asset, and stands for one asset, for ever. A later create with the
        same reference and asset returns that asset, with empty tokens: an administrator gives it others, with recover.
        With another asset it raises Conflict, which names the first one.
        """
        reply, body = self._create("/assets", asset, idempotency_key, reference)
        return Created(cast(Asset, _at(body, dict, "data")), _etag(reply), _token(body, "token"),
                       _token(body, "transfer"), ignored=_ignored(reply, asset))

    def get(self, asset_id: str, *, known: Answer[Asset] | None = None) -> Answer[Asset]:
        """get reads an asset. If it has not changed since `known`, get returns `known`."""
        return self._get(f"/assets/{_quote(asset_id)}", known)

    def change(self, asset_id: str, change: Asset, *, token: str = "", if_match: str = "") -> Answer[Asset]:
        """change merges into an asset (PATCH). With the tag of an answer in if_match, it changes that state only."""
        return self._write("PATCH", f"/assets/{_quote(asset_id)}", change, token, if_match)

    def replace(self, asset_id: str, asset: Asset, *, token: str = "", if_match: str = "") -> Answer[Asset]:
        """replace sets everything that the caller may write (PUT). A field that it leaves out is cleared."""
        return self._write("PUT", f"/assets/{_quote(asset_id)}", asset, token, if_match)

    def remove(self, asset_id: str, *, token: str = "", if_match: str = "") -> None:
        """remove removes a draft for good. A second attempt after a first one that was done raises NotFound."""
        headers = {"If-Match": if_match} if if_match else {}
        self._send("DELETE", f"/assets/{_quote(asset_id)}", headers=headers, token=token, repeatable=bool(if_match))

    def own_assets(self, *, offset: str = "", limit: int = 100, descending: bool = False, mode: str = "",
                   status: str = "", fields: Sequence[str] = ()) -> Iterator[OwnAsset]:
        """own_assets yields the assets of the key's broker, drafts too, in the order of their last change.

        It reads pages of at most `limit`, to the end. `mode` "test" leaves out real assets, and `status` those in
        another state. The field `reference` is the name that the broker gave the asset. `dateModified` of an asset is
        the offset from which a later call goes on.
        """
        query = _listing(limit, mode, fields) | ({"descending": "1"} if descending else {})
        query |= {"status": status} if status else {}
        server = _ServerID(self._server.value)
        while (page := self._page(query, offset, server, "/me/assets")).entries:
            yield from cast("list[OwnAsset]", page.entries)
            offset = page.next

    def recover(self, asset_id: str, reason: str, *, if_match: str = "") -> Created:
        """recover gives an asset new tokens, for its owner. It needs an administrator's key.

        The old tokens end at once. The audit log keeps the reason. Without if_match it is not repeated after a lost
        answer: call it again, and take the tokens of the last answer.
        """
        headers = {"If-Match": if_match} if if_match else {}
        reply, body = self._send("POST", f"/assets/{_quote(asset_id)}/recovery", {"reason": reason}, headers=headers,
                                 repeatable=bool(if_match))
        return Created(cast(Asset, _at(body, dict, "data")), _etag(reply), _token(body, "token"),
                       _token(body, "transfer"))

    def revisions(self, asset_id: str, *, token: str = "", limit: int = 100) -> Iterator[Revision]:
        """revisions yields the changes of an asset, newest first."""
        path, offset = f"/assets/{_quote(asset_id)}/revisions", ""
        while True:
            query = {"limit": str(limit)} | ({"offset": offset} if offset else {})
            _, body = self._send("GET", path, query=query, token=token, repeatable=True)
            revisions = _list(body)
            yield from revisions
            if not revisions:
                return
            if not (offset := _at(body, str, "next_page", "offset")):
                raise BadAnswer("the answer has no offset of the next page")

    def proof(self, asset_id: str, revision: int = 0) -> Proof:
        """proof reads the proof of a revision, from 1; without one, of the newest public change.

        It waits while the log's newest checkpoint does not cover the change.
        """
        query = {"revision": str(revision)} if revision else {}
        path = f"/assets/{_quote(asset_id)}/proof"
        return cast(Proof, _at(self._send("GET", path, query=query, repeatable=True)[1], dict, "data"))

    def search(self, **parameters: str | Sequence[str]) -> SearchAnswer:
        """search searches assets: search(q="приміщення", status=["active"], facets=["region"]).

        The contract lists the parameters, in "Search". For the next page, add `search_after` of `next_page`.
        """
        query = urllib.parse.urlencode(parameters, doseq=True)
        return cast(SearchAnswer, self._send("GET", "/search" + ("?" + query if query else ""), repeatable=True)[1])

    def suggest(self, text: str, **filters: str | Sequence[str]) -> list[str]:
        """suggest returns at most 10 texts that continue a text, and find an asset that meets the filters of a search.

        Texts of the most assets come first.
        """
        query = urllib.parse.urlencode({"q": text, **filters}, doseq=True)
        answer = self._send("GET", "/search/suggest?" + query, repeatable=True)[1]
        return cast("list[str]", _at(answer, list, "data"))

    def snapshot(self) -> Snapshot:
        """snapshot reads the list of the newest snapshot's files. NotFound: there is none."""
        return cast(Snapshot, _at(self._send("GET", "/snapshot", repeatable=True)[1], dict, "data"))

    # Owners.

    def make_transfer(self) -> Transfer:
        """make_transfer makes a transfer, with which the caller can take an asset over."""
        _, body = self._send("POST", "/transfers", {}, repeatable=True)  # an unused transfer ends by itself
        access = _at(body, dict, "access")
        return Transfer(cast(TransferData, _at(body, dict, "data")), "", _at(access, str, "token"),
                        _at(access, str, "transfer"))

    def transfer(self, transfer_id: str) -> TransferData:
        """transfer reads a transfer."""
        body = self._send("GET", f"/transfers/{_quote(transfer_id)}", repeatable=True)[1]
        return cast(TransferData, _at(body, dict, "data"))

    def take_over(self, asset_id: str, transfer: Transfer, asset_transfer: str, *, if_match: str = "") -> Answer[Asset]:
        """take_over makes the caller the owner. asset_transfer is the asset's transfer token.

        From then on `transfer.token` is the asset's owner token and `transfer.transfer` its transfer token.
        """
        data = {"id": transfer.data["id"], "transfer": _secret("asset_transfer", asset_transfer)}
        path = f"/assets/{_quote(asset_id)}/ownership"
        return self._write("POST", path, data, "", if_match, repeatable=True)  # the registry permits repetitions

    def me(self) -> dict[str, Any]:
        """me tells whose key this is and what its rate limits leave."""
        return cast("dict[str, Any]", _at(self._send("GET", "/me", repeatable=True)[1], dict, "data"))

    # The feed.

    def pages(self, *, offset: str = "", limit: int = 100, descending: bool = False, mode: str = "",
              fields: Sequence[str] = ()) -> Iterator[Page]:
        """pages yields the pages of the feed from an offset on, until an empty one, which it leaves out."""
        query = _listing(limit, mode, fields) | ({"descending": "1"} if descending else {})
        server = _ServerID(self._server.value)
        while (page := self._page(query, offset, server)).entries:
            yield page
            offset = page.next

    def follow(self, position: str = "", *, limit: int = 100, mode: str = "", fields: Sequence[str] = (),
               interval: float = 300.0, stop: threading.Event | None = None,
               on_start_over: Callable[[], None] | None = None, live: bool = False,
               on_position: Callable[[str], None] | None = None) -> Iterator[Change]:
        """follow yields every change after a position, and goes on until `stop` is set.

        With `live`, changes come as they happen, by a stream. follow begins a new one when it ends, breaks off or is
        silent for 30 s. Without `live`, and from a registry without streams, follow reads pages. At an empty page it
        waits for `interval` seconds.

        While the registry is away it tries again, for as long as that takes, at least each hour; on_retry hears of it.
        If the registry does not know the position any more, the copy has to start over: follow calls on_start_over,
        which clears the copy, and begins at the beginning. Without on_start_over it raises OffsetGone. Each change
        carries the position to save. on_position hears of a position that has moved on without a change.
        """
        stop = stop or threading.Event()
        offset, _, server_id = position.partition(";")
        query, server, failures = _listing(limit, mode, fields), _ServerID(server_id or self._server.value), 0
        read = self._stream if live else self._poll
        while not stop.is_set():
            try:
                with contextlib.closing(read(query, offset, server, interval, stop)) as pages:
                    for page in pages:
                        failures = 0
                        for entry in page.entries:
                            yield Change(entry, f"{entry['dateModified']};{server.value}")
                        if not page.entries and page.next not in ("", offset) and on_position is not None:
                            on_position(f"{page.next};{server.value}")
                        offset = page.next or offset
            except OffsetGone:
                if on_start_over is None or not offset:
                    raise
                on_start_over()
                offset = ""
            except (TransportError, TooManyRequests, Unavailable) as error:
                failures += 1
                wait = min(_pause(error, failures if live else failures + self._attempts), _LONGEST_FOLLOW)
                self._tell(error, wait)
                stop.wait(wait)

    def _page(self, query: dict[str, str], offset: str, server: _ServerID, path: str = "/assets") -> Page:
        query = query | ({"offset": offset} if offset else {})
        return _page(self._send("GET", path, query=query, repeatable=True, server=server)[1])

    def _poll(self, query: dict[str, str], offset: str, server: _ServerID, interval: float,
              stop: threading.Event) -> Generator[Page, None, None]:
        """_poll yields one page. It waits after an empty one."""
        page = self._page(query, offset, server)
        yield page
        if not page.entries:
            stop.wait(interval * random.uniform(1, 1.1))

    def _stream(self, query: dict[str, str], offset: str, server: _ServerID, interval: float,
                stop: threading.Event) -> Generator[Page, None, None]:
        """_stream yields each message of one stream as a page, and waits after it. It raises what _exchange raises.

        A registry without streams answers a page, which _stream yields as _poll does.
        """
        headers = self._headers | {"Accept": "text/event-stream", "Accept-Encoding": "identity"}
        path = self._target("/assets", query | ({"offset": offset} if offset else {}))
        request = _Request("GET", path, headers, None, True)
        connection: _Connection | None = None
        answer: http.client.HTTPResponse | None = None
        heard, retry = False, _BACKOFF
        try:
            with _told(request):
                connection = _Connection(self._address, self._tls, time.monotonic() + _ATTEMPT)
                connection.request("GET", request.path, None, _with_cookie(headers, server.value))
                answer = response = connection.getresponse()
                server.update(server.value, response.headers)
                if response.status != 200 or response.headers.get_content_type() != "text/event-stream":
                    yield from self._instead(request, self._read(request, response), interval, stop)
                    return
                connection.wire.stop = stop
                for message in _messages(lambda: response.read1(1 << 16)):
                    retry = retry if message.retry is None else message.retry
                    heard = heard or message.retry is None or message.data != ""
                    if heard:
                        yield _entry(message)
                if not heard:
                    raise TransportError(f"{request}: the stream ended before its first message")
        except TransportError as error:
            if not heard and not stop.is_set():
                raise
            if not stop.is_set():
                self._tell(error, retry)
        finally:
            for opened in (answer, connection):
                if opened is not None:
                    opened.close()
        stop.wait(retry * random.uniform(1, 1.1))

    def _instead(self, request: _Request, reply: _Reply, interval: float,
                 stop: threading.Event) -> Generator[Page, None, None]:
        """_instead yields the page that came instead of a stream, and raises ApiError for a refusal."""
        if reply.status != 200:
            raise _api_error(request, reply)
        page = _page(reply.json(request))
        yield page
        if not page.entries:
            stop.wait(interval * random.uniform(1, 1.1))

    # Requests.

    def _create(self, path: str, data: Any, idempotency_key: str,
                reference: str = "") -> tuple[_Reply, dict[str, Any]]:
        """_create creates something once, however often the request is sent."""
        key = idempotency_key or uuid.uuid4().hex
        if not re.fullmatch(r"[!-~]{1,255}", key):
            raise ValueError("idempotency_key must have 1 to 255 visible ASCII characters")
        if not re.fullmatch(r"[!-~]{0,200}", reference):
            raise ValueError("reference must have at most 200 visible ASCII characters")
        headers = {"Idempotency-Key": key} | ({"Registry-Reference": reference} if reference else {})
        return self._send("POST", path, data, headers=headers, repeatable=True)

    def _get(self, path: str, known: Answer[T] | None) -> Answer[T]:
        headers = {"If-None-Match": known.etag} if known is not None and known.etag else {}
        reply, body = self._send("GET", path, headers=headers, repeatable=True)
        if known is not None and reply.status == 304:
            return known
        return Answer(cast(T, _at(body, dict, "data")), _etag(reply))

    def _write(self, method: str, path: str, data: Any, token: str, if_match: str,
               repeatable: bool = False) -> Answer[Any]:
        """_write changes something. With a tag it is repeatable, because the registry does it only once."""
        headers = {"If-Match": if_match} if if_match else {}
        reply, body = self._send(method, path, data, headers=headers, token=token,
                                 repeatable=repeatable or bool(if_match))
        return Answer(_at(body, dict, "data"), _etag(reply), ignored=_ignored(reply, data))

    def _send(self, method: str, path: str, data: Any = None, *, query: Mapping[str, str] | None = None,
              headers: Mapping[str, str] | None = None, token: str = "", repeatable: bool,
              server: _ServerID | None = None) -> tuple[_Reply, dict[str, Any]]:
        """_send sends a request, with retries, and returns the answer and its object; {} without a body."""
        all_headers = self._headers | dict(headers or {})
        body = None
        if data is not None:
            body = _encode({"data": data}).encode()
            all_headers["Content-Type"] = "application/json"
        if token:
            all_headers["X-Access-Token"] = _secret("token", token)
        request = _Request(method, self._target(path, query), all_headers, body, repeatable)
        reply = self._retry(request, server or self._server)
        empty = reply.status == 304 or reply.status == 204 and method == "DELETE"
        return reply, {} if empty else reply.json(request)

    def _upload(self, path: str) -> dict[str, str]:
        """_upload sends a file, with retries, and returns its description."""
        size, boundary = os.path.getsize(path), uuid.uuid4().hex
        begin = (f"--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; "
                 f"filename=\"{_form_name(os.path.basename(path))}\"\r\n"
                 f"Content-Type: {mimetypes.guess_type(path)[0] or 'application/octet-stream'}\r\n\r\n").encode()
        end = f"\r\n--{boundary}--\r\n".encode()

        def body() -> Iterator[bytes]:
            yield begin
            with open(path, "rb") as content:
                while piece := content.read(_PIECE):
                    yield piece
            yield end

        headers = self._headers | {"Content-Type": f"multipart/form-data; boundary={boundary}",
                                   "Content-Length": str(len(begin) + size + len(end))}
        request = _Request("POST", f"{self._base}/upload", headers, body, True, size / _SLOWEST)
        stored = self._retry(request, self._server).json(request)
        return {name: _at(stored, str, "data", name) for name in ("url", "hash", "title", "format")}

    def _target(self, path: str, query: Mapping[str, str] | None) -> str:
        return self._root + path + ("?" + urllib.parse.urlencode(query) if query else "")

    def _retry(self, request: _Request, server: _ServerID) -> _Reply:
        """_retry sends a request until it is answered without a reason to repeat it, or the bounds are reached."""
        deadline = time.monotonic() + self._timeout + request.longer
        uncertain = False
        for attempt in itertools.count(1):
            error: RegistryError
            wait = None
            try:
                within = time.monotonic() + _ATTEMPT + request.longer
                sent = server.value
                reply = self._exchange(request, sent, min(deadline, within))
            except TransportError as failure:
                error = failure
                if request.repeatable:
                    wait = _pause(error, attempt)
            else:
                renewed = server.update(sent, reply.headers)
                if 200 <= reply.status < 300 or reply.status == 304 and "If-None-Match" in request.headers:
                    return reply
                error = _api_error(request, reply)
                if renewed and isinstance(error, PreconditionFailed):
                    wait = 0.0  # the cookie named other data; the registry has done nothing
                elif isinstance(error, TooManyRequests) or request.repeatable and isinstance(error, Unavailable):
                    wait = _pause(error, attempt)
            error.attempts, error.uncertain = attempt, uncertain
            uncertain = uncertain or request.method != "GET" and isinstance(error, (TransportError, Unavailable))
            if wait is None or attempt >= self._attempts or time.monotonic() + wait >= deadline:
                raise error
            self._tell(error, wait)
            time.sleep(wait)
        raise AssertionError("unreachable")

    def _tell(self, error: RegistryError, wait: float) -> None:
        if self._on_retry is not None:
            self._on_retry(error, wait)

    def _exchange(self, request: _Request, server_id: str, deadline: float) -> _Reply:
        """_exchange sends a request once. It raises TransportError or BadAnswer."""
        connection: _Connection | None = None
        try:
            with _told(request):
                connection = self._connect(deadline)
                headers = _with_cookie(request.headers, server_id)
                body = request.body() if callable(request.body) else request.body
                connection.request(request.method, request.path, body, headers)
                with connection.getresponse() as response:  # the socket may be the response's alone
                    reply = self._read(request, response)
                if not response.will_close:
                    self._keep(connection)
                    connection = None
                return reply
        finally:
            if connection is not None:
                connection.close()

    def _read(self, request: _Request, response: http.client.HTTPResponse) -> _Reply:
        """_read reads an answer to its end."""
        lengths = {text.strip() for text in response.headers.get_all("Content-Length", [])}
        if len(lengths) > 1 or not all(re.fullmatch("[0-9]+", text) for text in lengths):
            raise http.client.HTTPException("its length is no number")
        text = response.read(self._max_answer + 1)
        if response.length and len(text) <= self._max_answer:
            raise http.client.IncompleteRead(b"")
        if response.headers.get("Content-Encoding", "").lower() == "gzip" and len(text) <= self._max_answer:
            text = _inflate(text, self._max_answer)
        if len(text) > self._max_answer:
            raise BadAnswer(f"{request}: the answer has more than {self._max_answer} bytes")
        return _Reply(response.status, response.headers, text)

    def _connect(self, deadline: float) -> _Connection:
        """_connect returns the connection that was used last, or a new one. It closes those that cannot be used."""
        fit: list[_Connection] = []
        unfit: list[_Connection] = []
        oldest = time.monotonic() - _IDLE
        with self._lock:
            readable = set(_readable([kept.wire.sock for kept in self._idle], 0) if self._idle else [])
            for kept in self._idle:
                # One that has something to read is closed, or it holds what nobody has asked for.
                (unfit if kept.used < oldest or kept.wire.sock in readable else fit).append(kept)
            connection = fit.pop() if fit else None
            self._idle = fit
        for kept in unfit:
            kept.close()
        if connection is None:
            return _Connection(self._address, self._tls, deadline)
        connection.wire.deadline = deadline
        return connection

    def _keep(self, connection: _Connection) -> None:
        connection.used = time.monotonic()
        with self._lock:
            self._idle.append(connection)


def _form_name(name: str) -> str:
    """_form_name escapes a name as browsers do in forms."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


class Parts(Generic[T]):
    """Parts is one list of an asset, such as its items. The parts have addresses of their own."""

    def __init__(self, client: Client, kind: str) -> None:
        self._client = client
        self._kind = kind

    def _path(self, asset_id: str, part_id: str | None = None) -> str:
        path = f"/assets/{_quote(asset_id)}/{self._kind}"
        return path if part_id is None else f"{path}/{_quote(part_id)}"

    def list(self, asset_id: str) -> Sequence[T]:
        """list returns the parts of an asset; of documents, the newest version of each."""
        body = self._client._send("GET", self._path(asset_id), repeatable=True)[1]
        return cast(Sequence[T], _list(body))

    def get(self, asset_id: str, part_id: str, *, known: Answer[T] | None = None) -> Answer[T]:
        """get reads a part. If its asset has not changed since `known`, get returns `known`."""
        return self._client._get(self._path(asset_id, part_id), known)

    def add(self, asset_id: str, part: T, *, token: str = "", if_match: str = "") -> Answer[T]:
        """add adds a part."""
        return self._client._write("POST", self._path(asset_id), part, token, if_match)

    def change(self, asset_id: str, part_id: str, change: T, *, token: str = "", if_match: str = "") -> Answer[T]:
        """change merges into a part (PATCH)."""
        return self._client._write("PATCH", self._path(asset_id, part_id), change, token, if_match)

    def replace(self, asset_id: str, part_id: str, part: T, *, token: str = "", if_match: str = "") -> Answer[T]:
        """replace adds a version to a document (PUT). Other parts have no such route."""
        return self._client._write("PUT", self._path(asset_id, part_id), part, token, if_match)

    def remove(self, asset_id: str, part_id: str, *, if_match: str = "") -> None:
        """remove removes a related process. Other parts have no such route."""
        self._client._write("DELETE", self._path(asset_id, part_id), None, "", if_match)


_SLOWEST = (64 << 10) / 10  # bytes a second, at which the registry ends an upload
_PIECE = 256 << 10  # bytes of a file that are read at once


class Documents(Parts[Document]):
    """Documents are the documents of an asset."""

    def upload(self, asset_id: str, path: str | os.PathLike[str], document: Document | None = None, *,
               token: str = "", if_match: str = "") -> Answer[Document]:
        """upload sends the file at `path` to the registry, and adds a document that names it.

        `title` and `format` of the document are by default the name and the type of the file. The file is read as it
        is sent. The upload is repeatable: a file that no document names is removed after a day.
        """
        stored = self._client._upload(os.fspath(path))
        named: Document = {"title": stored["title"], "format": stored["format"]}
        if document is not None:
            named.update(document)
        named.update({"url": stored["url"], "hash": stored["hash"]})
        return self.add(asset_id, named, token=token, if_match=if_match)


class Webhooks:
    """Webhooks are the webhooks of the key's broker; for an administrator, all."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def create(self, webhook: Webhook, *, idempotency_key: str = "") -> NewWebhook:
        """create creates a webhook. idempotency_key is as of Client.create."""
        return _new_webhook(self._client._create("/webhooks", webhook, idempotency_key)[1])

    def list(self, *, broker: str = "") -> Iterator[Webhook]:
        """list yields the webhooks in the order of their ids. An administrator may choose one broker's webhooks."""
        query = {"broker": broker} if broker else {}
        while True:
            body = self._client._send("GET", "/webhooks", query=query, repeatable=True)[1]
            webhooks = _list(body)
            yield from webhooks
            if not webhooks or "next_page" not in body:
                return
            query["after"] = _at(body, str, "next_page", "after")

    def get(self, webhook_id: str) -> Webhook:
        """get reads a webhook."""
        return self._send("GET", _webhook(webhook_id))

    def change(self, webhook_id: str, change: Webhook) -> Webhook:
        """change changes `url` or `state`. A new address has to answer a challenge first."""
        return self._send("PATCH", _webhook(webhook_id), change)

    def replay(self, webhook_id: str, offset: str = "") -> Webhook:
        """replay sends the changes after an offset again. Without one, a disabled webhook goes on where it ended."""
        return self._send("POST", _webhook(webhook_id) + "/replay", {"offset": offset} if offset else {})

    def rotate(self, webhook_id: str) -> NewWebhook:
        """rotate replaces the secrets. For a day messages are signed with both.

        It is not repeated after a lost answer, because each time makes a new secret.
        """
        return _new_webhook(self._client._send("POST", _webhook(webhook_id) + "/rotate", {}, repeatable=False)[1])

    def remove(self, webhook_id: str) -> None:
        """remove removes a webhook."""
        self._client._send("DELETE", _webhook(webhook_id), repeatable=False)

    def _send(self, method: str, path: str, data: Any = None) -> Webhook:
        return cast(Webhook, _at(self._client._send(method, path, data, repeatable=True)[1], dict, "data"))


_NEAR = 300  # seconds that the time of a message may be off


def read_message(secret: str, headers: Mapping[str, str], body: bytes, *, now: float | None = None) -> Message:
    """read_message reads a message to the receiver of a webhook, if it is signed with the webhook's secret.

    headers are the request's headers, body its bytes as they came. read_message raises BadSignature if no signature
    `v1` is right, or if the time of the message is more than five minutes from `now`, the current time.
    """
    sent = {name.lower(): value for name, value in headers.items()}
    at = sent.get("webhook-timestamp", "")
    if not re.fullmatch("[0-9]{1,15}", at) or abs((time.time() if now is None else now) - int(at)) > _NEAR:
        raise BadSignature("the time of the message is not near")
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError:
        raise ValueError("secret must be whsec_ and base64") from None
    signed = f"{sent.get('webhook-id', '')}.{at}.".encode() + body
    want = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    given = sent.get("webhook-signature", "").split(" ")
    # Each is compared: the time tells nothing about the right one.
    if not any([hmac.compare_digest(want.encode(), one.encode()) for one in given]):
        raise BadSignature("the message has no right signature")
    try:
        message = _decode(body)
        data = message["data"]
        return Message(message["type"], message["timestamp"], data.get("offset", ""), data.get("entries", []),
                       data.get("challenge", ""))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadAnswer(f"the message cannot be read: {type(error).__name__}") from error


def _webhook(webhook_id: str) -> str:
    return f"/webhooks/{_quote(webhook_id)}"


def _new_webhook(body: dict[str, Any]) -> NewWebhook:
    return NewWebhook(cast(Webhook, _at(body, dict, "data")), _token(body, "secret"))


def _quote(text: str) -> str:
    """_quote makes an id a step of a path."""
    if text in ("", ".", ".."):
        raise ValueError("an id must not be empty, . or ..")
    return urllib.parse.quote(text, safe="")


def _etag(reply: _Reply) -> str:
    return reply.headers.get("ETag", "")


def _ignored(reply: _Reply, sent: Any) -> tuple[str, ...]:
    """_ignored returns the ignored fields of a write, but none if it has sent an object of the registry back."""
    names = reply.headers.get("Registry-Ignored", "")
    if not names or isinstance(sent, Mapping) and "dateModified" in sent:
        return ()
    return tuple(names.split(", "))


def _listing(limit: int, mode: str, fields: Sequence[str]) -> dict[str, str]:
    query = {"limit": str(limit)}
    if mode:
        query["mode"] = mode
    if fields:
        query["opt_fields"] = ",".join(fields)
    return query
