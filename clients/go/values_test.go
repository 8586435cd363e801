package client

import (
	"encoding/json"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDecimalsKeepEveryDigit(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"quantity":240.5}`, "240.5"},
		{`{"quantity":"240.5"}`, "240.5"},
		{`{"quantity":123456789012345678901234567890.0001}`, "123456789012345678901234567890.0001"},
		{`{"quantity":0.1}`, "0.1"},
		{`{"quantity":-1E+2}`, "-1E+2"},
		{`{}`, ""},
	} {
		var item Item
		if err := json.Unmarshal([]byte(c.text), &item); err != nil || item.Quantity != Decimal(c.want) {
			t.Errorf("%s: got %q, %v, want %q", c.text, item.Quantity, err, c.want)
		}
		sent, err := json.Marshal(item)
		if want := strings.ReplaceAll(c.text, `"240.5"`, "240.5"); err != nil || string(sent) != want {
			t.Errorf("got %s, %v, want %s", sent, err, want)
		}
	}
}

func TestWrongDecimalsAreRefused(t *testing.T) {
	for _, text := range []string{"1,5", "0x10", "1e9999", "NaN", " 1", "1/2", "01", "-"} {
		if got, err := json.Marshal(Item{Quantity: Decimal(text)}); err == nil {
			t.Errorf("%q: got %s, want an error", text, got)
		}
		if got, ok := Decimal(text).Rat(); ok {
			t.Errorf("%q: got %v, want no value", text, got)
		}
	}
	for _, text := range []string{`"x"`, `true`, `{}`, `1e9999`} {
		if err := json.Unmarshal([]byte(`{"quantity":`+text+`}`), &Item{}); err == nil {
			t.Errorf("%s: got nil, want an error", text)
		}
	}
	if got, ok := Decimal("0.1").Rat(); !ok || got.Cmp(big.NewRat(1, 10)) != 0 {
		t.Errorf("got %v, %v, want 1/10", got, ok)
	}
}

func TestScalarsStayAsSent(t *testing.T) {
	for _, text := range []string{
		`{"id":"00032945"}`, `{"id":32945}`, `{"id":50.450100}`, `{"id":""}`, `{"id":"\u0414 \"x\""}`,
	} {
		var identifier Identifier
		must(t, json.Unmarshal([]byte(text), &identifier))
		sent, err := json.Marshal(identifier)
		var want, got any
		if err != nil || json.Unmarshal([]byte(text), &want) != nil || json.Unmarshal(sent, &got) != nil {
			t.Fatal(err)
		}
		errorIf(t, !reflect.DeepEqual(got, want), "got %s, want %s", sent, text)
	}
	if err := json.Unmarshal([]byte(`{"id":true}`), &Identifier{}); err == nil {
		t.Error("true: got nil, want an error")
	}
	if n := Number("1.50"); !n.IsNumber() || n.String() != "1.50" || Text("1").IsNumber() {
		t.Errorf("got %v, want the number 1.50", n)
	}
}

func TestTimestamps(t *testing.T) {
	at := time.Date(2026, 11, 22, 0, 32, 46, 881553000, time.FixedZone("", 2*60*60))
	if got := At(at); got != "2026-11-22T00:32:46.881553+02:00" {
		t.Errorf("got %s, want 2026-11-22T00:32:46.881553+02:00", got)
	}
	if got, err := At(at).Time(); err != nil || !got.Equal(at) {
		t.Errorf("got %v, %v, want %v", got, err, at)
	}
	if _, err := Timestamp("").Time(); err == nil {
		t.Error("an empty timestamp: got nil, want an error")
	}
}

// TestUnknownFieldsComeBack reads an asset with an unknown field in every object, as a
// newer registry may send it. The client must send these fields back.
func TestUnknownFieldsComeBack(t *testing.T) {
	text := `{"id":"1","new":{"a":[1.10]},"items":[{"description":"d","new":"<b>","unit":{"code":"MTK","new":null},
		"quantity":1.0}],"decisions":[{"new":2}],"assetCustodian":{"name":"n","identifier":{"id":7,"new":true},
		"contactPoint":{"new":1},"address":{"new":1}},"rectificationPeriod":{"new":1},"documents":[{"index":0,"new":1}],
		"relatedProcesses":[{"new":1}]}`
	var asset Asset
	must(t, json.Unmarshal([]byte(text), &asset))
	sent, err := json.Marshal(asset)
	must(t, err)
	if got, want := exact(t, sent), exact(t, []byte(text)); !reflect.DeepEqual(got, want) {
		t.Errorf("got %s, want %s", sent, text)
	}
	if got := slices.Collect(maps.Keys(asset.Unknown)); !slices.Equal(got, []string{"new"}) {
		t.Errorf("got unknown fields %q, want new", got)
	}
}

func TestAnUnknownFieldDoesNotReplaceAKnownOne(t *testing.T) {
	sent, err := json.Marshal(Unit{Code: "a", Unknown: Unknown{"code": json.RawMessage(`"b"`)}})
	errorIf(t, err != nil || string(sent) != `{"code":"a"}`, "got %s, %v, want only the code a", sent, err)
}

// TestEmptyValuesComeBack reads an asset with empty values, which the registry may have stored. If the asset is
// replaced, these values stay. Only values that the caller sets or clears may change.
func TestEmptyValuesComeBack(t *testing.T) {
	text := `{"title":"","title_en":"x","items":[{"description":"","unit":{"name":""},"additionalClassifications":[],
		"location":{}}],"decisions":[],"assetCustodian":{"identifier":{"id":""},"contactPoint":{"email":""}},
		"documents":[{"accessDetails":"","index":0}]}`
	var asset Asset
	must(t, json.Unmarshal([]byte(text), &asset))
	for _, c := range []struct {
		name   string
		change func(*Asset)
		want   string
	}{
		{"as it was read", func(*Asset) {}, text},
		{"with a text in place of an empty one", func(a *Asset) { a.Title = "y" },
			strings.Replace(text, `"title":""`, `"title":"y"`, 1)},
		{"with a cleared field", func(a *Asset) { a.TitleEn = "" }, strings.Replace(text, `"title_en":"x",`, "", 1)},
	} {
		changed := asset
		c.change(&changed)
		sent, err := json.Marshal(changed)
		must(t, err)
		if got, want := exact(t, sent), exact(t, []byte(c.want)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %s, want %s", c.name, sent, c.want)
		}
	}
}

func TestZeroFieldsAreNotSent(t *testing.T) {
	for _, v := range []any{Asset{}, Item{}, Decision{}, Document{}, RelatedProcess{}, Organisation{}} {
		if sent, err := json.Marshal(v); err != nil || string(sent) != "{}" {
			t.Errorf("%T: got %s, %v, want {}", v, sent, err)
		}
	}
}

// exact decodes JSON with numbers as text.
func exact(t *testing.T, text []byte) (v any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	must(t, decoder.Decode(&v))
	return v
}
