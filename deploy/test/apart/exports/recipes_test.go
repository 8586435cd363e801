package exports

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"

	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
)

// recipes returns the recipes of docs/data.md, "Load the data": the shell commands and programs, in their order.
func recipes(t *testing.T) (shell, python []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "data.md"))
	expect.OK(t, err)
	_, section, _ := strings.Cut(string(text), "### Load the data\n")
	section, _, _ = strings.Cut(section, "\n### ")
	for _, block := range regexp.MustCompile("(?s)```(sh|python)\n(.*?)```").FindAllStringSubmatch(section, -1) {
		if block[1] == "sh" {
			shell = append(shell, block[2])
		} else {
			python = append(python, block[2])
		}
	}
	if len(shell) != 4 || len(python) != 1 {
		t.Fatalf("got %d recipes for a shell and %d for Python, want 4 and 1", len(shell), len(python))
	}
	return shell, python
}

// workshop runs commands in a folder.
type workshop struct {
	dir string
	env []string
}

func (w workshop) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = w.dir, append(os.Environ(), w.env...)
	var faults strings.Builder
	cmd.Stderr = &faults
	out, err := cmd.Output()
	if err != nil || faults.String() != "" {
		t.Fatalf("%s %.300q: %v: %s%s", name, args, err, out, faults.String())
	}
	return string(out)
}

// startPostgreSQL starts a server with a new database, and returns the environment variables with which psql
// connects to it.
func startPostgreSQL(t *testing.T) (env []string) {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(found) == 0 {
		needtest.Missing(t, "psql", "there is no /usr/lib/postgresql")
	}
	bin := found[len(found)-1]
	dir, err := os.MkdirTemp("", "postgresql") // t.TempDir is closed to other users
	expect.OK(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	var as *syscall.Credential
	if os.Geteuid() == 0 { // the server refuses to run as root
		nobody, err := user.Lookup("nobody")
		expect.OK(t, err)
		uid, _ := strconv.Atoi(nobody.Uid)
		gid, _ := strconv.Atoi(nobody.Gid)
		as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		expect.OK(t, os.Chown(dir, uid, gid))
	}
	server := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: as}
		return cmd
	}
	data := filepath.Join(dir, "data")
	if out, err := server("initdb", "-D", data, "-U", "reader", "-E", "UTF8", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v: %s", err, out)
	}
	run := server("postgres", "-D", data, "-k", dir, "-h", "")
	expect.OK(t, run.Start())
	t.Cleanup(func() {
		_ = run.Process.Signal(syscall.SIGINT)
		_ = run.Wait()
	})
	env = []string{"PGHOST=" + dir, "PGUSER=reader", "PGDATABASE=postgres"}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		ask := exec.Command("psql", "-c", "SELECT 1")
		ask.Env = append(os.Environ(), env...)
		out, err := ask.CombinedOutput()
		if err == nil {
			return env
		}
		if time.Now().After(deadline) {
			t.Fatalf("psql: %v: %s", err, out)
		}
	}
}

// startWithCopies starts a registry, and waits until its whole copies have an asset for each element of `texts`. It
// returns the address of the registry.
func startWithCopies(t *testing.T, args ...string) string {
	t.Helper()
	base := strings.TrimSuffix(start(t, append(args, "--snapshot-interval", "1s")...), "/api/2.5/")
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get(base + "/data/manifest.json")
		expect.OK(t, err)
		var newest struct {
			Data struct{ Files []struct{ Rows int } }
		}
		err = json.NewDecoder(resp.Body).Decode(&newest)
		resp.Body.Close()
		if err == nil && len(newest.Data.Files) > 0 && newest.Data.Files[0].Rows == len(texts) {
			return base
		}
		if time.Now().After(deadline) {
			t.Fatalf("got no whole copy with %d assets within 30 s", len(texts))
		}
	}
}

// python3 is Debian's Python, which has the libraries. The first python3 in PATH may be another Python.
const python3 = "/usr/bin/python3"

// imports returns an error if Python lacks a library.
func imports(library string) error {
	_, err := exec.Command(python3, "-c", "import "+library).Output()
	return err
}

// TestRecipes loads whole copies with the commands of docs/data.md. The loaded titles and quantities must be those
// that the test has sent to the registry.
func TestRecipes(t *testing.T) {
	needtest.Commands(t, "curl", "sqlite3", "psql", "python3", "ssconvert")
	if *bin == "" {
		t.Fatal("name the folder of the programs with -bin; make test-search does so")
	}
	base := startWithCopies(t)
	var titles, exact, quantities []string
	for i, text := range texts {
		titles, exact = append(titles, text.want), append(exact, text.sent)
		quantities = append(quantities, quantity(i))
	}
	slices.Sort(titles)
	slices.Sort(exact)
	slices.Sort(quantities)
	shell, python := recipes(t)
	w := workshop{t.TempDir(), append(startPostgreSQL(t), "REGISTRY="+base)}
	expect.OK(t, os.Chmod(w.dir, 0o755))
	for _, recipe := range shell {
		w.run(t, "bash", "-euo", "pipefail", "-c", recipe)
	}
	same := func(what string, got, want []string) {
		t.Helper()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	list := func(text string) (values []string) {
		t.Helper()
		if err := json.Unmarshal([]byte(text), &values); err != nil {
			t.Fatalf("got %s, %v; want a list of texts", text, err)
		}
		return values
	}
	const titlesOf, quantitiesOf = `SELECT %s(title) FROM assets`, `SELECT %s(quantity) FROM items`
	same("SQLite: titles", list(w.run(t, "sqlite3", "registry.db", fmt.Sprintf(titlesOf, "json_group_array"))), titles)
	same("SQLite: quantities", list(w.run(t, "sqlite3", "registry.db", fmt.Sprintf(quantitiesOf, "json_group_array"))), quantities)
	same("PostgreSQL: titles", list(w.run(t, "psql", "-Atc", fmt.Sprintf(titlesOf, "json_agg"))), titles)
	same("PostgreSQL: quantities", list(w.run(t, "psql", "-Atc", fmt.Sprintf(quantitiesOf, "json_agg"))), quantities)
	const program = "\nimport json, sys\nprint(json.dumps(list(records['title'])), file=sys.stderr)\n"
	expect.OK(t, os.WriteFile(filepath.Join(w.dir, "recipe.py"), []byte(python[0]+program), 0o600))
	if err := imports("pandas"); err != nil {
		needtest.Missing(t, "python3-pandas", err)
	}
	said := w.run(t, "bash", "-c", python3+" recipe.py 2>&1 >sums")
	same("pandas: titles", list(said), exact)
	sheet, err := excelize.OpenFile(filepath.Join(w.dir, "assets.xlsx"))
	expect.OK(t, err)
	defer sheet.Close()
	rows, err := sheet.GetRows(sheet.GetSheetName(0))
	if err != nil || len(rows) != len(texts)+1 {
		t.Fatalf("got %d rows in the spreadsheet, %v; want %d", len(rows), err, len(texts)+1)
	}
	at := slices.Index(rows[0], "title")
	var shown, cells []string
	for i, row := range rows[1:] {
		// For a spreadsheet, a ' at the beginning of a cell only means that the cell is a text. Gnumeric does not
		// escape _x0041_ in its XLSX files.
		cell := strings.ReplaceAll(strings.TrimPrefix(titles[i], "'"), "_x0041_", "A")
		shown, cells = append(shown, row[at]), append(cells, cell)
	}
	slices.Sort(cells)
	same("spreadsheet: titles", shown, cells)
}

// TestAPortalHarvestsTheCopies reads the whole copies with libraries for catalogues, schemas and tables that others
// have written. They must find all rows of each file.
// Promises: whole-catalogue, whole-schemas
func TestAPortalHarvestsTheCopies(t *testing.T) {
	needtest.Commands(t, "python3")
	if err := imports("rdflib"); err != nil {
		needtest.Missing(t, "python3-rdflib", err)
	}
	if err := imports("jsonschema"); err != nil {
		needtest.Missing(t, "python3-jsonschema", err)
	}
	const licence, publisher = "https://licence.example/by/4.0/", "Фонд <майна> & партнери"
	base := startWithCopies(t, "--data-licence", licence, "--data-publisher", publisher)
	script, err := filepath.Abs("harvest.py")
	expect.OK(t, err)
	var got map[string]int
	out := workshop{dir: t.TempDir()}.run(t, python3, script, base, licence, publisher)
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("got %s, %v; want the rows of each file", out, err)
	}
	n := len(texts)
	want := map[string]int{"assets.csv": n, "items.csv": n, "documents.csv": n, "assets.jsonl.gz": n, "assets.geojson": n}
	expect.NoDiff(t, cmp.Diff(want, got), "rows")
}
