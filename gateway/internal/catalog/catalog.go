// Package catalog describes the whole copies to programs that look for open data (docs/data.md, "The catalogue"):
// a catalogue (DCAT-AP), the columns of each table (CSVW), and the fields of a line of JSON (JSON Schema).
package catalog

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"asset-registry/gateway/internal/openapi"
	"asset-registry/shared/export"
	"asset-registry/shared/routes"
	"asset-registry/shared/static"
)

// SchemaPath is the path of the JSON Schema of a line. The description of a table is at the table's path
// followed by csvwEnd (CSVW, 5.3).
const (
	SchemaPath = routes.Data + "/assets.schema.json"
	csvwEnd    = "-metadata.json"
)

// ContentType is the media type of a catalogue.
const ContentType = "application/ld+json"

// Settings are the operator's texts about the data. With the tags, the fields are flags of a command.
type Settings struct {
	DataLicence   string `placeholder:"URL" help:"Address of the licence of the data, for /data; by default none."`
	DataPublisher string `placeholder:"NAME" help:"Name of the publisher of the data, for /data; by default none."`
}

// Validate returns a fault if the licence is set and is not a web address.
func (s Settings) Validate() error {
	if s.DataLicence == "" {
		return nil
	}
	u, err := url.Parse(s.DataLicence)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || len(s.DataLicence) > maxText {
		return fmt.Errorf("--data-licence: %.200q must be an address that begins with https://", s.DataLicence)
	}
	return nil
}

// maxText is the maximum number of bytes of the licence's address.
const maxText = 2000

// object is a JSON object.
type object map[string]any

func id(address string) object { return object{"@id": address} }

// The function `both` returns a text in both languages.
func both(uk, en string) []object {
	return []object{{"@value": uk, "@language": "uk"}, {"@value": en, "@language": "en"}}
}

// vocabularies are the prefixes of the terms of a catalogue.
var vocabularies = object{
	"dcat": "http://www.w3.org/ns/dcat#", "dct": "http://purl.org/dc/terms/", "foaf": "http://xmlns.com/foaf/0.1/",
	"rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "spdx": "http://spdx.org/rdf/terms#",
	"xsd": "http://www.w3.org/2001/XMLSchema#",
}

const (
	fileTypes = "http://publications.europa.eu/resource/authority/file-type/"
	languages = "http://publications.europa.eu/resource/authority/language/"
	media     = "https://www.iana.org/assignments/media-types/"
	frequency = "http://publications.europa.eu/resource/authority/frequency/"
)

// frequencies are names in the EU's list of frequencies; the keys are seconds.
var frequencies = map[int64]string{3600: "HOURLY", 24 * 3600: "DAILY", 7 * 24 * 3600: "WEEKLY"}

// about says what a file of a whole copy is.
type about struct {
	uk, en   string
	media    string // media type as registered at IANA
	fileType string // name in the EU's list of file types
	schema   string // path of the file's description; "": none
}

var files = map[string]about{
	"assets.csv": {"Таблиця активів", "Table of assets", tableMedia, "CSV", csvw("assets.csv")},
	"items.csv": {
		"Таблиця об'єктів у складі активів", "Table of items of assets",
		tableMedia, "CSV", csvw("items.csv")},
	"documents.csv": {"Таблиця документів", "Table of documents", tableMedia, "CSV", csvw("documents.csv")},
	"assets.jsonl.gz": {
		"Повні записи, рядок JSON на актив", "Whole records, a line of JSON for each asset",
		"application/json", "JSON", SchemaPath},
	"assets.geojson": {"Активи з координатами", "Assets with coordinates", "application/geo+json", "GEOJSON", ""},
}

// tableMedia is the media type of tables.
const tableMedia = "text/csv"

// formulas says how tables differ from the records (docs/contract.md, "Exports"). GeoJSON and JSON do not differ.
var formulas = both(
	"Перед =, @, + і - на початку тексту чи одразу після крапки з комою, табуляції або нового рядка стоїть ', щоб "+
		"таблиця не прочитала формулу. Перед + і - перед цифрою чи пропуском його немає.",
	"A ' stands before =, @, + and - at the beginning of a text, and directly after a semicolon, a tab or a line break, "+
		"so that no spreadsheet reads a formula. It does not stand before + and - before a digit or a blank.")

// zipped is the media type of gzip files.
const zipped = "application/gzip"

func csvw(table string) string { return routes.Data + "/" + table + csvwEnd }

// JSONLD returns the catalogue of the newest whole copies. Base is the public address of the registry. The JSON
// encoder escapes <, > and & in the operator's texts.
func JSONLD(s Settings, base string, m export.Manifest) ([]byte, error) {
	licensed := func(o object) object {
		if s.DataLicence != "" {
			o["dct:license"] = id(s.DataLicence)
		}
		return o
	}
	published := func(o object) object {
		if s.DataPublisher != "" {
			o["dct:publisher"] = object{"@type": "foaf:Agent", "foaf:name": s.DataPublisher}
		}
		return licensed(o)
	}
	modified := object{"@value": m.Date, "@type": "xsd:dateTime"}
	var distributions []object
	for _, f := range m.Files {
		a, isKnown := files[f.Name]
		if !isKnown {
			continue // only a newer asset service has this file
		}
		lasting := base + routes.Data + "/" + f.Name
		d := object{
			"@id": base + routes.Catalogue + "#" + f.Name, "@type": "dcat:Distribution", "dct:title": both(a.uk, a.en),
			"dcat:accessURL": id(base + routes.Data), "dcat:downloadURL": id(lasting), "dct:modified": modified,
			"dcat:mediaType": id(media + a.media), "dct:format": id(fileTypes + a.fileType),
			"dcat:byteSize": object{"@value": fmt.Sprint(f.Bytes), "@type": "xsd:nonNegativeInteger"},
			"dct:extent":    object{"@type": "dct:SizeOrDuration", "rdf:value": f.Rows},
			"spdx:checksum": object{
				"@type": "spdx:Checksum", "spdx:algorithm": id("spdx:checksumAlgorithm_sha256"),
				"spdx:checksumValue": object{"@value": f.SHA256, "@type": "xsd:hexBinary"},
			},
		}
		if a.media == tableMedia {
			d["dct:description"] = formulas
		}
		if a.schema != "" {
			d["dct:conformsTo"] = id(base + a.schema)
		}
		if f.Name == "assets.jsonl.gz" {
			d["dcat:compressFormat"] = id(media + zipped)
		}
		distributions = append(distributions, licensed(d))
	}
	dataset := published(object{
		"@id": base + routes.Catalogue + "#dataset", "@type": "dcat:Dataset",
		"dct:title": both("Активи реєстру", "Assets of the registry"),
		"dct:description": both("Усі опубліковані активи: державне й комунальне майно, яке пропонують до приватизації.",
			"All published assets: state and municipal property that is put up for privatisation."),
		"dct:modified": modified, "dcat:landingPage": id(base + routes.Data), "dcat:distribution": distributions,
		"dct:language": []object{id(languages + "UKR"), id(languages + "ENG")},
	})
	if m.Every > 0 {
		often := object{"@type": "dct:Frequency", "rdf:value": m.Every}
		if name := frequencies[m.Every]; name != "" {
			often["@id"] = frequency + name
		}
		dataset["dct:accrualPeriodicity"] = often
	}
	return json.Marshal(published(object{
		"@context": vocabularies, "@id": base + routes.Catalogue, "@type": "dcat:Catalog",
		"dct:title":       both("Відкриті дані реєстру активів", "Open data of the asset registry"),
		"dct:description": both("Цілі копії реєстру активів.", "Whole copies of the asset registry."),
		"dct:modified":    modified, "foaf:homepage": id(base + "/"), "dcat:dataset": []object{dataset},
	}))
}

// Descriptions returns the descriptions of tables and lines. The keys are the paths of the descriptions.
func Descriptions() (map[string]*static.File, error) {
	found := map[string]*static.File{}
	add := func(path, contentType string, value any) error {
		text, err := json.MarshalIndent(value, "", " ")
		if err != nil {
			return fmt.Errorf("describe %s: %w", path, err)
		}
		found[path] = static.New(contentType, "no-cache", append(text, '\n'))
		return nil
	}
	for _, t := range export.Tables {
		if err := add(csvw(t.Name+".csv"), "application/csvm+json", tables()); err != nil {
			return nil, err
		}
	}
	schema, err := lineSchema(openapi.JSON(routes.Current))
	if err != nil {
		return nil, fmt.Errorf("describe the lines of JSON: %w", err)
	}
	return found, add(SchemaPath, "application/schema+json", schema)
}

// tables returns the description of all tables as one group (Metadata Vocabulary for Tabular Data). A table may only
// refer to tables of its group, so each table has the same description.
func tables() object {
	var group []object
	for _, t := range export.Tables {
		group = append(group, table(t))
	}
	return object{
		"@context": "http://www.w3.org/ns/csvw", "tables": group, "dialect": object{"lineTerminators": []string{"\r\n"}},
	}
}

// table returns the description of a table.
func table(t export.Table) object {
	var columns []object
	for _, c := range t.Columns() {
		kind := "string"
		if c.IsNumber {
			kind = "number"
		}
		columns = append(columns, object{"name": c.Name, "titles": c.Name, "datatype": kind})
	}
	schema := object{"columns": columns, "primaryKey": "id"}
	if t.Name != export.Tables[0].Name {
		schema["primaryKey"] = []string{export.OfAsset, "id"}
		schema["foreignKeys"] = []object{{
			"columnReference": export.OfAsset, "reference": object{"resource": "assets.csv", "columnReference": "id"},
		}}
	}
	return object{"url": t.Name + ".csv", "tableSchema": schema}
}

const (
	inDocument = "#/components/schemas/"
	inSchema   = "#/$defs/"
	lineType   = "Asset"
)

// lineSchema returns the JSON Schema of an asset from an OpenAPI document of version 3.1, whose schemas are JSON
// Schema.
func lineSchema(document []byte) (object, error) {
	var d struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return nil, err
	}
	defs := object{}
	for missing := []string{lineType}; len(missing) > 0; missing = missing[1:] {
		name := missing[0]
		text, isThere := d.Components.Schemas[name]
		if !isThere {
			return nil, fmt.Errorf("the document has no schema %s", name)
		}
		if _, isDone := defs[name]; isDone {
			continue
		}
		var schema any
		if err := json.Unmarshal(text, &schema); err != nil {
			return nil, err
		}
		defs[name] = schema
		missing = append(missing, moveReferences(schema)...)
	}
	return object{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A line of assets.jsonl.gz",
		"$ref": inSchema + lineType, "$defs": defs,
	}, nil
}

// moveReferences replaces the prefix inDocument of each reference in a schema by the prefix inSchema. It returns
// the names that follow the prefix.
func moveReferences(schema any) (names []string) {
	switch v := schema.(type) {
	case []any:
		for _, element := range v {
			names = append(names, moveReferences(element)...)
		}
	case map[string]any:
		for member, value := range v {
			to, isText := value.(string)
			if name, isReference := strings.CutPrefix(to, inDocument); isText && isReference && member == "$ref" {
				v[member] = inSchema + name
				names = append(names, name)
				continue
			}
			names = append(names, moveReferences(value)...)
		}
	}
	return names
}
