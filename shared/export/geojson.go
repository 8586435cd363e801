package export

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
)

// places is a GeoJSON file (RFC 7946): a feature for each asset that has a place.
type places struct {
	to  io.Writer
	any bool
}

func openGeoJSON(w io.Writer) (writer, error) {
	_, err := io.WriteString(w, `{"type":"FeatureCollection","features":[`)
	return &places{to: w}, err
}

func (p *places) add(a *Asset) (rows int, err error) {
	geometry := geometryOf(a.record.Items)
	if geometry == "" {
		return 0, nil
	}
	var line bytes.Buffer
	if p.any {
		line.WriteByte(',')
	}
	p.any = true
	line.WriteString("\n{\"type\":\"Feature\",\"id\":" + quoted(a.record.ID))
	line.WriteString(`,"geometry":` + geometry + `,"properties":{`)
	begun := false
	for i, c := range a.row() {
		if c.text == "" {
			continue
		}
		if begun {
			line.WriteByte(',')
		}
		begun = true
		line.WriteString(quoted(Tables[0].columns[i].name) + ":")
		if c.isNumber {
			line.WriteString(c.text)
		} else {
			line.WriteString(quoted(c.text))
		}
	}
	line.WriteString("}}")
	_, err = line.WriteTo(p.to)
	return 1, err
}

func (p *places) close() error {
	_, err := io.WriteString(p.to, "\n]}\n")
	return err
}

// quoted returns a text as JSON.
func quoted(text string) string {
	encoded, _ := json.Marshal(text) // encoding a string never fails
	return string(encoded)
}

// geometryOf returns the places of items as a GeoJSON geometry, or "" if no item has a place.
func geometryOf(items []item) string {
	var all []string
	for _, i := range items {
		lat, okLat := degrees(scalar(i.Location.Latitude), 90)
		lon, okLon := degrees(scalar(i.Location.Longitude), 180)
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
