package exports

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/needtest"
	"asset-registry/shared/porttest"
	"asset-registry/shared/testing/expect"
)

var bin = flag.String("bin", "", "folder of the programs")

// texts has titles to send, and for each title the text that an exported file must have.
var texts = []struct{ sent, want string }{
	{"=HYPERLINK(\"http://a.example\";\"b\")", "'=HYPERLINK(\"http://a.example\";\"b\")"},
	{"Готель;\t=1+1", "Готель;\t'=1+1"},
	{"@SUM(1)", "'@SUM(1)"},
	{"+380 (44) 123-45-67", "+380 (44) 123-45-67"},
	{"-cmd|' /C calc'!A0", "'-cmd|' /C calc'!A0"},
	{"Готель «Одеса», 5 поверхів;\n\"два\" рядки", "Готель «Одеса», 5 поверхів;\n\"два\" рядки"},
	{"a_x0041_b <&> 😀", "a_x0041_b <&> 😀"},
}

const creation = `{"data":{"assetType":"bounce","title":%s,"description":"d","assetCustodian":{"name":"n",
	"identifier":{"scheme":"UA-EDR","id":"00032945"},"address":{"countryName":"Україна"},
	"contactPoint":{"name":"n","telephone":"+380441234567"}},
	"items":[{"description":"i","classification":{"scheme":"CAV-PS","id":"06111000-3","description":"c"},
	"unit":{"code":"MTK"},"quantity":%s,"address":{"countryName":"Україна"},"registrationDetails":{"status":"unknown"},
	"location":{"latitude":"46.4825","longitude":30.7233}}],
	"decisions":[{"decisionDate":"2026-11-20","decisionID":"1"}]}}`

// send sends a request with the key of a broker, and returns the answer.
func send(t *testing.T, method, url, token, body string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader([]byte(body)))
	expect.OK(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Access-Token", token)
	req.SetBasicAuth("broker", "")
	resp, err := http.DefaultClient.Do(req)
	expect.OK(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		t.Fatalf("%s %s: got %d %s, %v", method, url, resp.StatusCode, text, err)
	}
	return text
}

// start starts a registry, creates an asset for each element of `texts`, and waits until a search finds all of
// them. It returns the address of the registry.
func start(t *testing.T, args ...string) string {
	t.Helper()
	addr, err := porttest.FreeAddr()
	expect.OK(t, err)
	var output processes.Output
	registry, err := processes.Standalone(t.Context(), *bin, addr, filepath.Join(t.TempDir(), "data"), &output,
		append(args, "--search")...)
	expect.OK(t, err)
	t.Cleanup(func() { expect.Err(t, registry.Stop(), nil, "stop") })
	base := "http://" + addr + "/api/2.5/"
	for i, text := range texts {
		title, err := json.Marshal(text.sent)
		expect.OK(t, err)
		var created struct {
			Access struct{ Token string }
			Data   struct{ ID string }
		}
		answer := send(t, http.MethodPost, base+"assets", "", fmt.Sprintf(creation, title, quantity(i)))
		expect.OK(t, json.Unmarshal(answer, &created))
		send(t, http.MethodPatch, base+"assets/"+created.Data.ID, created.Access.Token, `{"data":{"status":"pending"}}`)
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if resp, err := http.Head(base + "search.csv"); err == nil && resp.Header.Get("Registry-Total") == fmt.Sprint(len(texts)) {
			return base
		}
	}
	t.Fatal("a search does not find all assets")
	return ""
}

// quantity returns the quantity of the asset number i. The first quantity has more digits than a spreadsheet keeps.
func quantity(i int) string {
	if i == 0 {
		return "1234567890123456.7"
	}
	return fmt.Sprintf("%d.25", i)
}

// TestOthersReadTheFiles publishes assets with difficult texts. It reads the exported files with Python's csv
// and with excelize. Both must read the texts and numbers of the assets.
func TestOthersReadTheFiles(t *testing.T) {
	if *bin == "" {
		t.Fatal("name the folder of the programs with -bin; make test-search does so")
	}
	base := start(t)
	for name, rows := range map[string][][]string{
		"csv":  readCSV(t, send(t, http.MethodGet, base+"search.csv?sort=modified", "", "")),
		"xlsx": readSheet(t, send(t, http.MethodGet, base+"search.xlsx?sort=modified", "", "")),
	} {
		if len(rows) != len(texts)+1 {
			t.Fatalf("%s: got %d rows, want %d", name, len(rows), len(texts)+1)
		}
		for i, text := range texts {
			got := map[string]string{}
			for n, column := range rows[0] {
				got[column] = ""
				if n < len(rows[i+1]) {
					got[column] = rows[i+1][n]
				}
			}
			want := map[string]string{"title": text.want, "items.0.quantity": quantity(i),
				"assetCustodian.contactPoint.telephone": "+380441234567", "assetCustodian.identifier.id": "00032945",
				"items.0.location.latitude": "46.4825", "items.0.location.longitude": "30.7233"}
			for column := range got {
				if _, compared := want[column]; !compared {
					delete(got, column)
				}
			}
			expect.NoDiff(t, cmp.Diff(want, got), "%s, row %d", name, i)
		}
	}
}

// readCSV reads a file with Python's csv.
func readCSV(t *testing.T, file []byte) (rows [][]string) {
	t.Helper()
	const program = `import csv, json, sys, io
print(json.dumps(list(csv.reader(io.TextIOWrapper(sys.stdin.buffer, "utf-8", newline=""), strict=True))))`
	needtest.Commands(t, "python3")
	python := exec.CommandContext(t.Context(), "python3", "-c", program)
	python.Stdin = bytes.NewReader(file)
	text, err := python.Output()
	expect.OK(t, err)
	expect.OK(t, json.Unmarshal(text, &rows))
	return rows
}

// readSheet reads a file with excelize.
func readSheet(t *testing.T, file []byte) [][]string {
	t.Helper()
	book, err := excelize.OpenReader(bytes.NewReader(file))
	expect.OK(t, err)
	defer book.Close()
	rows, err := book.GetRows("assets", excelize.Options{RawCellValue: true})
	expect.OK(t, err)
	return rows
}
