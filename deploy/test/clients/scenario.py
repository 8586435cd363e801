"""scenario runs the scenario of package clients with the Python client.

REGISTRY is the registry's address, CONTROL is the test's address.
"""

import json
import os
import pathlib
import queue
import tempfile
import threading
import urllib.request
from decimal import Decimal
from typing import Any, cast

import asset_registry
from asset_registry import ApiError, Asset, Client, InvalidRequest, OffsetGone, RegistryError

REGISTRY, CONTROL = os.environ["REGISTRY"], os.environ["CONTROL"]


def ask(path: str, **body: Any) -> None:
    """ask sends a request to the test."""
    with urllib.request.urlopen(CONTROL + path, json.dumps(body).encode(), 120) as answer:
        answer.read()


def report(name: str, got: Any) -> None:
    """report reports a step."""
    ask("/step", Step=name, Got=got)


refusals: list[int] = []


def heard(error: RegistryError, _: float) -> None:
    """heard records the status of a failed attempt, 0 without an answer."""
    refusals.append(error.status if isinstance(error, ApiError) else 0)


def client(key: str) -> Client:
    """client returns a client that records its failed attempts."""
    return Client(REGISTRY, key, attempts=20, on_retry=heard)


broker, broker3, administrator, reader = client("broker"), client("broker3"), client("administrator"), client("")


def asset(number: int) -> Asset:
    """asset returns a valid asset."""
    return {
        "assetType": "bounce", "title": f"Asset {number}", "description": "one entrance",
        "items": [{
            "description": "Hall", "classification": {"scheme": "CAV-PS", "id": "04121000-2", "description": "Hall"},
            "unit": {"code": "MTK"}, "quantity": Decimal("240.50010"), "address": {"countryName": "Україна"},
            "location": {"latitude": Decimal("50.4501000"), "longitude": "30.5234"},
            "registrationDetails": {"status": "unknown"},
        }],
        "decisions": [{"decisionDate": "2026-11-20T12:00:00+02:00", "decisionID": "1637-10"}],
        "assetCustodian": {
            "name": "Fund", "identifier": {"scheme": "UA-EDR", "id": 32945}, "address": {"countryName": "Україна"},
            "contactPoint": {"name": "Registrar", "telephone": "+380440000000"},
        },
    }


def publish(number: int) -> asset_registry.Created:
    """publish creates an asset and publishes it."""
    made = broker.create(asset(number))
    broker.change(made.data["id"], {"status": "pending"}, token=made.token)
    return made


def life() -> tuple[str, str]:
    """life creates, publishes, changes and hands over an asset. It returns the id and the owner token."""
    made = broker.create(asset(1))
    asset_id, item = made.data["id"], made.data["items"][0]
    report("create", {"status": made.data["status"], "quantity": str(item["quantity"]),
                      "latitude": str(item["location"]["latitude"]),
                      "id": str(made.data["assetCustodian"]["identifier"]["id"])})
    try:
        wrong = cast(Asset, {"assetType": "bounce", "items": [{**item, "quantity": "many"}], "decisions": []})
        broker.create(wrong)
    except InvalidRequest as refused:
        report("refuse", sorted(f"{e.location}/{e.name}" for e in refused.errors))
    published = broker.change(asset_id, {"status": "pending"}, token=made.token, if_match=made.etag)
    report("publish", published.data["status"])
    proof = reader.proof(asset_id)
    try:
        reader.proof(asset_id, 1)
    except asset_registry.NotFound as refused:
        report("prove", {"revision": proof["leaf"]["revision"], "kind": proof["leaf"]["kind"],
                         "quantity": str(proof["asset"]["items"][0]["quantity"]), "first": refused.status})
    changed = broker.change(asset_id, {"description": "two entrances"}, token=made.token, if_match=published.etag)
    try:
        broker.change(asset_id, {"description": "none"}, token=made.token, if_match=published.etag)
    except asset_registry.PreconditionFailed as refused:
        report("change with a tag", {"description": changed.data["description"], "stale": refused.status})
    broker.documents.add(asset_id, {"documentType": "illustration", "title": "Plan", "url": "https://example.com/plan",
                                    "format": "image/png"}, token=made.token)
    part = broker.items.change(asset_id, item["id"], {"quantity": Decimal("7.25")}, token=made.token)
    report("parts", {"documents": len(reader.documents.list(asset_id)), "quantity": str(part.data["quantity"])})
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "plan.pdf")
        path.write_bytes(b"%PDF-1.4\n" + b"x" * 1_000_000)
        kept = broker.documents.upload(asset_id, path, {"documentType": "notice"}, token=made.token).data
    report("upload", {"title": kept["title"], "format": kept["format"], "hash": kept["hash"]})
    transfer = broker3.make_transfer()
    owner = broker3.take_over(asset_id, transfer, made.transfer).data["owner"]
    try:
        broker.change(asset_id, {"description": "none"}, token=made.token)
    except asset_registry.Forbidden as refused:
        taken = broker3.change(asset_id, {"description": "three entrances"}, token=transfer.token)
        report("hand over", {"owner": owner, "old token": refused.status, "new token": taken.data["description"]})
    return asset_id, transfer.token


def back_to_work() -> None:
    """back_to_work finds an asset whose answer was lost, gets new tokens for it and removes it."""
    made = broker.create(asset(9), reference="lot-9")
    asset_id = made.data["id"]
    again = broker.create(asset(9), reference="lot-9")
    got: dict[str, Any] = {"again": again.data["id"] == asset_id, "tokens": again.token + again.transfer}
    try:
        broker.create(asset(10), reference="lot-9")
    except asset_registry.Conflict as refused:
        got |= {"other": refused.status, "named": asset_id in refused.errors[0].description}
    got["own"] = [own["reference"] for own in broker.own_assets(status="draft", fields=["reference"], limit=1)]
    recovered = administrator.recover(asset_id, "the answer was lost")
    try:
        broker.change(asset_id, {"description": "none"}, token=made.token)
    except asset_registry.Forbidden as refused:
        got["old token"] = refused.status
    found = broker.change(asset_id, {"description": "found"}, token=recovered.token, if_match=recovered.etag)
    got["new token"] = found.data["description"]
    broker.remove(asset_id, token=recovered.token)
    try:
        reader.get(asset_id)
    except asset_registry.NotFound as refused:
        got["removed"] = refused.status
    got["left"] = len([*broker.own_assets(status="draft")])
    try:
        broker.create(asset(9), reference="lot-9")
    except ApiError as refused:
        got["repeat"] = refused.status
    report("back to work", got)


def webhooks() -> None:
    """webhooks creates, changes and removes a webhook, to which nothing is sent."""
    made = broker.webhooks.create({"url": "https://receiver.example/", "state": "disabled"})
    webhook_id = made.data["id"]
    broker.webhooks.change(webhook_id, {"url": "https://receiver.example/new"})
    rotated = broker.webhooks.rotate(webhook_id)
    got = broker.webhooks.get(webhook_id)
    listed = len([w for w in broker.webhooks.list() if w["id"] == webhook_id])
    replayed = broker.webhooks.replay(webhook_id, got["offset"])["state"]
    broker.webhooks.remove(webhook_id)
    try:
        broker.webhooks.get(webhook_id)
    except asset_registry.NotFound as gone:
        report("webhooks", {"state": got["state"], "reason": got["reason"], "url": got["url"], "listed": listed,
                            "rotated": rotated.secret.startswith("whsec_") and rotated.secret != made.secret,
                            "replayed": replayed, "removed": gone.status})


def faults(asset_id: str, token: str) -> None:
    """faults meets refusals, lost answers and a rate limit."""
    refusals.clear()
    ask("/fault", Status=429, Times=2)
    report("429", {"title": reader.get(asset_id).data["title"], "refusals": list(refusals)})
    refusals.clear()
    tag = reader.get(asset_id).etag
    ask("/fault", Status=503, Times=2)
    changed = broker3.change(asset_id, {"description": "four entrances"}, token=token, if_match=tag)
    report("503", {"description": changed.data["description"], "refusals": list(refusals)})
    refusals.clear()
    ask("/fault", Status=503, Times=1, After=True)
    ask("/fault", Status=0, Times=1, After=True)
    publish(2)
    titles = [entry["title"] for page in reader.pages(limit=1, fields=["title"]) for entry in page.entries]
    report("lost answers", {"refusals": list(refusals), "published": titles})
    refusals.clear()
    count = sum(len([*broker.pages(limit=1)]) for _ in range(4))
    report("rate limit", {"pages": count, "refused": 429 in refusals})


def follow() -> str:
    """follow follows the feed through a restart of the registry, and resumes it. It returns a saved position."""
    refusals.clear()
    stop = threading.Event()
    found: queue.Queue[asset_registry.Change] = queue.Queue()

    def watch() -> None:
        for change in client("").follow(limit=2, fields=["title"], interval=0.1, stop=stop):
            found.put(change)

    watcher = threading.Thread(target=watch)
    watcher.start()
    publish(3)
    publish(4)
    seen = [found.get(timeout=60) for _ in range(4)]
    ask("/restart")
    publish(5)
    publish(6)
    seen += [found.get(timeout=60) for _ in range(2)]
    stop.set()
    watcher.join()
    titles = [change.data["title"] for change in seen]
    report("follow through a restart", {"seen": titles, "interrupted": 0 in refusals})
    resumed = reader.follow(seen[3].position, limit=1, fields=["title"])
    report("resume", [next(resumed).data["title"] for _ in range(2)])
    return seen[3].position


def start_over(position: str) -> dict[str, Any]:
    """start_over follows from a position that the registry does not know."""
    got: dict[str, Any] = {}
    try:
        next(client("").follow(position))
    except OffsetGone as refused:
        got["unheard"] = refused.status
    told: list[None] = []
    change = next(client("").follow(position, fields=["title"], on_start_over=lambda: told.append(None)))
    return {**got, "heard": len(told), "first": change.data["title"]}


def other_data(position: str, asset_id: str, token: str) -> None:
    """other_data meets a registry with other data than the client's cookie names."""
    offset, _, _ = position.partition(";")
    got = start_over(f"{offset};gone")
    stale = client("broker3")
    ask("/cookie", Value="gone")
    stale.me()
    changed = stale.change(asset_id, {"description": "five entrances"}, token=token)
    report("other data", {**got, "write": changed.data["description"]})


def main() -> None:
    """main runs all steps."""
    asset_id, token = life()
    back_to_work()
    webhooks()
    faults(asset_id, token)
    position = follow()
    report("start over", start_over("no offset"))
    other_data(position, asset_id, token)


main()
