"""Tests of asset_registry against a server that answers as each test says."""

import gzip
import json
import os
import resource
import threading
import traceback
import unittest
from collections.abc import Callable
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

import asset_registry
from asset_registry import BadAnswer, Client, DeadlineExceeded, OffsetGone, TransportError

KEY, TOKEN = "key-3b1f6f", "token-77c0aa"

Reply = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Handler gives the server's next reply to each request."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """do_GET serves every method."""
        server = cast(Server, self.server)
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        server.seen.append((f"{self.command} {self.path}", dict(self.headers), body))
        server.replies.pop(0)(self)

    do_POST = do_PATCH = do_PUT = do_DELETE = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """log_message prints nothing."""


class Server(ThreadingHTTPServer):
    """Server answers with replies, in their order, and keeps what it has seen."""

    daemon_threads = True

    def __init__(self, *replies: Reply) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies = list(replies)
        self.seen: list[tuple[str, dict[str, str], bytes]] = []
        self.connections = 0
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def get_request(self) -> Any:
        """get_request counts connections."""
        self.connections += 1
        return super().get_request()


def reply(status: int, body: Any, **headers: str) -> Reply:
    """reply returns an answer. A body that is not bytes is sent as JSON."""

    def send(handler: Handler) -> None:
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        for name, value in {"Content_Length": str(len(text)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(text)

    return send


def refusal(status: int, *places: str, **headers: str) -> Reply:
    """refusal returns an error with an error object for each place."""
    errors = [dict(zip(("location", "name", "description"), (*place.split("/", 1), "refused"))) for place in places]
    return reply(status, {"status": "error", "errors": errors}, **headers)


def hang_up(handler: Handler) -> None:
    """hang_up closes the connection without an answer."""
    handler.close_connection = True


def page(*times: str, offset: str = "") -> Any:
    """page is the body of a page of the feed."""
    data = [{"id": time, "dateModified": time} for time in times]
    return {"data": data, "next_page": {"offset": times[-1] if times else offset}}


class Case(unittest.TestCase):
    """Case serves replies for the time of a test."""

    def serve(self, *replies: Reply, **options: Any) -> tuple[Server, Client]:
        """serve starts a server and returns it with a client."""
        server = Server(*replies)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        client = Client(server.url, KEY, **options)

        def end() -> None:
            client.close()
            server.shutdown()
            thread.join()
            server.server_close()

        self.addCleanup(end)
        return server, client


class Ignored(Case):
    """A caller hears of ignored fields, unless it has sent an object back."""

    def test_names(self) -> None:
        """test_names tries each kind of write."""
        told = reply(200, {"data": {"id": "a"}}, ETag='"1"', Registry_Ignored="documents, owner")
        theirs: Any = {"title": "x", "dateModified": "2026-11-20T12:00:00+02:00"}
        calls: list[tuple[Callable[[Client], asset_registry.Answer[Any]], bool]] = [
            (lambda c: c.create({}), True), (lambda c: c.create(theirs), False),
            (lambda c: c.change("a", {}), True), (lambda c: c.replace("a", theirs), False),
            (lambda c: c.documents.add("a", {"author": "x"}), True), (lambda c: c.documents.add("a", theirs), False),
        ]
        _, client = self.serve(*[told] * len(calls), reply(200, {"data": {"id": "a"}}))
        for number, (call, hears) in enumerate(calls):
            self.assertEqual(call(client).ignored, ("documents", "owner") if hears else (), number)
        self.assertEqual(client.change("a", {}).ignored, ())


class Numbers(Case):
    """Numbers stay exact."""

    def test_numbers_of_an_answer_keep_their_digits(self) -> None:
        text = (b'{"data": {"items": [{"quantity": 3, "location": {"latitude": 50.4501000, "longitude": 30}},'
                b' {"quantity": 12345678901234567890123456789.0001}]}}')
        _, client = self.serve(reply(200, text))
        items = client.get("a").data["items"]
        self.assertEqual(repr(items[0]["quantity"]), "Decimal('3')")
        self.assertEqual(str(items[0]["location"]["latitude"]), "50.4501000")
        self.assertEqual(repr(items[0]["location"]["longitude"]), "30")
        self.assertEqual(str(items[1]["quantity"]), "12345678901234567890123456789.0001")

    def test_a_proof_is_awaited_and_keeps_its_digits(self) -> None:
        text = b'{"data":{"index":1,"leaf":{"v":1},"path":["x"],"checkpoint":"c","asset":{"items":[{"quantity":240.50}]}}}'
        server, client = self.serve(refusal(503, "url/revision", Retry_After="0"), reply(200, text), reply(200, text))
        self.assertEqual(str(client.proof("a", 7)["asset"]["items"][0]["quantity"]), "240.50")
        client.proof("a")
        path = "GET /api/2.5/assets/a/proof"
        self.assertEqual([seen[0] for seen in server.seen], [path + "?revision=7", path + "?revision=7", path])

    def test_suggestions_are_texts(self) -> None:
        server, client = self.serve(reply(200, {"data": ["екскаватор"]}), reply(200, {"data": []}))
        self.assertEqual(client.suggest("екс & x"), ["екскаватор"])
        client.suggest("x", status=["active", "complete"])
        self.assertEqual(server.seen[1][0], "GET /api/2.5/search/suggest?q=x&status=active&status=complete")
        self.assertEqual(server.seen[0][0], "GET /api/2.5/search/suggest?q=%D0%B5%D0%BA%D1%81+%26+x")

    def test_a_snapshot_lists_its_files(self) -> None:
        text = {"data": {"position": "p", "assets": 1, "segments": [{"from": "0", "to": "f", "path": "/x"}]}}
        server, client = self.serve(reply(200, text))
        snapshot = client.snapshot()
        self.assertEqual((snapshot["position"], snapshot["segments"][0]["from"]), ("p", "0"))
        self.assertEqual(server.seen[0][0], "GET /api/2.5/snapshot")

    def test_numbers_of_a_request_keep_their_digits(self) -> None:
        server, client = self.serve(reply(200, {"data": {}}))
        client.items.change("a", "b", {"quantity": Decimal("0.1000")})
        self.assertEqual(server.seen[0][2], b'{"data":{"quantity":0.1000}}')

    def test_inexact_numbers_are_refused(self) -> None:
        _, client = self.serve()
        for number in (0.1, Decimal("NaN"), Decimal("Infinity"), object()):
            with self.subTest(number), self.assertRaises((TypeError, ValueError)):
                client.items.change("a", "b", {"quantity": cast(Decimal, number)})


class Secrets(Case):
    """Secrets never show."""

    def test_no_object_shows_a_secret(self) -> None:
        access = {"token": TOKEN, "transfer": TOKEN}
        _, client = self.serve(reply(201, {"data": {"id": "a"}, "access": access}),
                               reply(201, {"data": {"id": "b"}, "access": access}))
        created, transfer = client.create({}), client.make_transfer()
        self.assertEqual((created.token, transfer.transfer), (TOKEN, TOKEN))
        shown = repr((client, created, transfer))
        self.assertNotIn(KEY, shown)
        self.assertNotIn(TOKEN, shown)

    def test_no_error_shows_a_secret(self) -> None:
        server, client = self.serve(refusal(403, "body/data"), hang_up, attempts=1)
        calls: list[Callable[[], object]] = [
            lambda: client.change("a", {}, token=TOKEN), lambda: client.change("a", {}, token=TOKEN),
            lambda: client.change("a", {}, token=TOKEN + "\n"), lambda: Client(server.url, KEY + "\n"),
            lambda: Client(server.url, KEY + ":"), lambda: Client(f"http://{KEY}@127.0.0.1"),
            lambda: client.take_over("a", asset_registry.Transfer({"id": "b"}), TOKEN + " "),
        ]
        for call in calls:
            with self.assertRaises((asset_registry.RegistryError, ValueError)) as caught:
                call()
            shown = "".join(traceback.format_exception(caught.exception, limit=0)) + repr(caught.exception.__dict__)
            shown += repr(caught.exception.__cause__) + repr(caught.exception.__context__)
            self.assertNotIn(KEY, shown)
            self.assertNotIn(TOKEN, shown)

    def test_ids_cannot_lead_elsewhere(self) -> None:
        server, client = self.serve(reply(200, {"data": {}}))
        client.get("../transfers?x#y")
        self.assertEqual(server.seen[0][0], "GET /api/2.5/assets/..%2Ftransfers%3Fx%23y")
        for bad in ("", ".", ".."):
            with self.assertRaises(ValueError):
                client.get(bad)


class Retries(Case):
    """Retries end, and happen only where they are harmless."""

    def test_an_error_has_every_object(self) -> None:
        _, client = self.serve(refusal(400, "body/title", "body/items.0.quantity", X_Request_ID="r1"))
        with self.assertRaises(asset_registry.InvalidRequest) as caught:
            client.create({})
        got = caught.exception
        self.assertEqual([f"{e.location}/{e.name}" for e in got.errors], ["body/title", "body/items.0.quantity"])
        self.assertEqual((got.status, got.request_id, got.attempts), (400, "r1", 1))

    def test_a_creation_is_repeated_under_one_key(self) -> None:
        server, client = self.serve(hang_up, refusal(503, "url/server", Retry_After="0"), refusal(429, "header/x"),
                                    reply(201, {"data": {"id": "a"}, "access": {}}))
        client.create({})
        keys = {headers["Idempotency-Key"] for _, headers, _ in server.seen}
        self.assertEqual((len(server.seen), len(keys)), (4, 1))

    def test_another_creation_has_another_key(self) -> None:
        made = reply(201, {"data": {"id": "a"}, "access": {}})
        server, client = self.serve(made, made, made)
        client.create({})
        client.create({})
        client.create({}, idempotency_key="mine")
        keys = [headers["Idempotency-Key"] for _, headers, _ in server.seen]
        self.assertEqual((len(set(keys)), keys[2]), (3, "mine"))

    def test_a_creation_has_a_reference(self) -> None:
        server, client = self.serve(reply(201, {"data": {"id": "a"}, "access": {"token": "t"}}),
                                    reply(200, {"data": {"id": "a"}}))
        first, again = client.create({}, reference="lot-1"), client.create({}, reference="lot-1")
        self.assertEqual([headers["Registry-Reference"] for _, headers, _ in server.seen], ["lot-1", "lot-1"])
        self.assertEqual((first.token, again.data["id"], again.token), ("t", "a", ""))
        with self.assertRaises(ValueError):
            client.create({}, reference="a b")

    def test_a_write_without_a_tag_is_repeated_only_if_nothing_was_done(self) -> None:
        writes: list[Callable[[Client], object]] = [
            lambda c: c.change("a", {}), lambda c: c.replace("a", {}), lambda c: c.items.add("a", {}),
            lambda c: c.items.change("a", "b", {}), lambda c: c.documents.replace("a", "b", {}),
            lambda c: c.related_processes.remove("a", "b"),
        ]
        for first, want in ((refusal(503, "url/server", Retry_After="0"), 1), (hang_up, 1),
                            (refusal(429, "header/x", Retry_After="0"), 2)):
            for write in writes:
                server, client = self.serve(first, reply(200, {"data": {}}))
                try:
                    write(client)
                except asset_registry.RegistryError:
                    pass
                self.assertEqual(len(server.seen), want)

    def test_a_draft_is_removed(self) -> None:
        server, client = self.serve(reply(204, b""), hang_up, refusal(404, "url/asset_id"))
        client.remove("a", token=TOKEN)
        with self.assertRaises(asset_registry.NotFound) as caught:
            client.remove("a", token=TOKEN, if_match='"1"')
        self.assertEqual(caught.exception.attempts, 2)
        self.assertEqual([(path, headers["X-Access-Token"]) for path, headers, _ in server.seen],
                         [("DELETE /api/2.5/assets/a", TOKEN)] * 3)

    def test_a_recovery_gives_tokens_and_is_tried_once(self) -> None:
        given = reply(200, {"data": {"id": "a"}, "access": {"token": TOKEN, "transfer": "t"}}, ETag='"2"')
        server, client = self.serve(given, hang_up)
        got = client.recover("a", "lost")
        self.assertEqual((got.data["id"], got.token, got.transfer, got.etag), ("a", TOKEN, "t", '"2"'))
        with self.assertRaises(TransportError):
            client.recover("a", "lost")
        self.assertEqual([(path, body) for path, _, body in server.seen],
                         [("POST /api/2.5/assets/a/recovery", b'{"data":{"reason":"lost"}}')] * 2)

    def test_a_take_over_is_repeated(self) -> None:
        server, client = self.serve(hang_up, reply(200, {"data": {}}))
        client.take_over("a", asset_registry.Transfer({"id": "b"}), TOKEN)
        self.assertEqual(len(server.seen), 2)

    def test_a_write_with_a_tag_is_repeated(self) -> None:
        server, client = self.serve(hang_up, refusal(412, "url/precondition"))
        with self.assertRaises(asset_registry.PreconditionFailed) as caught:
            client.items.add("a", {}, if_match='"1"')
        self.assertEqual((caught.exception.attempts, caught.exception.uncertain), (2, True))
        self.assertEqual({headers["If-Match"] for _, headers, _ in server.seen}, {'"1"'})

    def test_a_wait_beyond_the_deadline_is_not_begun(self) -> None:
        server, client = self.serve(refusal(429, "header/x", Retry_After="100"), timeout=10)
        with self.assertRaises(asset_registry.TooManyRequests) as caught:
            client.get("a")
        self.assertEqual((caught.exception.retry_after, len(server.seen)), (100, 1))

    def test_attempts_are_bounded(self) -> None:
        server, client = self.serve(*[refusal(503, "url/server", Retry_After="0")] * 9, attempts=3)
        with self.assertRaises(asset_registry.Unavailable) as caught:
            client.get("a")
        self.assertEqual((caught.exception.attempts, len(server.seen)), (3, 3))

    def test_the_forms_of_retry_after(self) -> None:
        longest = 999_999_999.0
        for value, want in (("7", 7.0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0), ("soon", None), ("-1", None),
                            ("2592000", 2592000.0), ("9" * 400, longest), ("Fri, 31 Dec 9999 23:59:59 GMT", longest),
                            ("Wed, 21 Oct 99999999999999999999 07:28:00 GMT", None), ("Wed,", None)):
            _, client = self.serve(refusal(429, "header/x", Retry_After=value), attempts=1)
            with self.subTest(value), self.assertRaises(asset_registry.TooManyRequests) as caught:
                client.get("a")
            self.assertEqual(caught.exception.retry_after, want)

    def test_a_refusal_by_a_proxy_is_typed(self) -> None:
        for status, body in ((502, b"<html>"), (503, b"[]"), (504, b'{"errors": [1]}')):
            _, client = self.serve(reply(status, body), attempts=1)
            with self.subTest(status), self.assertRaises(asset_registry.Unavailable) as caught:
                client.get("a")
            self.assertEqual((caught.exception.status, caught.exception.errors), (status, ()))


class Webhooks(Case):
    """Webhooks are used as the contract says."""

    def test_requests(self) -> None:
        calls: list[tuple[Callable[[Client], object], str, bytes]] = [
            (lambda c: c.webhooks.create({"url": "https://x", "opt_fields": "*"}), "POST /api/2.5/webhooks",
             b'{"data":{"url":"https://x","opt_fields":"*"}}'),
            (lambda c: c.webhooks.get("w"), "GET /api/2.5/webhooks/w", b""),
            (lambda c: c.webhooks.change("w", {"state": "disabled"}), "PATCH /api/2.5/webhooks/w",
             b'{"data":{"state":"disabled"}}'),
            (lambda c: c.webhooks.replay("w", "2026"), "POST /api/2.5/webhooks/w/replay", b'{"data":{"offset":"2026"}}'),
            (lambda c: c.webhooks.replay("w"), "POST /api/2.5/webhooks/w/replay", b'{"data":{}}'),
            (lambda c: c.webhooks.rotate("w"), "POST /api/2.5/webhooks/w/rotate", b'{"data":{}}'),
            (lambda c: c.webhooks.remove("w/.."), "DELETE /api/2.5/webhooks/w%2F..", b""),
        ]
        for call, want, body in calls:
            server, client = self.serve(reply(200, {"data": {"id": "w"}, "access": {"secret": TOKEN}}))
            with self.subTest(want):
                call(client)
                request, headers, sent = server.seen[0]
                self.assertEqual((request, sent), (want, body))
                self.assertEqual("Idempotency-Key" in headers, want == "POST /api/2.5/webhooks")

    def test_no_object_shows_a_secret(self) -> None:
        made = reply(200, {"data": {"id": "w"}, "access": {"secret": TOKEN}})
        _, client = self.serve(made, made)
        for webhook in (client.webhooks.create({"url": "https://x"}), client.webhooks.rotate("w")):
            self.assertEqual((webhook.secret, webhook.data["id"]), (TOKEN, "w"))
            self.assertNotIn(TOKEN, repr(webhook))

    def test_webhooks_are_listed_to_the_last_page(self) -> None:
        server, client = self.serve(reply(200, {"data": [{"id": "v"}, {"id": "w"}], "next_page": {"after": "w"}}),
                                    reply(200, {"data": [{"id": "x"}]}))
        self.assertEqual([w["id"] for w in client.webhooks.list(broker="b")], ["v", "w", "x"])
        path = "GET /api/2.5/webhooks?broker=b"
        self.assertEqual([seen[0] for seen in server.seen], [path, path + "&after=w"])

    def test_a_rotation_and_a_removal_are_tried_once(self) -> None:
        calls: list[tuple[Callable[[Client], object], int]] = [
            (lambda c: c.webhooks.create({"url": "https://x"}), 2), (lambda c: c.webhooks.change("w", {}), 2),
            (lambda c: c.webhooks.replay("w"), 2), (lambda c: c.webhooks.rotate("w"), 1),
            (lambda c: c.webhooks.remove("w"), 1),
        ]
        for call, want in calls:
            server, client = self.serve(hang_up, reply(200, {"data": {"id": "w"}}))
            try:
                call(client)
            except TransportError:
                pass
            self.assertEqual(len(server.seen), want)


class Answers(Case):
    """Answers are bounded and whole."""

    def test_large_answers_are_refused(self) -> None:
        large = json.dumps({"data": "x" * 2000}).encode()
        chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(large), large)

        def send_chunked(handler: Handler) -> None:
            handler.send_response(200)
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            handler.wfile.write(chunked)

        for answer in (reply(200, large), send_chunked, reply(200, gzip.compress(large), Content_Encoding="gzip")):
            _, client = self.serve(answer, max_answer=1000)
            with self.assertRaises(BadAnswer):
                client.get("a")

    def test_compressed_answers_are_read(self) -> None:
        text = gzip.compress(b'{"data": {"title": "x"}}')
        members = gzip.compress(b'{"data": {"ti') + gzip.compress(b'tle": "x"}}')
        for zipped, coding in ((text, "gzip"), (text, "GZIP"), (members, "gzip")):
            _, client = self.serve(reply(200, zipped, Content_Encoding=coding))
            self.assertEqual(client.get("a").data["title"], "x")
        for zipped in (text[:-4], members[:-9], b"no gzip"):
            _, client = self.serve(reply(200, zipped, Content_Encoding="gzip"), attempts=1)
            with self.assertRaises(TransportError):
                client.get("a")

    def test_other_bodies_are_refused(self) -> None:
        for text in (b"", b"<html>", b"[]", b"{}", b'{"data": NaN}', b"\xff", b"[" * 100_000, b'{"data": 1' * 9,
                     b'{"data": null}', b'{"data": []}', b'{"data": {"x": 1e99999999999999999999}}',
                     b'{"data": {"x": %s}}' % (b"9" * 5000)):
            _, client = self.serve(reply(200, text))
            with self.subTest(text[:20]), self.assertRaises(BadAnswer):
                client.get("a")

    def test_an_answer_that_breaks_off_is_none(self) -> None:
        def cut(handler: Handler) -> None:
            reply(200, b'{"data": {}}', Content_Length="1000")(handler)
            handler.close_connection = True

        _, client = self.serve(cut, attempts=1)
        with self.assertRaises(TransportError):
            client.get("a")

    def test_a_slow_answer_ends_at_the_deadline(self) -> None:
        done = threading.Event()
        self.addCleanup(done.set)

        def drip(handler: Handler) -> None:
            try:
                while not done.wait(0.01):
                    handler.wfile.write(b"H")
            except OSError:
                pass
            handler.close_connection = True

        _, client = self.serve(drip, timeout=0.3)
        with self.assertRaises(DeadlineExceeded):
            client.get("a")

    def test_an_unchanged_asset_is_the_known_one(self) -> None:
        server, client = self.serve(reply(200, {"data": {"id": "a"}}, ETag='"1"'), reply(304, b"", ETag='"1"'))
        known = client.get("a")
        self.assertIs(client.get("a", known=known), known)
        self.assertEqual(server.seen[1][1]["If-None-Match"], '"1"')

    def test_incomplete_answers_are_refused(self) -> None:
        dated = {"dateModified": "1"}
        calls: list[tuple[Callable[[Client], object], Any]] = [
            (lambda c: next(c.pages()), {"data": []}),
            (lambda c: next(c.pages()), {"data": {}, "next_page": {"offset": ""}}),
            (lambda c: next(c.pages()), {"data": [dated], "next_page": {"offset": ""}}),
            (lambda c: next(c.pages()), {"data": [{}], "next_page": {"offset": "1"}}),
            (lambda c: next(c.pages()), {"data": [1], "next_page": {"offset": "1"}}),
            (lambda c: next(c.follow()), {"data": [{}], "next_page": {"offset": "1"}}),
            (lambda c: next(c.own_assets()), {"data": [], "next_page": None}),
            (lambda c: list(c.revisions("a")), {"data": [{}]}), (lambda c: c.items.list("a"), {"data": {}}),
            (lambda c: c.make_transfer(), {"data": {}, "access": {"token": 1}}), (lambda c: c.create({}), {"data": 1}),
            (lambda c: c.suggest("x"), {"data": {}}), (lambda c: c.webhooks.get("w"), {"data": []}),
            (lambda c: list(c.webhooks.list()), {"data": [{}], "next_page": 1}),
        ]
        for call, body in calls:
            _, client = self.serve(reply(200, body))
            with self.subTest(body), self.assertRaises(BadAnswer):
                call(client)

    def test_an_answer_without_a_body_is_refused_where_nothing_permits_it(self) -> None:
        for status in (204, 304):
            _, client = self.serve(reply(status, b""), reply(status, b""), attempts=1)
            with self.assertRaises(asset_registry.RegistryError):
                client.create({})
            with self.assertRaises(asset_registry.RegistryError):
                client.get("a")

    def test_descriptors_may_be_many(self) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1200), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        read = reply(200, {"data": {}})
        server, client = self.serve(read, read)
        for _ in range(1100):
            self.addCleanup(os.close, os.open(os.devnull, os.O_RDONLY))
        client.get("a")
        client.get("a")
        self.assertEqual(server.connections, 1)

    def test_dead_connections_are_not_kept(self) -> None:
        barrier = threading.Barrier(3)

        def close(handler: Handler) -> None:
            barrier.wait(30)
            reply(200, {"data": {}})(handler)
            handler.close_connection = True  # without a header that says so

        _, client = self.serve(close, close, close, reply(200, {"data": {}}))
        threads = [threading.Thread(target=client.get, args=("a",)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(client._idle), 3)
        for connection in client._idle:  # its end arrives
            connection.wire.sock.settimeout(30)
            asset_registry._readable([connection.wire.sock], 30)
        client.get("a")
        self.assertEqual(len(client._idle), 1)

    def test_old_connections_are_not_kept(self) -> None:
        read = reply(200, {"data": {}})
        server, client = self.serve(read, read)
        client.get("a")
        client._idle[0].used -= 61
        client.get("a")
        self.assertEqual((server.connections, len(client._idle)), (2, 1))

    def test_connections_are_kept(self) -> None:
        read = reply(200, {"data": {}})
        server, client = self.serve(read, read, reply(200, {"data": {}}, Connection="close"), read)
        for _ in range(4):
            client.get("a")
        self.assertEqual(server.connections, 2)


class Feed(Case):
    """The feed is followed without a loss."""

    def test_pages_end_at_the_empty_one(self) -> None:
        server, client = self.serve(reply(200, page("1", "2")), reply(200, page("3")), reply(200, page(offset="3")))
        self.assertEqual([[e["id"] for e in p.entries] for p in client.pages(limit=2)], [["1", "2"], ["3"]])
        self.assertEqual([path.partition("?")[2] for path, _, _ in server.seen],
                         ["limit=2", "limit=2&offset=2", "limit=2&offset=3"])

    def test_own_assets_are_listed_to_the_end(self) -> None:
        server, client = self.serve(reply(200, page("1", "2")), reply(200, page(offset="2")))
        found = client.own_assets(offset="0", limit=2, status="draft", fields=["reference"])
        self.assertEqual([asset["id"] for asset in found], ["1", "2"])
        path = "GET /api/2.5/me/assets?limit=2&opt_fields=reference&status=draft&offset="
        self.assertEqual([seen for seen, _, _ in server.seen], [path + "0", path + "2"])

    def test_a_follower_asks_again_within_an_hour(self) -> None:
        for after in ("2592000", "9" * 30, "Fri, 31 Dec 9999 23:59:59 GMT"):
            stop = threading.Event()
            waits: list[float] = []

            def heard(_: asset_registry.RegistryError, wait: float, waits: list[float] = waits,
                      stop: threading.Event = stop) -> None:
                waits.append(wait)
                stop.set()

            server, client = self.serve(refusal(503, "url/server", Retry_After=after), attempts=1, on_retry=heard)
            self.assertEqual(list(client.follow(stop=stop)), [])
            self.assertEqual((waits, len(server.seen)), ([3600.0], 1))

    def test_a_follower_pauses_also_if_the_server_asks_for_no_pause(self) -> None:
        self.assertGreaterEqual(asset_registry._pause(asset_registry.ApiError("", 503, (), 0.0), 5), 2.0)

    def test_a_follower_goes_on_after_an_empty_page_and_trouble(self) -> None:
        busy = refusal(503, "url/server", Retry_After="0")
        server, client = self.serve(reply(200, page()), reply(200, page("1")), reply(200, page(offset="1")), busy,
                                    reply(200, page("2")), attempts=1)
        changes = client.follow(interval=0)
        self.assertEqual([next(changes).data["id"] for _ in range(2)], ["1", "2"])
        self.assertEqual([path.partition("&")[2] for path, _, _ in server.seen],
                         ["", "", "offset=1", "offset=1", "offset=1"])

    def test_a_follower_ends_when_it_is_told_to(self) -> None:
        stop = threading.Event()
        _, client = self.serve(reply(200, page("1")))
        seen = []
        for change in client.follow(stop=stop):
            seen.append(change.data["id"])
            stop.set()
        self.assertEqual(seen, ["1"])

    def test_a_follower_keeps_the_cookie_of_its_position(self) -> None:
        server, client = self.serve(reply(200, page("1"), Set_Cookie="SERVER_ID=old; Path=/; HttpOnly"),
                                    refusal(412, "url/precondition", Set_Cookie="SERVER_ID=new; Path=/"),
                                    reply(200, {"data": {}}), refusal(404, "querystring/offset"))
        changes = client.follow()
        position = next(changes).position
        self.assertEqual(position, "1;old")
        client._server.value = "old"
        client.change("a", {})  # its second request has the new cookie
        with self.assertRaises(OffsetGone):
            next(client.follow(position))
        self.assertEqual([headers.get("Cookie") for _, headers, _ in server.seen],
                         [None, "SERVER_ID=old", "SERVER_ID=new", "SERVER_ID=old"])

    def test_changes_at_the_same_time_all_learn_of_other_data(self) -> None:
        barrier = threading.Barrier(8)

        def other(handler: Handler) -> None:
            barrier.wait(30)  # all have sent the old cookie
            refusal(412, "url/precondition", Set_Cookie="SERVER_ID=new; Path=/")(handler)

        server, client = self.serve(*[other] * 8, *[reply(200, {"data": {}})] * 8)
        client._server.value = "old"
        outcomes: list[object] = []

        def change() -> None:
            try:
                outcomes.append(client.change("a", {}).data)
            except asset_registry.RegistryError as error:
                outcomes.append(error)

        threads = [threading.Thread(target=change) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(outcomes, [{}] * 8)
        cookies = sorted(headers["Cookie"] for _, headers, _ in server.seen)
        self.assertEqual(cookies, ["SERVER_ID=new"] * 8 + ["SERVER_ID=old"] * 8)

    def test_a_412_of_other_data_is_not_the_callers_own_change(self) -> None:
        other = refusal(412, "url/precondition", Set_Cookie="SERVER_ID=new; Path=/")
        server, client = self.serve(other, refusal(412, "url/precondition"))
        client._server.value = "old"
        with self.assertRaises(asset_registry.PreconditionFailed) as caught:
            client.change("a", {}, if_match='"1"')
        self.assertEqual((caught.exception.attempts, caught.exception.uncertain), (2, False))

    def test_a_412_without_a_new_cookie_is_final(self) -> None:
        server, client = self.serve(refusal(412, "url/precondition"))
        with self.assertRaises(asset_registry.PreconditionFailed):
            client.change("a", {}, if_match='"1"')
        self.assertEqual(len(server.seen), 1)

    def test_another_404_is_no_reason_to_start_over(self) -> None:
        _, client = self.serve(refusal(404, "url/not_found"))
        with self.assertRaises(asset_registry.NotFound) as caught:
            next(client.follow("1", on_start_over=lambda: self.fail("got a start over, want none")))
        self.assertNotIsInstance(caught.exception, OffsetGone)


def stream(*parts: str, cut: bool = False, held: threading.Event | None = None) -> Reply:
    """stream returns an event stream. It breaks off after its parts with `cut`, and stays open until `held` is set."""

    def send(handler: Handler) -> None:
        handler.send_response(200)
        for name, value in {"Content-Type": "text/event-stream", "Set-Cookie": "SERVER_ID=s; Path=/",
                            "Transfer-Encoding": "chunked"}.items():
            handler.send_header(name, value)
        handler.end_headers()
        for part in ("retry: 1\n\n", *parts):
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(part.encode()), part.encode()))
        if held is not None:
            held.wait(60)
        if not cut:
            handler.wfile.write(b"0\r\n\r\n")
        handler.close_connection = True

    return send


def change(offset: str) -> str:
    """change is a message with an entry."""
    return f'id: {offset}\ndata: {{"id":"{offset}",\ndata: "dateModified":"{offset}"}}\n\n'


def bookmark(offset: str) -> str:
    """bookmark is a message that moves the offset."""
    return f'event: bookmark\nid: {offset}\ndata: {{"offset":"{offset}"}}\n\n'


def offsets(server: Server) -> list[str]:
    """offsets returns the offsets of the requests."""
    return [path.partition("offset=")[2] for path, _, _ in server.seen]


class Streams(Case):
    """Streams are followed without a loss."""

    def test_a_stream_goes_on_where_it_ended(self) -> None:
        both = change("1") + change("2")
        for name, first, second in (
            ("it ends", stream(change("1"), ":\n\n", change("2")), "2"),
            ("it breaks off", stream(both, cut=True), "2"),
            ("it breaks off inside a message", stream(both + change("3")[:20], cut=True), "2"),
            ("it ends inside a message", stream(both, change("3")[:20]), "2"),
            ("its parts are no messages", stream(*both), "2"),
            ("a bookmark moves it on", stream(both, bookmark("25")), "25"),
            ("its lines end in CRLF", stream(both.replace("\n", "\r\n")), "2"),
            ("the retry is part of an entry", stream("retry: 1\n" + both), "2"),
            ("an unknown event", stream(change("1"), "event: x\nid: 9\ndata: 1\n\n", change("2")), "2"),
        ):
            server, client = self.serve(first, stream(change("30")))
            changes = client.follow(live=True)
            with self.subTest(name):
                self.assertEqual([next(changes).position for _ in range(3)], ["1;s", "2;s", "30;s"])
                self.assertEqual(offsets(server), ["", second])
                self.assertEqual(server.seen[1][1]["Accept"], "text/event-stream")
                self.assertEqual(server.seen[1][1]["Cookie"], "SERVER_ID=s")

    def test_a_stream_is_begun_in_spite_of_trouble(self) -> None:
        told: list[asset_registry.RegistryError] = []
        server, client = self.serve(hang_up, refusal(503, "url/server", Retry_After="0"), stream(),
                                    refusal(429, "header/X-RateLimit-Limit", Retry_After="0"), stream(change("2")),
                                    on_retry=lambda error, wait: told.append(error))
        self.assertEqual(next(client.follow("1", live=True)).data["id"], "2")
        self.assertEqual(offsets(server), ["1"] * 5)
        self.assertEqual([type(error).__name__ for error in told],
                         ["TransportError", "Unavailable", "TransportError", "TooManyRequests"])

    def test_a_bookmark_is_told(self) -> None:
        _, client = self.serve(stream(change("1"), bookmark("1"), bookmark("7"), change("8")))
        told: list[str] = []
        changes = client.follow(live=True, on_position=told.append)
        self.assertEqual([next(changes).position for _ in range(2)], ["1;s", "8;s"])
        self.assertEqual(told, ["7;s"])

    def test_a_silent_stream_is_begun_again(self) -> None:
        held = threading.Event()
        self.addCleanup(held.set)
        _, client = self.serve(stream(change("1"), held=held), stream(change("2")))
        silence, asset_registry._SILENCE = asset_registry._SILENCE, 0.2
        self.addCleanup(setattr, asset_registry, "_SILENCE", silence)
        changes = client.follow(live=True)
        self.assertEqual([next(changes).data["id"] for _ in range(2)], ["1", "2"])

    def test_a_follower_ends_while_its_stream_is_silent(self) -> None:
        held, stop = threading.Event(), threading.Event()
        self.addCleanup(held.set)
        server, client = self.serve(stream(change("1"), held=held))
        seen = []
        for found in client.follow(live=True, stop=stop):
            seen.append(found.data["id"])
            threading.Timer(0.01, stop.set).start()
        self.assertEqual((seen, len(server.seen)), (["1"], 1))

    def test_a_stream_starts_over(self) -> None:
        server, client = self.serve(refusal(404, "querystring/offset"), stream(change("1")),
                                    refusal(404, "querystring/offset"))
        told: list[None] = []
        changes = client.follow("9;old", live=True, on_start_over=lambda: told.append(None))
        self.assertEqual((next(changes).data["id"], len(told), offsets(server)), ("1", 1, ["9", ""]))
        with self.assertRaises(OffsetGone):
            next(client.follow("9", live=True))

    def test_a_registry_without_streams_is_followed_by_pages(self) -> None:
        server, client = self.serve(reply(200, page("1")), reply(200, page(offset="1")), stream(change("2")))
        changes = client.follow(live=True, interval=0)
        self.assertEqual([next(changes).data["id"] for _ in range(2)], ["1", "2"])
        self.assertEqual(offsets(server), ["", "1", "1"])

    def test_other_streams_are_refused(self) -> None:
        long = "x" * asset_registry._MOST_MESSAGE
        for text in ("id: 1\ndata: x\n\n", "id: 1\ndata: 1\n\n", "data: {}\n\n", "data: " + long,
                     f"data: {long[::4]}\n" * 5):
            _, client = self.serve(stream(text))
            with self.subTest(text[:20]), self.assertRaises(BadAnswer):
                next(client.follow(live=True))


if __name__ == "__main__":
    unittest.main()
