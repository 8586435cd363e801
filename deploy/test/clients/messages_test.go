package clients

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
)

// messages is a file of right and wrong messages to receivers of webhooks. The tests of deploy/test/apart/webhooks
// check the same messages with the library of Standard Webhooks.
const messages = "../apart/webhooks/testdata/messages.json"

// verified returns the text that clients must print for the messages: a line for each message, with its name and
// the outcome.
func verified(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(messages)
	expect.OK(t, err)
	var all []struct {
		Name, Body string
		Right      bool
	}
	expect.OK(t, json.Unmarshal(text, &all))
	var lines strings.Builder
	for _, m := range all {
		outcome := "refused"
		if m.Right && strings.Contains(m.Body, "challenge") {
			outcome = "dGVzdA"
		} else if m.Right {
			outcome = "Склад № 7 240.50010"
		}
		lines.WriteString(m.Name + ": " + outcome + "\n")
	}
	return lines.String()
}

func TestPythonClientVerifiesMessages(t *testing.T) {
	needtest.Commands(t, "python3")
	const script = `
import asset_registry, json, sys
for m in json.load(open(sys.argv[1], encoding="utf-8")):
    headers = {"Webhook-Id": m["id"], "Webhook-Timestamp": m["timestamp"], "Webhook-Signature": m["signature"]}
    try:
        got = asset_registry.read_message(m["secret"], headers, m["body"].encode(), now=m["now"])
        outcome = got.challenge or f'{got.entries[0]["title"]} {got.entries[0]["items"][0]["quantity"]}'
    except asset_registry.BadSignature:
        outcome = "refused"
    print(f'{m["name"]}: {outcome}')
`
	got := program(t, ".", []string{absolutePython(t), "PYTHONDONTWRITEBYTECODE=1", "PYTHONIOENCODING=utf-8"}, "python3", "-c",
		script, messages)
	expect.NoDiff(t, cmp.Diff(verified(t), got), "messages")
}

func TestTypeScriptClientVerifiesMessages(t *testing.T) {
	needtest.Commands(t, "node", "npm")
	dir, _ := compiled(t)
	path, err := filepath.Abs(messages)
	expect.OK(t, err)
	const script = `
import { readFileSync } from "node:fs";
import { BadSignature, readMessage } from "asset-registry";
for (const m of JSON.parse(readFileSync(process.env.MESSAGES, "utf8"))) {
  const headers = { "webhook-id": m.id, "webhook-timestamp": m.timestamp, "webhook-signature": m.signature };
  const body = new TextEncoder().encode(m.body);
  const outcome = await readMessage(m.secret, (name) => headers[name], body, m.now * 1000).then(({ data }) =>
    data.challenge ?? data.entries[0].title + " " + data.entries[0].items[0].quantity, (error) => {
    if (!(error instanceof BadSignature)) throw error;
    return "refused";
  });
  console.log(m.name + ": " + outcome);
}`
	got := program(t, dir, []string{"MESSAGES=" + path}, "node", "--input-type=module", "--eval", script)
	expect.NoDiff(t, cmp.Diff(verified(t), got), "messages")
}
