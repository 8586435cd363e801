package export

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// places is a GeoJSON file (RFC 7946): a feature for each asset that has a place.
type places struct {
	to    io.Writer
	names [][]byte // names of the properties, as JSON
	line  bytes.Buffer
	any   bool
}

func openGeoJSON(w io.Writer, columns []column) (writer, error) {
	p := &places{to: w}
	for _, c := range columns {
		p.quote(c.name)
		p.names = append(p.names, bytes.Clone(p.line.Bytes()))
		p.line.Reset()
	}
	_, err := io.WriteString(w, `{"type":"FeatureCollection","features":[`)
	return p, err
}

func (p *places) add(a *Asset) (rows int, err error) {
	geometry := geometryOf(a.rows[ofItems])
	if geometry == "" {
		return 0, nil
	}
	if p.any {
		p.line.WriteByte(',')
	}
	p.any = true
	p.line.WriteString("\n{\"type\":\"Feature\",\"id\":")
	p.quote(a.rows[ofAssets][0][idColumn].text)
	p.line.WriteString(`,"geometry":` + geometry + `,"properties":{`)
	begun := false
	for i, c := range a.rows[ofAssets][0] {
		if c.text == "" {
			continue
		}
		if begun {
			p.line.WriteByte(',')
		}
		begun = true
		p.line.Write(p.names[i])
		p.line.WriteByte(':')
		if c.isNumber {
			p.line.WriteString(c.text)
		} else {
			p.quote(c.text)
		}
	}
	p.line.WriteString("}}")
	_, err = p.line.WriteTo(p.to)
	return 1, err
}

// quote adds a text as JSON to the line.
func (p *places) quote(text string) {
	quoted, _ := jsontext.AppendQuote(p.line.AvailableBuffer(), text) // replaces invalid bytes; the error does not matter
	p.line.Write(quoted)
}

func (p *places) close() error {
	_, err := io.WriteString(p.to, "\n]}\n")
	return err
}

// latitudeColumn is the index of the latitude of an item. The longitude comes behind it.
var latitudeColumn = Tables[ofItems].index("location.latitude")

// geometryOf returns the places of items as a GeoJSON geometry, or "" if no item has a place.
func geometryOf(items [][]cell) string {
	var all []string
	for _, i := range items {
		lat, okLat := degrees(i[latitudeColumn].text, 90)
		lon, okLon := degrees(i[latitudeColumn+1].text, 180)
		if okLat && okLon {
			all = append(all, "["+lon+","+lat+"]")
		}
	}
	switch len(all) {
	case 0:
		return ""
	case 1:
		return `{"type":"Point","coordinates":` + all[0] + `}`
	}
	return `{"type":"MultiPoint","coordinates":[` + strings.Join(all, ",") + `]}`
}

// degrees returns a coordinate as a JSON number with the digits that were sent. ok
// is false for a text that is not a number from -most to most.
func degrees(text string, most float64) (number string, ok bool) {
	text = strings.TrimSpace(text)
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= -most && n <= most) {
		return "", false
	}
	if !isNumber(text) { // for example +24.5
		text = strconv.FormatFloat(n, 'f', -1, 64)
	}
	return text, true
}
