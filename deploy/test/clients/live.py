"""live follows the feed by streams with the Python client, up to the title LAST, and reports each title."""

import json
import os
import urllib.request

from asset_registry import Client

for change in Client(os.environ["REGISTRY"]).follow(live=True, fields=["title"]):
    body = json.dumps({"Step": "live", "Got": change.data["title"]}).encode()
    with urllib.request.urlopen(os.environ["CONTROL"] + "/step", body, 120) as answer:
        answer.read()
    if change.data["title"] == os.environ["LAST"]:
        break
