package registryctl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// files writes files into a new directory, and returns the directory.
func files(t *testing.T, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		expect.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// TestAnImportWithFaultsSendsNothing checks that every fault is named with its row and column, and that no
// request is sent.
func TestAnImportWithFaultsSendsNothing(t *testing.T) {
	api := newPublicAPI(t, nil)
	dir := files(t, map[string]string{
		"rows.csv":  "Лот,Назва\n1,\n1,\x1b[31m\n",
		"map.yaml":  "version: 1\nreference: Лот\ncolumns: {Назва: title}\n",
		"bad.yaml":  "version: 7\nreference: Лот\ncolumns: {Назва: titel}\n",
		"rows.json": `{"reference":"1","data":{}}` + "\n",
		"odd.csv":   "Лот,Назва\n1,Склад\n2,Цех 5 м?\n",
		"odd.yaml": "version: 1\nreference: Лот\ncolumns: {Назва: title}\nconstants: {assetType: bounce, description: Цех,\n" +
			"items.0.description: Цех, items.0.classification.id: 06111000-3, items.0.classification.description: Земля,\n" +
			"items.0.unit.code: MTK, items.0.quantity: 1, items.0.address.countryName: Україна, items.0.registrationDetails.status: unknown,\n" +
			"decisions.0.decisionDate: 2026-11-20, decisions.0.decisionID: 7, assetCustodian.name: Фонд,\n" +
			"assetCustodian.identifier.scheme: UA-EDR, assetCustodian.identifier.id: \"32945\", assetCustodian.address.countryName: Україна,\n" +
			"assetCustodian.contactPoint.name: Олена, assetCustodian.contactPoint.email: a@b.ua}\n",
	})
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range []struct {
		name string
		args []string
		says []string // texts in the output and in the error
		exit int
	}{
		{"rows with faults", []string{at("rows.csv"), "--mapping", at("map.yaml")},
			[]string{"row 2, Назва: This field is required.", "row 3, reference: row 2 has the same reference", "nothing was sent"}, exitRefused},
		{"rows with faults as JSON", []string{at("rows.csv"), "--mapping", at("map.yaml"), "-o", "json"},
			[]string{`{"row":2,"column":"Назва","fault":"This field is required."}`}, exitRefused},
		{"a mapping with faults", []string{at("rows.csv"), "--mapping", at("bad.yaml")},
			[]string{"mapping: version must be one of", "bad.yaml has 1 faults"}, exitUsage},
		{"lines with faults", []string{at("rows.json"), "--check"}, []string{"row 1, title: This field is required."}, exitRefused},
		{"warnings", []string{at("odd.csv"), "--mapping", at("odd.yaml")}, []string{
			"warning: constant assetCustodian.identifier.id: ", "warning: row 3, Назва: ", "no faults, and 2 warnings; nothing was sent",
			"--accept-warnings 2"}, exitRefused},
		{"another number of warnings", []string{at("odd.csv"), "--mapping", at("odd.yaml"), "--accept-warnings", "3", "-o", "json"},
			[]string{`{"row":3,"column":"Назва","fault":"got`, `"level":"warning"}`, "2 warnings; nothing was sent"}, exitRefused},
		{"accepted warnings that are not there", []string{at("rows.json"), "--accept-warnings", "-1"}, []string{"--accept-warnings"}, exitUsage},
		{"a directory", []string{dir}, []string{"is not a file"}, exitUsage},
		{"no file", []string{at("none")}, []string{"no such file"}, exitUsage},
		{"too many rows at once", []string{at("rows.json"), "--rows", "1000"}, []string{"--rows: it must be 1 to 256"}, exitUsage},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := run(t, append(append(api.flags, "assets", "import"), c.args...)...)
			if err == nil || ExitCode(err) != c.exit {
				t.Fatalf("got %v with the code %d, want an error with the code %d", err, ExitCode(err), c.exit)
			}
			for _, says := range c.says {
				expect.ErrorIf(t, !strings.Contains(got+err.Error(), says), "got %q and %v, want %q in them", got, err, says)
			}
			if sent := api.seen(); len(sent) > 0 || strings.Contains(got, "\x1b") {
				t.Errorf("got the requests %q and the output %q, want no request and no control character", sent, got)
			}
		})
	}
	_ = expect.Get(run(t, "assets", "import", at("odd.csv"), "--mapping", at("odd.yaml"), "--accept-warnings", "2", "--check"))(t)
	if _, err := os.Stat(at("rows.csv.access")); !os.IsNotExist(err) {
		t.Errorf("got %v, want no file of tokens", err)
	}
}

// TestATemplateIsANewFile writes templates. They must be checked without a mapping, and replace no file.
func TestATemplateIsANewFile(t *testing.T) {
	api := newPublicAPI(t, nil)
	for _, args := range [][]string{{"list.xlsx"}, {"list.CSV", "--lang", "en"}} {
		name := filepath.Join(t.TempDir(), args[0])
		args = append(append(api.flags, "assets", "import", "--template", name), args[1:]...)
		_ = expect.Get(run(t, args...))(t)
		got, err := run(t, append(api.flags, "assets", "import", name, "--check")...)
		if err == nil || !strings.Contains(got, "skipped: row 2, ") || !strings.Contains(got, "the file has no rows") {
			t.Errorf("%s: got %q, %v, want a table whose example is skipped", name, got, err)
		}
		_, err = run(t, args...)
		expect.Says(t, err, "write the template", "at the second time")
	}
}

// TestAReportForPeople checks tables with faults in both languages. The report must have the faults beside the cells of
// their rows, and replace a former report.
func TestAReportForPeople(t *testing.T) {
	dir := files(t, map[string]string{
		"rows.csv": "Лот,Назва\n1,=1+1\n1,Склад\n", "map.yaml": "version: 1\nreference: Лот\ncolumns: {Назва: title}\n",
	})
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range []struct {
		report, lang string
		has          []string
	}{
		{"report.csv", "uk_UA.UTF-8", []string{"\ufeffregistryctl;Стовпець;Зауваження;Лот;Назва\r\n",
			"3;посилання;\"таке саме посилання в рядку 2: \"\"1\"\"\";1;Склад\r\n", "Це поле обов'язкове.", ";1;'=1+1\r\n"}},
		{"report.csv", "en", []string{"registryctl;column;fault;"}},
		{"report.xlsx", "uk", []string{"PK"}},
		{"report.XLSX", "en", []string{"PK"}},
	} {
		for range 2 {
			args := []string{"assets", "import", at("rows.csv"), "--mapping", at("map.yaml"), "--report", at(c.report), "--lang", c.lang}
			if got, err := run(t, args...); err == nil || c.lang == "uk" && !strings.Contains(got+err.Error(), "рядок 3, посилання: ") {
				t.Errorf("%s: got %q, %v, want faults", c.report, got, err)
			}
		}
		got := string(expect.Get(os.ReadFile(at(c.report)))(t))
		for _, text := range c.has {
			expect.ErrorIf(t, !strings.Contains(got, text), "%s: got %q, want %q in it", c.report, got, text)
		}
	}
}

// TestAReportReplacesOnlyAReport names files of other kinds for the report. The command must be refused, and the file
// must stay.
func TestAReportReplacesOnlyAReport(t *testing.T) {
	api := newPublicAPI(t, nil)
	dir := files(t, map[string]string{
		"rows": `{"reference":"1","data":{}}` + "\n", "binary": "\x89PNG\x00", "journal": `{"import":1,"registry":"r","broker":"b"}` + "\n",
		"copy": `{"reference":"1","data":{}}` + "\n", "report": `{"row":2,"reference":"1","state":"done"}` + "\n", "empty": "",
	})
	for name, refused := range map[string]bool{
		"rows": true, "binary": true, "journal": true, "copy": true, "report": false, "empty": false, "new": false, ".": true,
	} {
		before, _ := os.ReadFile(filepath.Join(dir, name))
		_, err := run(t, append(api.flags, "assets", "import", filepath.Join(dir, "rows"), "--report", filepath.Join(dir, name))...)
		isAbout := err != nil && strings.Contains(err.Error(), "--report")
		expect.ErrorIf(t, err == nil || isAbout != refused,
			"%s: got %v, want an error about the report: %t", name, err, refused)
		if after, _ := os.ReadFile(filepath.Join(dir, name)); string(after) != string(before) {
			t.Errorf("%s: got the file %q, want %q", name, after, before)
		}
	}
	expect.Fails(t, mayReplace(os.DevNull), "a device")
}

// TestFaultsThatArePrintedAreBounded imports files with many faults and with a huge one. The error must have the whole
// count.
func TestFaultsThatArePrintedAreBounded(t *testing.T) {
	api := newPublicAPI(t, nil)
	const rows = 3000
	var many strings.Builder
	for i := range rows {
		fmt.Fprintf(&many, "{\"reference\":\"%d\",\"data\":{\"nope\":1}}\n", i)
	}
	dir := files(t, map[string]string{
		"many": many.String(), "huge": `{"reference":"1","data":{"` + strings.Repeat("ґ", 100_000) + `":1}}` + "\n",
	})
	for _, output := range []string{asTable, asJSON} {
		for name, most := range map[string]int{"many": (mostFaults + 1) * (2*mostText + 100), "huge": 10_000} {
			var out, errOut strings.Builder
			args := append(api.flags, "-o", output, "assets", "import", filepath.Join(dir, name), "--check")
			err := Run(t.Context(), args, strings.NewReader(""), &out, &errOut)
			got := out.String()
			if lines := strings.Count(got, "\n"); lines > mostFaults || len(got) > most {
				t.Errorf("%s as %s: got %d lines with %d bytes, want at most %d and %d", name, output, lines, len(got), mostFaults, most)
			}
			if name != "many" {
				continue
			}
			var found int
			_, scanned := fmt.Sscanf(err.Error()[strings.Index(err.Error(), "has "):], "has %d faults", &found)
			if scanned != nil || found < rows || strings.Count(errOut.String(), "There are more faults") != 1 {
				t.Errorf("as %s: got %v, want the count of all faults, and a line about those not printed", output, err)
			}
		}
	}
}

// TestTokensOfAnImport reads the tokens of one asset from the file that an import has written. The last tokens
// in the file must be used.
func TestTokensOfAnImport(t *testing.T) {
	name := filepath.Join(files(t, map[string]string{"access": `{"import":1,"registry":"r","broker":"b"}
{"reference":"1","data":{"id":"a1"},"access":{"token":"old","transfer":"x"}}
{"reference":"2","data":{"id":"a2"},"access":{"token":"two","transfer":"x"}}
{"reference":"1","published":true}
{"data":{"id":"a1"},"access":{"token":"new","transfer":"y"}}
{"reference":"3","da`}), "access")
	held, err := readAccess(name, "a1")
	expect.ErrorIf(t, err != nil || held.Access.Token != "new" || held.Access.Transfer != "y",
		"got %+v, %v, want the last tokens of a1", held, err)
	expect.FailsOf(t, "an asset without tokens")(readAccess(name, "a3"))
}

// TestMain asks for English, whatever the language of the machine is.
func TestMain(m *testing.M) {
	os.Setenv("LC_ALL", "C")
	os.Exit(m.Run())
}
