package bulk

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"asset-registry/shared/export"
)

// Languages are the languages of templates.
var Languages = []string{"uk", "en"}

// template has the columns of a table that needs no mapping: names in the order of Languages, paths of fields, and an
// example. The first column has the references.
var template = []struct {
	names         [2]string
	path, example string
}{
	{[2]string{"Лот", "Lot"}, "", ""},
	{[2]string{"Назва", "Title"}, "title", "Склад № 1"},
	{[2]string{"Опис", "Description"}, "description, items.0.description", "Нежитлове приміщення"},
	{[2]string{"Площа або кількість", "Quantity"}, "items.0.quantity", "1104"},
	{[2]string{"Код одиниці", "Unit code"}, "items.0.unit.code", "MTK"},
	{[2]string{"Код CAV-PS", "CAV-PS code"}, "items.0.classification.id", "06111000-3"},
	{[2]string{"Назва коду", "Name of the code"}, "items.0.classification.description", "Земля"},
	{[2]string{"Область", "Region"}, "items.0.address.region", "Львівська область"},
	{[2]string{"Населений пункт", "Locality"}, "items.0.address.locality", "Львів"},
	{[2]string{"Адреса", "Street address"}, "items.0.address.streetAddress", "вул. Зелена, 7"},
	{[2]string{"Номер рішення", "Decision number"}, "decisions.0.decisionID", "12/К"},
	{[2]string{"Дата рішення", "Decision date"}, "decisions.0.decisionDate", exampleDay},
	{[2]string{"Балансоутримувач", "Custodian"}, "assetCustodian.name", "Фонд державного майна"},
	{[2]string{"Код ЄДРПОУ", "EDRPOU code"}, "assetCustodian.identifier.id", "00032945"},
	{[2]string{"Контактна особа", "Contact"}, "assetCustodian.contactPoint.name", "Олена Коваль"},
	{[2]string{"Пошта", "Email"}, "assetCustodian.contactPoint.email", "olena@example.ua"},
	{[2]string{"Фото", "Photos"}, "documents.0.file", "1-а.jpg; 1-б.jpg"},
	{[2]string{"Документи", "Documents"}, "documents.1.file", "1.pdf"},
}

const exampleDay = "2026-11-20"

// examples begin the row with the example, which an import skips.
var examples = []string{"Зразок", "Example"}

// templateSettings is the mapping of a template in a language, without its columns.
const templateSettings = `version: 1
decimal: %q
dates: %q
digits: 8
files: ";"
skip: [%q]
reference: %q
constants:
  assetType: bounce
  items.0.classification.scheme: CAV-PS
  items.0.address.countryName: Україна
  items.0.registrationDetails.status: unknown
  assetCustodian.identifier.scheme: UA-EDR
  assetCustodian.address.countryName: Україна
  documents.0.documentType: illustration
  documents.1.documentType: notice
columns:
`

// TemplateMapping returns the mapping of a template, as a YAML file.
func TemplateMapping(language string) string {
	at := slices.Index(Languages, language)
	dates, decimal := dayFirst, ","
	if language == "en" {
		dates, decimal = "", "."
	}
	var text strings.Builder
	fmt.Fprintf(&text, templateSettings, decimal, dates, examples[at], template[0].names[at])
	for _, c := range template {
		fmt.Fprintf(&text, "  %s: %q\n", c.names[at], c.path)
	}
	return text.String()
}

// WriteTemplate writes a table with headings and an example in a language: XLSX, or else CSV.
func WriteTemplate(to io.Writer, language string, asXLSX bool) error {
	at := slices.Index(Languages, language)
	var headings, example []string
	for _, c := range template {
		text := c.example
		if text == exampleDay && language != "en" {
			text = "20.11.2026"
		}
		headings, example = append(headings, c.names[at]), append(example, text)
	}
	example[0] = examples[at]
	return WriteTable(to, headings[0], [][]string{headings, example}, asXLSX)
}

// WriteTable writes a table of texts: XLSX, or else CSV for Excel.
func WriteTable(to io.Writer, name string, rows [][]string, asXLSX bool) error {
	if asXLSX {
		var all [][]any
		for _, row := range rows {
			var cells []any
			for _, text := range row {
				cells = append(cells, text)
			}
			all = append(all, cells)
		}
		_, err := export.WriteTable(to, "xlsx", name, all)
		return err
	}
	if _, err := to.Write(utf8Mark); err != nil {
		return err
	}
	w := csv.NewWriter(to)
	w.Comma, w.UseCRLF = ';', true
	return w.WriteAll(rows)
}

// OfTemplate returns the mapping of the template from which a table was made, or nil if its headings are no template's.
// It takes no lines of JSON for a table.
func OfTemplate(s Source) (*Mapping, error) {
	begin := make([]byte, 512)
	n, err := s.File.ReadAt(begin, 0)
	if err != nil && err != io.EOF || strings.HasPrefix(tidy(string(begin[:n])), "{") {
		return nil, nil // the reader of lines says what is wrong
	}
	for at, language := range Languages {
		m, _ := ReadMapping(strings.NewReader(TemplateMapping(language))) // a test reads it
		if _, err := s.File.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		t := &table{mapping: m}
		faults, err := t.open(s)
		if err != nil {
			return nil, err
		}
		isXLSX := strings.HasPrefix(string(begin[:n]), "PK")
		isLast := len(faults) > 0 || at == len(Languages)-1
		if slices.Contains(t.header, heading(template[0].names[at])) || isXLSX && isLast {
			return &m, nil
		}
	}
	return nil, nil
}
