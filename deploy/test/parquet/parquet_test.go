// Package parquet reads the file of registry-parquet with a reader that others wrote, and
// compares it with the feed.
package parquet

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"asset-registry/deploy/registry/client"
	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/porttest"
)

var bin = flag.String("bin", "", "absolute path of the directory of the programs; by default they are built")

const timeout = 3 * time.Minute // of one program

func TestAForeignReaderReadsTheFeed(t *testing.T) {
	for _, name := range []string{"node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			if cmp.Or(os.Getenv("CI"), "false") != "false" {
				t.Fatalf("%v: `make test-parquet` installs it on Debian", err)
			}
			t.Skipf("%v: `make test-parquet` installs it on Debian", err)
		}
	}
	dir, programs := t.TempDir(), *bin
	if programs == "" {
		programs = dir
		if err := processes.Build(t.Context(), programs); err != nil {
			t.Fatal(err)
		}
		program(t, nil, "../../registry/parquet",
			"env", "GOWORK=off", "go", "build", "-o", filepath.Join(programs, "registry-parquet"), ".")
	}
	writer, ctl := filepath.Join(programs, "registry-parquet"), filepath.Join(programs, "registryctl")
	modules := lastLine(program(t, nil, ".", "sh", "../clients/npm.sh", "."))
	addr, err := porttest.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	data, output := filepath.Join(dir, "data"), new(processes.Output)
	registry, err := processes.Standalone(t.Context(), programs, addr, data, output, "--snapshot-interval", "0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := registry.Stop(); err != nil {
			t.Errorf("stop the registry: %v; it printed: %s", err, output.String())
		}
	}()
	c, err := client.New(client.Config{URL: "http://" + addr, Key: "broker"})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, c)
	program(t, nil, ".", filepath.Join(programs, "registry"), "snapshot", "--data", data)

	file := filepath.Join(dir, "snapshot.parquet")
	program(t, nil, ".", writer, "--url", "http://"+addr, file)
	head, rows := read(t, file, modules)
	want := feed(t, c)
	compare(t, rows, want)
	snapshot, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := head.Properties["registry.position"], string(snapshot.Position); got != want {
		t.Errorf("got position %s in the metadata, want %s", got, want)
	}

	copied := filepath.Join(dir, "copy")
	program(t, nil, ".", ctl, "--url", "http://"+addr, "sync", copied, "--once")
	lines := program(t, nil, ".", ctl, "sync", "export", copied)
	file = filepath.Join(dir, "lines.parquet")
	program(t, lines, ".", writer, "--lines", "-", file)
	_, rows = read(t, file, modules)
	compare(t, rows, want)
}

// quantities are those of the assets; JSON has them as numbers.
var quantities = []string{"0.0001", "1", "240.5", "12345678.9", "99999999999.25"}

// fill publishes assets of several kinds.
func fill(t *testing.T, c *client.Client) {
	t.Helper()
	text, err := os.ReadFile("../../bench/copy/asset.json")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		var body struct {
			Data map[string]any `json:"data"`
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&body); err != nil {
			t.Fatal(err)
		}
		asset := body.Data
		asset["title"] = fmt.Sprintf("№ %d \"quoted\"\n\u2028 🏠", i)
		items := asset["items"].([]any)
		for n, item := range items {
			item.(map[string]any)["quantity"] = json.Number(quantities[(i+n)%len(quantities)])
		}
		asset["items"] = items[:1+i%len(items)]
		if i%3 == 0 {
			asset["assetHolder"] = asset["assetCustodian"]
		}
		if i%4 == 0 {
			asset["mode"] = "test"
		}
		created, err := c.CreateFields(t.Context(), asset, "")
		if err != nil {
			t.Fatal(err)
		}
		write := client.Write{Token: created.Access.Token}
		if i%5 == 0 {
			continue // a draft
		}
		if _, err := c.Patch(t.Context(), created.Asset.ID, client.Fields{"status": client.Pending}, write); err != nil {
			t.Fatal(err)
		}
	}
}

// feed returns the entries of the feed by their ids.
func feed(t *testing.T, c *client.Client) map[string]string {
	t.Helper()
	entries := map[string]string{}
	all := client.Feed{Mode: client.AllModes, Fields: []string{"*"}, Raw: true}
	for page, err := range c.Pages(t.Context(), all) {
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range page.Raw {
			var head struct{ ID string }
			if err := json.Unmarshal(entry, &head); err != nil {
				t.Fatal(err)
			}
			entries[head.ID] = string(entry)
		}
	}
	return entries
}

// head is the metadata of a file.
type head struct {
	Groups     int               `json:"groups"`
	Properties map[string]string `json:"properties"`
}

// read returns what the foreign reader reads.
func read(t *testing.T, file, modules string) (h head, rows []map[string]any) {
	t.Helper()
	lines := bytes.Split(bytes.TrimSpace(program(t, nil, ".", "node", "read.mjs", file, modules)), []byte("\n"))
	if err := json.Unmarshal(lines[0], &h); err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		var row map[string]any
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		for _, i := range row["items"].([]any) {
			item := i.(map[string]any)
			item["quantity"] = about(item["quantity"].(float64))
		}
		rows = append(rows, row)
	}
	return h, rows
}

// compare compares the rows of a file with the entries of the feed.
func compare(t *testing.T, rows []map[string]any, feed map[string]string) {
	t.Helper()
	if len(feed) < 30 || len(rows) != len(feed) {
		t.Errorf("got %d rows of %d entries, want as many, and at least 30", len(rows), len(feed))
	}
	for _, row := range rows {
		id, _ := row["id"].(string)
		if got, want := row["json"], feed[id]; got != want {
			t.Errorf("asset %s: got the JSON %s, want %s", id, got, want)
			continue
		}
		var entry any
		if err := json.Unmarshal([]byte(feed[id]), &entry); err != nil {
			t.Fatal(err)
		}
		delete(row, "json")
		if diff := gocmp.Diff(columns(t, entry), row); diff != "" {
			t.Errorf("asset %s (-want +got):\n%s", id, diff)
		}
	}
}

// columns returns what the columns of an entry should be.
func columns(t *testing.T, entry any) map[string]any {
	row := map[string]any{"date_modified": micros(t, at(entry, "dateModified")), "date": micros(t, at(entry, "date"))}
	for column, path := range map[string]string{
		"id": "id", "asset_id": "assetID", "status": "status", "mode": "mode", "asset_type": "assetType", "title": "title",
		"description": "description", "owner": "owner", "custodian_name": "assetCustodian.name",
		"custodian_scheme": "assetCustodian.identifier.scheme", "custodian_id": "assetCustodian.identifier.id",
		"custodian_region": "assetCustodian.address.region", "custodian_locality": "assetCustodian.address.locality",
		"holder_name": "assetHolder.name", "holder_scheme": "assetHolder.identifier.scheme",
		"holder_id": "assetHolder.identifier.id",
	} {
		row[column] = at(entry, path)
	}
	items, decisions := []any{}, []any{}
	for _, i := range at(entry, "items").([]any) {
		quantity := at(i, "quantity").(float64)
		items = append(items, map[string]any{
			"description": at(i, "description"), "quantity": about(quantity), "unit_code": at(i, "unit.code"),
			"unit_name": at(i, "unit.name"), "classification_scheme": at(i, "classification.scheme"),
			"classification_id":            at(i, "classification.id"),
			"additional_classification_id": at(i.(map[string]any)["additionalClassifications"].([]any)[0], "id"),
			"region":                       at(i, "address.region"), "locality": at(i, "address.locality"),
		})
	}
	for _, d := range at(entry, "decisions").([]any) {
		decisions = append(decisions, map[string]any{
			"decision_id": at(d, "decisionID"), "decision_date": micros(t, at(d, "decisionDate")), "title": at(d, "title"),
		})
	}
	row["items"], row["decisions"] = items, decisions
	return row
}

// about is a number that the reader may have rounded: it has no decimals.
func about(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// at returns the value at a dotted path, nil if there is none.
func at(value any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

func micros(t *testing.T, timestamp any) any {
	t.Helper()
	text, _ := timestamp.(string)
	parsed, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.FormatInt(parsed.UnixMicro(), 10)
}

// program runs a program and returns what it prints.
func program(t *testing.T, in []byte, dir, name string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	var faults bytes.Buffer
	command.Dir, command.Stdin, command.Stderr = dir, bytes.NewReader(in), &faults
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s %v: got %v, want success; it printed: %s", name, args, err, faults.String())
	}
	return out
}

func lastLine(text []byte) string {
	lines := strings.Fields(string(text))
	return lines[len(lines)-1]
}
