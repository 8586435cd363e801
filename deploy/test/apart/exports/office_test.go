package exports

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/shared/cells"
	"asset-registry/shared/export"
	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
)

// hostile returns texts with which a cell could begin a formula: each sign behind each character that could end a cell.
func hostile() (texts []string) {
	for _, begin := range []string{"", "x;", "x\t", "x\n", "x\r", "x\r\n", "\n", "\t", ";", "x;\"", "x\n\"", "x;\"\"", "x\u2028", "x,"} {
		for _, formula := range []string{"=1+1", "@SUM(1)", "+SUM(1)", "-SUM(1)", "＝1+1", "＋SUM(1)", "－SUM(1)", "=1+1;=2+2"} {
			texts = append(texts, begin+formula, begin+formula+";y")
		}
	}
	return texts
}

// TestLibreOfficeCalculatesNoCell opens tables of hostile texts in LibreOffice, by each separator. It calculates cells of
// a table whose texts are as they were sent, and no cell of an exported file. Promises: export-formulas
func TestLibreOfficeCalculatesNoCell(t *testing.T) {
	needtest.Commands(t, "soffice")
	dir := t.TempDir()
	raw, audit := bytes.Buffer{}, bytes.Buffer{}
	forms := map[string]*bytes.Buffer{"raw.csv": &raw, "audit.csv": &audit}
	sent, log := csv.NewWriter(&raw), csv.NewWriter(&audit)
	var assets []*export.Asset
	for i, text := range hostile() {
		field, _ := json.Marshal(text) // cannot fail: a text
		a, isShown, err := export.Read(fmt.Appendf(nil, `{"id":"a%d","status":"active","title":%s,"description":%[2]s,
			"items":[{"id":"i","description":%[2]s,"address":{"locality":%[2]s}}],
			"documents":[{"id":"d","title":%[2]s,"description":%[2]s}]}`, i, field))
		if err != nil || !isShown {
			t.Fatalf("%q: got %t, %v, want an asset", text, isShown, err)
		}
		assets = append(assets, a)
		id := fmt.Sprintf("a%d", i)
		_ = sent.Write([]string{id, text, text, id}) // Flush into a buffer cannot fail
		_ = log.Write([]string{id, cells.Harmless(text), cells.Harmless(text), id})
	}
	sent.Flush()
	log.Flush()
	for _, form := range append(export.Whole[:3], export.Searches[1]) {
		file := bytes.Buffer{}
		e, err := form.Open(&file)
		for _, a := range assets {
			if err == nil {
				err = e.Add(a)
			}
		}
		if err == nil {
			err = e.Close()
		}
		expect.OK(t, err)
		forms[form.Name] = &file
	}
	for name, file := range forms {
		expect.OK(t, os.WriteFile(filepath.Join(dir, name), file.Bytes(), 0o600))
	}
	for separator, code := range map[string]string{"comma": "44", "semicolon": "59", "tab": "9"} {
		args := []string{"-c", `exec soffice "$@" *.csv`, "sh", "-env:UserInstallation=file://" + dir + "/profile",
			"--infilter=Text - txt - csv (StarCalc):" + code + ",34,76,1", "--convert-to", "fods", "--outdir", separator}
		if separator == "comma" {
			convert(t, dir, "soffice", args[3], "--convert-to", "fods", "--outdir", separator, "xlsx")
		}
		convert(t, dir, "sh", args...)
		for name := range forms {
			if name == "xlsx" && separator != "comma" {
				continue // it has no separators
			}
			opened, err := os.ReadFile(filepath.Join(dir, separator, strings.TrimSuffix(name, ".csv")+".fods"))
			expect.OK(t, err)
			formulas := bytes.Count(opened, []byte("table:formula="))
			switch {
			case !bytes.Contains(opened, fmt.Appendf(nil, "a%d", len(assets)-1)):
				t.Errorf("%s by %s: the last row is not there", name, separator)
			case name == "raw.csv" && formulas == 0:
				t.Errorf("%s by %s: got no formula, want some: the test looks at nothing", name, separator)
			case name != "raw.csv" && formulas > 0:
				t.Errorf("%s by %s: got %d formulas, want none", name, separator, formulas)
			}
			t.Logf("%s by %s: %d formulas", name, separator, formulas)
		}
	}
}

// convert runs a command that starts LibreOffice in a folder. LibreOffice writes warnings, so its text tells nothing.
func convert(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v: %.500s", name, args, err, text)
	}
}
