"""hostile calls a hostile server with the Python client, and prints the outcome of each case.

HOSTILE is the address of the server, CASES are the cases as JSON.
"""

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from asset_registry import ApiError, BadAnswer, Client, RegistryError, TransportError


def call(case: dict[str, Any]) -> str:
    """call makes the call of a case and returns what comes of it."""
    stop = threading.Event()

    def heard(_: RegistryError, __: float) -> None:
        if case["call"] == "follow":
            threading.Timer(0.3, stop.set).start()

    def change() -> str:
        return client.change("a", {"title": "x"}, token="token").data["title"]

    with Client(f"{os.environ['HOSTILE']}/{case['name']}", "broker", attempts=1 if case["call"] == "follow" else 2,
                timeout=1 if case["hang"] else 60, max_answer=1 << 20, on_retry=heard) as client:
        match case["call"]:
            case "get":
                return client.get("a").data["title"]
            case "change":
                return change()
            case "pages":
                return f"{len([*client.pages()])} pages"
            case "follow":
                return "waits" if not [*client.follow(stop=stop)] else "changes"
            case "restored":
                client.get("a")
                with ThreadPoolExecutor(8) as pool:
                    return " ".join({done.result() for done in [pool.submit(change) for _ in range(8)]})
    raise ValueError(case["call"])


def outcome(case: dict[str, Any]) -> str:
    """outcome returns what comes of a case."""
    try:
        return call(case)
    except ApiError as error:
        return f"refused {error.status}"
    except BadAnswer:
        return "bad answer"
    except TransportError:
        return "no answer"
    except Exception as error:  # no client raises it
        return repr(error)


cases = json.loads(os.environ["CASES"])
with ThreadPoolExecutor(len(cases)) as all_at_once:
    outcomes = dict(zip([case["name"] for case in cases], all_at_once.map(outcome, cases)))
print(json.dumps(outcomes))
