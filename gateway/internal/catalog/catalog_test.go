package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"asset-registry/shared/export"
	"asset-registry/shared/testing/expect"
)

// manifest has every file of a whole copy, and a file that only a newer asset service could make.
func manifest() export.Manifest {
	m := export.Manifest{Every: 3600, Date: "2026-11-22T15:00:00.000000+02:00", Position: "2026-11-22T14:59:00.000000+02:00"}
	for i, f := range export.Whole {
		m.Files = append(m.Files, export.File{
			Name: f.Name, SHA256: strings.Repeat("0", 63) + string(rune(49+i)), Bytes: int64(100 + i), Rows: 10 + i})
	}
	m.Files = append(m.Files, export.File{Name: "assets.parquet"})
	return m
}

// The function `at` returns the value at a path of members and indices.
func at(value any, path ...any) any {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			object, _ := value.(map[string]any)
			value = object[s]
		case int:
			list, _ := value.([]any)
			if s >= len(list) {
				return nil
			}
			value = list[s]
		}
	}
	return value
}

// TestTheCatalogueHasEachFile makes a catalogue. It must list each file of whole copies, and escape the texts that
// could end an HTML element.
// Promises: whole-catalogue
func TestTheCatalogueHasEachFile(t *testing.T) {
	text, err := JSONLD(Settings{DataLicence: "https://licence.example/4.0", DataPublisher: `Фонд </script><b>`}, "https://registry.example", manifest())
	expect.OK(t, err)
	expect.ErrorIf(t, strings.ContainsAny(string(text), "<>"), "got %s, want < and > escaped", text)
	var got any
	expect.OK(t, json.Unmarshal(text, &got))
	list, _ := at(got, "dcat:dataset", 0, "dcat:distribution").([]any)
	expect.FatalIf(t, len(list) != len(export.Whole), "got %d files, want %d", len(list), len(export.Whole))
	for i, f := range export.Whole {
		for path, want := range map[string]any{
			"dcat:downloadURL/@id":                    "https://registry.example/data/" + f.Name,
			"dcat:byteSize/@value":                    "10" + string(rune(48+i)),
			"dct:extent/rdf:value":                    float64(10 + i),
			"spdx:checksum/spdx:checksumValue/@value": strings.Repeat("0", 63) + string(rune(49+i)),
			"dct:license/@id":                         "https://licence.example/4.0",
			"dct:modified/@value":                     "2026-11-22T15:00:00.000000+02:00",
			"dct:publisher":                           nil,
		} {
			var steps []any
			for _, s := range strings.Split(path, "/") {
				steps = append(steps, s)
			}
			expect.Equal(t, at(list[i], steps...), want, "%s: %s", f.Name, path)
		}
		for n, want := range []string{"uk: Перед =, @, + і - на початку тексту", "en: A ' stands before =, @, + and -"} {
			of := at(list[i], "dct:description", n)
			got := fmt.Sprintf("%v: %v", at(of, "@language"), at(of, "@value"))
			if strings.HasPrefix(got, want) != strings.HasSuffix(f.Name, ".csv") {
				t.Errorf("%s: got the description %s, want %q of tables only", f.Name, got, want)
			}
		}
	}
	often := at(got, "dcat:dataset", 0, "dct:accrualPeriodicity")
	if name, _ := at(often, "@id").(string); !strings.HasSuffix(name, "/HOURLY") || at(often, "rdf:value") != 3600.0 {
		t.Errorf("got the frequency %v, want an hour", often)
	}
	for _, path := range [][]any{{}, {"dcat:dataset", 0}} {
		expect.Equal(t, at(at(got, path...), "dct:publisher", "foaf:name"), `Фонд </script><b>`, "the publisher")
	}
}

func TestACatalogueWithoutLicenceNamesNone(t *testing.T) {
	text, err := JSONLD(Settings{}, "http://127.0.0.1:8080", manifest())
	if err != nil || strings.Contains(string(text), "license") || strings.Contains(string(text), "publisher") {
		t.Errorf("got %s, %v; want neither a licence nor a publisher", text, err)
	}
}

func TestALicenceIsAnAddress(t *testing.T) {
	for licence, isGood := range map[string]bool{
		"": true, "https://creativecommons.org/licenses/by/4.0/": true, "http://a.example/x": true,
		"CC BY 4.0": false, "javascript:alert(1)": false, "https://": false, "//a.example": false, "data:text/html,x": false,
		"https://a.example/" + strings.Repeat("x", 2000): false,
	} {
		if err := (Settings{DataLicence: licence}).Validate(); (err == nil) != isGood {
			t.Errorf("%.60q: got %v, want an error: %t", licence, err, !isGood)
		}
	}
}

// TestEachTableIsDescribed compares the described columns with the header of each table. A table must refer only to
// tables of the same description.
// Promises: whole-schemas
func TestEachTableIsDescribed(t *testing.T) {
	files, err := Descriptions()
	expect.OK(t, err)
	want := []string{"/data/assets.csv-metadata.json", "/data/assets.schema.json", "/data/documents.csv-metadata.json",
		"/data/items.csv-metadata.json"}
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
		t.Fatalf("got the descriptions %q, want %q", got, want)
	}
	for _, of := range export.Tables {
		w := httptest.NewRecorder()
		files["/data/"+of.Name+".csv-metadata.json"].ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		var group struct {
			Tables []struct {
				URL         string `json:"url"`
				TableSchema struct {
					Columns     []struct{ Name, Titles, Datatype string }
					ForeignKeys []struct {
						Reference struct{ Resource, ColumnReference string }
					}
				}
			}
		}
		expect.OK(t, json.Unmarshal(w.Body.Bytes(), &group))
		described := map[string][]string{}
		for _, table := range group.Tables {
			for _, c := range table.TableSchema.Columns {
				described[table.URL] = append(described[table.URL], c.Titles)
			}
		}
		if len(described[of.Name+".csv"]) == 0 {
			t.Errorf("%s: the description is of other tables: %v", of.Name, described)
		}
		for _, table := range group.Tables {
			var header strings.Builder
			whole := export.Whole[slices.IndexFunc(export.Whole, func(f export.Form) bool { return f.Name == table.URL })]
			expect.Get(whole.Open(&header))(t)
			if got, want := strings.Join(described[table.URL], ","), strings.TrimSpace(header.String()); got != want {
				t.Errorf("%s: got the columns %s, want the file's columns, %s", table.URL, got, want)
			}
			for _, key := range table.TableSchema.ForeignKeys {
				if to := key.Reference; !slices.Contains(described[to.Resource], to.ColumnReference) {
					t.Errorf("%s: refers to %+v, which the group does not have", table.URL, to)
				}
			}
		}
	}
}

// TestTheSchemaOfALineIsWhole checks that each reference in the schema leads to an existing definition.
func TestTheSchemaOfALineIsWhole(t *testing.T) {
	files, err := Descriptions()
	expect.OK(t, err)
	w := httptest.NewRecorder()
	files[SchemaPath].ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	var schema struct {
		Ref  string         `json:"$ref"`
		Defs map[string]any `json:"$defs"`
	}
	expect.OK(t, json.Unmarshal(w.Body.Bytes(), &schema))
	refs := []string{schema.Ref}
	var walk func(any)
	walk = func(value any) {
		switch v := value.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for name, e := range v {
				if to, isText := e.(string); isText && name == "$ref" {
					refs = append(refs, to)
				}
				walk(e)
			}
		}
	}
	for _, d := range schema.Defs {
		walk(d)
	}
	expect.ErrorIf(t, len(refs) < 5, "got %d references, want at least 5", len(refs))
	for _, to := range refs {
		if name, isOurs := strings.CutPrefix(to, "#/$defs/"); !isOurs || schema.Defs[name] == nil {
			t.Errorf("got the reference %s, which leads nowhere", to)
		}
	}
	if _, err := lineSchema([]byte(`{"components":{"schemas":{"Asset":{"$ref":"#/components/schemas/None"}}}}`)); err == nil {
		t.Error("got no error for a schema that is missing")
	}
}
