package exports

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
)

// TestEachReaderOpensTheSheets opens the XLSX files of a search with exceljs, SheetJS, read-excel-file, openpyxl and
// LibreOffice. Each must find the same texts and numbers below the headings, and codes with their zeros.
// Promises: export-columns
func TestEachReaderOpensTheSheets(t *testing.T) {
	needtest.Commands(t, "node", "npm", "python3", "soffice")
	modules := strings.TrimSpace(string(output(t, ".", "sh", "../../clients/npm.sh", ".")))
	script := expect.Get(filepath.Abs("read.cjs"))(t)
	base, dir := start(t), t.TempDir()
	site := strings.TrimSuffix(base, "/api/2.5/")
	for path, columns := range map[string]map[string]string{
		base + "search.xlsx": {"title": "title", "id": "assetCustodian.identifier.id", "quantity": "items.0.quantity", "page": "page"},
		site + "/uk/search.xlsx": {"title": "Назва", "id": "Балансоутримувач: Код організації: Ідентифікатор",
			"quantity": "Складова: Кількість", "page": "Сторінка"},
		site + "/en/search.xlsx": {"title": "Title", "id": "Custodian: Identifier of the organisation: Identifier",
			"quantity": "Item: Quantity", "page": "Page"},
	} {
		file := filepath.Join(dir, "list.xlsx")
		expect.OK(t, os.WriteFile(file, send(t, http.MethodGet, path+"?sort=modified", "", ""), 0o600))
		office := func() []byte {
			convert(t, dir, "soffice", "-env:UserInstallation=file://"+dir+"/profile", "--convert-to",
				"csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false", "list.xlsx")
			return expect.Get(json.Marshal(readCSV(t, expect.Get(os.ReadFile(filepath.Join(dir, "list.csv")))(t))))(t)
		}
		for reader, text := range map[string][]byte{
			"exceljs": read(t, modules, script, "exceljs", file), "SheetJS": read(t, modules, script, "xlsx", file),
			"read-excel-file": read(t, modules, script, "read-excel-file", file), "LibreOffice": office(),
			"openpyxl": output(t, ".", "/usr/bin/python3", "-c", `import json, sys, openpyxl
book = openpyxl.load_workbook(sys.argv[1], read_only=True)
print(json.dumps([list(row) for row in book.worksheets[0].iter_rows(values_only=True)], default=str))`, file),
		} {
			var rows [][]any
			expect.OK(t, json.Unmarshal(text, &rows))
			expect.Equal(t, len(rows), len(texts)+1, "%s, %s: rows", path, reader)
			for i, want := range texts {
				got := map[string]string{}
				for column, heading := range columns {
					for n, name := range rows[0] {
						if name == heading && n < len(rows[i+1]) {
							got[column] = fmt.Sprint(rows[i+1][n])
						}
					}
				}
				// Only SheetJS and LibreOffice take the escape away that a text with _x0041_ needs.
				got["title"] = strings.ReplaceAll(got["title"], "_x005F_", "_")
				if got["title"] != want.want && reader != "LibreOffice" || got["id"] != "00032945" || got["quantity"] != quantity(i) ||
					!strings.HasPrefix(got["page"], site) {
					t.Errorf("%s, %s, row %d: got %v, want %q with its code, quantity and page", path, reader, i+2, got, want.want)
				}
			}
		}
	}
}

// read reads a file with a library of Node.
func read(t *testing.T, modules, script, library, file string) []byte {
	t.Helper()
	return output(t, filepath.Dir(modules), "env", "NODE_PATH="+modules, "node", script, library, file)
}

// output returns what a command writes.
func output(t *testing.T, dir, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	return expect.Get(cmd.Output())(t)
}
