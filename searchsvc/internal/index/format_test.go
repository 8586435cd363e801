package index

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/filelink"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/ukrainian"
)

// TestTheFormatIsThatOfTheIndex fails if the table of properties, a limit, or the terms, the hit or the picture of an
// asset have changed. An old index would lack the change.
func TestTheFormatIsThatOfTheIndex(t *testing.T) {
	hash := sha256.New()
	fmt.Fprintln(hash, maxID, maxShown, maxCode, shownItems, maxTerms, maxWords, maxTerm, maxKey, search.MaxHit)
	fmt.Fprintln(hash, search.UnitCodes, ukrainian.UnitForms, search.MaxAmount)
	for _, p := range search.Properties {
		fmt.Fprintln(hash, p.Name, p.Field, p.Names, p.Levels)
	}
	terms, hit, err := sample().fields(1)
	expect.OK(t, err)
	for _, list := range terms {
		slices.Sort(list)
	}
	fmt.Fprintf(hash, "%q %s %s", terms, hit, sample().pictures()) // fmt sorts the keys of maps
	expect.Equal(t, layout, hex.EncodeToString(hash.Sum(nil)[:8]), "the index has changed: layout must be the second value")
}

// samples has the values of fields that have a form; the keys are their names.
var samples = map[string]string{
	"StartDate": "2026-11-20T12:00:00.000000+02:00", "Status": string(client.Active), "Scheme": "CAV-PS", "Code": "MTK",
	"Region": "Київська область", "DocumentType": filelink.Illustration, "Format": "image/jpeg",
	"URL": "https://registry.example/get/00112233445566778899aabbccddeeff", "ID": "04121000-2",
}

// sample returns an asset with a value in each field.
func sample() *asset {
	a := &asset{}
	fill(reflect.ValueOf(a).Elem(), "")
	info := a.Documents[0]
	info.ID, info.DocumentType = "2", client.InformationDetails
	a.Documents = append(a.Documents, info)
	return a
}

func fill(v reflect.Value, name string) {
	switch {
	case v.Type() == reflect.TypeFor[jsontext.Value]():
		v.SetBytes([]byte(map[string]string{"ID": `"00032945"`, "Quantity": "240.5"}[name]))
	case v.Kind() == reflect.String:
		v.SetString(cmp.Or(samples[name], "Зразок "+name))
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), name)
	default:
		for i := range v.NumField() {
			fill(v.Field(i), v.Type().Field(i).Name)
		}
	}
}

// TestEveryPropertyIsInTheIndex checks that the sample has terms and names of each property of the table.
func TestEveryPropertyIsInTheIndex(t *testing.T) {
	terms, _, err := sample().fields(1)
	expect.OK(t, err)
	fields := map[string]bool{wordField: true, titleField: true, positionField: true, publishedField: true, quantityField: true}
	for _, p := range search.Properties {
		for _, field := range []string{p.Field, p.Names} {
			if field == "" {
				continue
			}
			if len(terms[field]) == 0 || fields[field] {
				t.Errorf("%s: got %d terms in the field %q, want some, and in no other's field", p.Name, len(terms[field]), field)
			}
			fields[field] = true
		}
	}
}
