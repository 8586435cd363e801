package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"asset-registry/deploy/registry/bulk"
	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/testing/expect"
)

// lots is a folder with an office's list, its mapping and its files.
type lots struct {
	api
	dir, file, access string
	ids, tokens       map[string]string
}

const lotsMapping = `version: 1
delimiter: ";"
dates: DD.MM.YYYY
reference: Лот
prefix: %s
columns: {Лот: decisions.0.decisionID, Назва: title, Площа: items.0.quantity, Рішення: decisions.0.decisionDate,
  Опис: description, Двір: items.1.quantity, Файл: documents.0.file}
constants: {assetType: bounce, items.0.description: Цех, items.0.classification.scheme: CAV-PS,
  items.0.classification.id: 06111000-3, items.0.classification.description: Земля, items.0.unit.code: MTK,
  items.0.address.countryName: Україна, items.0.registrationDetails.status: unknown, items.1.description: Двір,
  items.1.classification.scheme: CAV-PS, items.1.classification.id: 06111000-3, items.1.classification.description: Земля,
  items.1.unit.code: MTK, items.1.address.countryName: Україна, items.1.registrationDetails.status: unknown,
  assetCustodian.name: Фонд, assetCustodian.identifier.scheme: UA-EDR, assetCustodian.identifier.id: "00032945",
  assetCustodian.address.countryName: Україна, assetCustodian.contactPoint.name: Олена,
  assetCustodian.contactPoint.email: olena@example.ua, documents.0.documentType: notice}
`

// begin writes a list with its files, and imports it.
func (a api) begin(t *testing.T, prefix string, rows ...string) *lots {
	t.Helper()
	dir := t.TempDir()
	o := &lots{api: a, dir: dir, file: filepath.Join(dir, "list.csv"), access: filepath.Join(dir, "access")}
	o.write(t, "list.yaml", fmt.Sprintf(lotsMapping, prefix))
	o.write(t, "a.txt", "умови")
	o.write(t, "b.txt", "план")
	o.list(t, rows...)
	if got, err := a.load(t, t.Context(), o.file, dir, o.access, nil); err != nil || got.Done != len(rows) {
		t.Fatalf("got %+v, %v, want an import", got, err)
	}
	o.ids, o.tokens = map[string]string{}, tokensOf(t, o.access)
	for _, own := range list(a.do(t, call{method: "GET", path: "/me/assets?limit=1000&opt_fields=reference", key: "broker"}).must(t, 200).json["data"]) {
		if lot, ok := strings.CutPrefix(bulk.ReadReference(text(at(own, "reference"))), prefix); ok {
			o.ids[lot] = text(at(own, "id"))
		}
	}
	return o
}

func (o *lots) write(t *testing.T, name, text string) {
	t.Helper()
	expect.OK(t, os.WriteFile(filepath.Join(o.dir, name), []byte(text), 0o600))
}

func (o *lots) list(t *testing.T, rows ...string) {
	t.Helper()
	o.write(t, "list.csv", "Лот;Назва;Площа;Рішення;Опис;Двір;Файл\n"+strings.Join(rows, "\n")+"\n")
}

// run runs registryctl, and checks the texts in its output.
func (o *lots) run(t *testing.T, fails bool, args []string, says ...string) {
	t.Helper()
	args = append([]string{"--mapping", filepath.Join(o.dir, "list.yaml")}, args...)
	out, err := importing(o.api, o.file, o.dir, o.access, args...).CombinedOutput()
	if (err != nil) != fails {
		t.Errorf("%v: got %v and %s, want an error: %t", args, err, out, fails)
	}
	for _, text := range says {
		if !strings.Contains(string(out), text) {
			t.Errorf("%v: got %s, want %q in it", args, out, text)
		}
	}
}

// shows checks values of the asset of a lot, each as "path=value".
func (o *lots) shows(t *testing.T, lot string, values ...string) {
	t.Helper()
	asset := o.do(t, call{method: "GET", path: "/assets/" + o.ids[lot], key: "broker"}).must(t, 200).json["data"]
	for _, v := range values {
		path, want, _ := strings.Cut(v, "=")
		if got := fmt.Sprint(at(asset, path)); !strings.HasPrefix(got, want) {
			t.Errorf("lot %s, %s: got %s, want %s", lot, path, got, want)
		}
	}
}

// documents returns the number of documents of a lot's asset, and that of all their versions.
func (o *lots) documents(t *testing.T, lot string) [2]int {
	t.Helper()
	path := "/assets/" + o.ids[lot] + "/documents"
	count := func(query string) int {
		return len(list(o.do(t, call{method: "GET", path: path + query, key: "broker"}).must(t, 200).json["data"]))
	}
	return [2]int{count(""), count("?all=1")}
}

// patch changes the asset of a lot from elsewhere.
func (o *lots) patch(t *testing.T, lot string, change fields) {
	t.Helper()
	o.as(t, "broker", created{id: o.ids[lot], token: o.tokens[o.ids[lot]]}, "PATCH", "/assets/"+o.ids[lot], change).must(t, 200)
}

func (o *lots) modified(t *testing.T) (all []string) {
	t.Helper()
	for _, lot := range []string{"1", "2", "3", "4", "5"} {
		got := o.do(t, call{method: "GET", path: "/assets/" + o.ids[lot], key: "broker"})
		all = append(all, text(at(got.json["data"], "dateModified")))
	}
	return all
}

// TestACorrectedTableChangesItsAssets imports a list, then a corrected one: with other values, a replaced file, an added
// one, an empty cell, a row that has left and a new one. Then it withdraws the row that has left.
func TestACorrectedTableChangesItsAssets(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	standalone(t, addr, filepath.Join(t.TempDir(), "data"), &processes.Output{})
	o := api{"http://" + addr, "2.5"}.begin(t, "кор-",
		"1;Склад;10.5;20.11.2026;Опис;7;a.txt", "2;Гараж;20;20.11.2026;Опис;;b.txt", "3;Сарай;30;20.11.2026;Опис;;", "4;Хата;40;20.11.2026;Опис;;")
	lost := *o
	lost.access = filepath.Join(o.dir, "lost")
	lost.run(t, true, []string{"--check"}, "row 2, the asset was created before", "4 would be refused")
	o.patch(t, "1", fields{"description": "Мій опис"})
	o.patch(t, "2", fields{"title": "Гараж міський"})
	o.write(t, "b.txt", "новий план")
	o.list(t, "1;Склад;11;20.11.2026;Опис;8;a.txt", "2;Гараж № 2;;20.11.2026;Опис;;b.txt", "3;Сарай;30;21.11.2026;Опис;5;a.txt",
		"5;Льох;50;20.11.2026;Опис;;")
	before := o.modified(t)
	shown := []string{
		`change: row 2, Площа: "10.5" becomes "11" (asset UA-`, `change: row 2, Двір: "7" becomes "8"`,
		`change: row 3, Назва: "Гараж міський" becomes "Гараж № 2"`, `change: row 3, Файл: "b.txt" has changed: it becomes a new version`,
		`change: row 4, Рішення: "2026-11-20" becomes "2026-11-21"`, `change: row 4, Двір: "" becomes "5"`, `change: row 4, Файл: "a.txt" is a new document`,
		`note: "кор-4" is not in the table any more`, "1 rows make new assets, 3 change theirs, 0 stay as they are, 0 would be refused"}
	o.run(t, false, []string{"--check"}, shown...)
	o.run(t, true, nil, append(shown, "nothing was sent: answer yes")...)
	if after := o.modified(t); !slices.Equal(before, after) {
		t.Fatalf("got changes at %v, then %v, want none", before, after)
	}
	report := filepath.Join(o.dir, "report.csv")
	o.run(t, false, []string{"--yes", "--report", report}, shown...)
	if got := string(expect.Get(os.ReadFile(report))(t)); !strings.Contains(got, "/en/assets/"+o.ids["2"]+";done;") ||
		!strings.Contains(got, "\r\n5;кор-5;UA-") {
		t.Errorf("got %s, want the pages of the rows", got)
	}
	o.shows(t, "1", "items.0.quantity=11", "items.1.quantity=8", "description=Мій опис", "items.0.id=")
	o.shows(t, "2", "title=Гараж № 2", "items.0.quantity=20")
	o.shows(t, "3", "decisions.0.decisionDate=2026-11-21", "items.1.quantity=5")
	o.shows(t, "4", "status=pending")
	equal(t, "documents of lot 1", o.documents(t, "1"), [2]int{2, 2})
	equal(t, "documents of lot 2", o.documents(t, "2"), [2]int{2, 3})
	equal(t, "documents of lot 3", o.documents(t, "3"), [2]int{2, 2})
	before = o.modified(t)
	o.run(t, false, []string{"--yes"}, "0 rows make new assets, 0 change theirs, 4 stay as they are", "4 of 4 rows are done")
	if after := o.modified(t); !slices.Equal(before, after) {
		t.Errorf("got changes at %v, then %v, want none at a repeat", before, after)
	}
	own := exec.Command(filepath.Join(bin, "registryctl"), "--url", o.base, "--key", "broker", "assets", "list", "--own")
	if out, err := own.CombinedOutput(); err != nil || !strings.Contains(string(out), "кор-2") || !strings.Contains(string(out), o.base+"/uk/assets/"+o.ids["2"]) {
		t.Errorf("got %s, %v, want the references and pages of the assets", out, err)
	}

	o.write(t, "list.yaml", strings.Replace(fmt.Sprintf(lotsMapping, "кор-"), "06111000-3", "04121000-2", 1))
	code := `row 2, constant items.0.classification.id: "06111000-3" becomes "04121000-2" (asset UA-`
	o.run(t, false, []string{"--check", "--report", report}, "change: "+code, "3 change theirs")
	if got := string(expect.Get(os.ReadFile(report))(t)); !strings.Contains(got, ";constant items.0.classification.id;") {
		t.Errorf("got %s, want the changes in the report of the check", got)
	}
	o.write(t, "list.yaml", strings.Replace(fmt.Sprintf(lotsMapping, "кор-"), "version: 1", "version: 1\nempty: clear", 1))
	o.list(t, "1;;11;20.11.2026;Опис;8;a.txt", "2;Гараж № 3;;20.11.2026;Опис;;b.txt", "3;Сарай;30;21.11.2026;Опис;5;a.txt", "5;Льох;50;20.11.2026;Опис;;")
	o.do(t, call{method: "PATCH", path: "/assets/" + o.ids["2"], key: "concierge", body: data(fields{"status": "verification"})}).must(t, 200)
	o.write(t, "order.pdf", "%PDF-")
	o.run(t, true, []string{"--yes", "--withdraw", filepath.Join(o.dir, "order.pdf")},
		"row 2, Назва: This field is required.", "row 3, the asset is in the state verification: only a concierge",
		`change: the asset UA-`, `is deleted: its row "кор-4" is not in the table`, "2 would be refused. 1 assets are deleted", "2 of 4 rows are done")
	o.shows(t, "1", "title=Склад")
	o.shows(t, "4", "status=deleted", "documents.1.documentType=cancellationDetails", "documents.1.title=order.pdf")
	o.run(t, true, []string{"--yes", "--withdraw", filepath.Join(o.dir, "order.pdf")}, "0 assets are deleted")
}

// TestAChangeThatIsStoppedAtEachStep stops a changed import at each of its requests, before or after it, and repeats it.
// Each change must be made once.
func TestAChangeThatIsStoppedAtEachStep(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	standalone(t, addr, filepath.Join(t.TempDir(), "data"), &processes.Output{})
	a := api{"http://" + addr, "2.5"}
	for step := range 9 { // revisions, asset, title, decision, upload, version; then the row that nothing changes
		for _, after := range []bool{false, true} {
			prefix := fmt.Sprint("stop-", step, "-", after, "-")
			o := a.begin(t, prefix, "1;Склад;10;20.11.2026;Опис;;a.txt", "2;Гараж;20;20.11.2026;Опис;;b.txt")
			o.write(t, "a.txt", prefix)
			o.list(t, "1;Цех;11;21.11.2026;Опис;;a.txt", "2;Гараж;20;20.11.2026;Опис;;b.txt")
			ctx, stop := context.WithCancel(t.Context())
			transport := &stopping{after: after, stop: stop}
			transport.left.Store(int64(step + 1))
			_, _ = a.planned(t, ctx, o.file, o.dir, o.access, transport, func() {})
			stop()
			got, err := a.planned(t, t.Context(), o.file, o.dir, o.access, nil, func() {})
			if err != nil || got.Done != 2 {
				t.Errorf("%s: got %+v, %v, want two rows that are done", prefix, got, err)
			}
			o.shows(t, "1", "title=Цех", "items.0.quantity=11", "decisions.0.decisionDate=2026-11-21", "decisions.1=<nil>")
			equal(t, prefix+" documents", o.documents(t, "1"), [2]int{2, 3})
			got, err = a.planned(t, t.Context(), o.file, o.dir, o.access, nil, func() {})
			if want := (bulk.Counts{Done: 2}); err != nil || got != want {
				t.Errorf("%s: got %+v, %v at a repeat, want %+v", prefix, got, err, want)
			}
		}
	}
}

// TestAWithdrawalThatIsStoppedAtEachStep stops a withdrawal at each of its requests, before or after it, and repeats it.
// The asset must be deleted, with one order.
func TestAWithdrawalThatIsStoppedAtEachStep(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	standalone(t, addr, filepath.Join(t.TempDir(), "data"), &processes.Output{})
	a := api{"http://" + addr, "2.5"}
	for step := range 12 { // the plan of both rows, then upload, document, deletion
		for _, after := range []bool{false, true} {
			prefix := fmt.Sprint("gone-", step, "-", after, "-")
			o := a.begin(t, prefix, "1;Склад;10;20.11.2026;Опис;;a.txt", "2;Гараж;20;20.11.2026;Опис;;b.txt")
			o.write(t, "order.pdf", "%PDF-")
			o.list(t, "1;Склад;10;20.11.2026;Опис;;a.txt")
			ctx, stop := context.WithCancel(t.Context())
			transport := &stopping{after: after, stop: stop}
			transport.left.Store(int64(step + 1))
			_, _ = o.planned(t, ctx, o.file, o.dir, o.access, transport, func() {}, "order.pdf")
			stop()
			got, err := o.planned(t, t.Context(), o.file, o.dir, o.access, nil, func() {}, "order.pdf")
			if err != nil || got.Done != 1 || got.Refused+got.NoToken+got.Failed > 0 {
				t.Errorf("%s: got %+v, %v, want a row that is done and one that has left", prefix, got, err)
			}
			o.shows(t, "2", "status=deleted", "documents.2.title=order.pdf", "documents.3=<nil>")
			o.shows(t, "1", "status=pending")
		}
	}
}

// TestAChangeThatSomebodyOvertakes changes assets between the plan of an import and its run. The other changes must stay.
func TestAChangeThatSomebodyOvertakes(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	standalone(t, addr, filepath.Join(t.TempDir(), "data"), &processes.Output{})
	a := api{"http://" + addr, "2.5"}
	for field, written := range map[string]string{"title": "Інша", "description": "Інший"} {
		o := a.begin(t, field+"-", "1;Склад;10;20.11.2026;Опис;;")
		o.list(t, "1;Цех;11;20.11.2026;Опис;;")
		got, err := a.planned(t, t.Context(), o.file, o.dir, o.access, nil, func() { o.patch(t, "1", fields{field: written}) })
		if want := (bulk.Counts{Refused: 1}); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", field, got, err, want)
		}
		o.shows(t, "1", field+"="+written, "items.0.quantity=10")
	}
}
