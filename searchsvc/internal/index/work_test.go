package index

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/replica"
	"asset-registry/shared/testing/expect"
)

// TestNoTextHoldsUpAnAsset indexes very long texts of many kinds. The number and the length of the terms, and
// the size of the hit, must stay within their limits.
func TestNoTextHoldsUpAnAsset(t *testing.T) {
	different := make([]string, 0, 60_000)
	for n := range cap(different) {
		different = append(different, fmt.Sprintf("слово%dа", n))
	}
	for name, text := range map[string]string{
		"a word of a letter":            strings.Repeat("y", 1_000_000),
		"a word of a Ukrainian letter":  strings.Repeat("ї", 50_000),
		"a code":                        "1" + strings.Repeat("-a", 50_000),
		"signs of eighteen letters":     strings.Repeat("\ufdfa", 30_000),
		"words of eighteen letters":     strings.Repeat("\ufdfa ", 25_000),
		"letters of many words":         strings.Repeat("а б ", 25_000),
		"different words":               strings.Join(different, " "),
		"one letter with many marks":    "а" + strings.Repeat("\u0301", 50_000),
		"signs that are no part of one": strings.Repeat("«»", 25_000),
		"signs that JSON escapes":       strings.Repeat("\u0001<", 50_000),
		"signs that JavaScript escapes": strings.Repeat("\u2028", 50_000),
	} {
		t.Run(name, func(t *testing.T) {
			address := map[string]string{"region": text, "locality": text}
			written := expect.Get(json.Marshal(map[string]any{
				"id": idOf(1), "status": "active", "title": text, "title_en": text, "description": text, "owner": text,
				"assetType": text, "assetID": text, "assetCustodian": map[string]any{
					"name": text, "identifier": map[string]any{"scheme": text, "id": text}, "address": address,
				},
				"items": []any{map[string]any{
					"description": text, "address": address, "quantity": strings.Repeat("9", 300),
					"classification": map[string]string{"scheme": text, "id": text, "description": text},
				}},
			}))(t)
			a := expect.Get(parse(replica.Entry{ID: idOf(1), Position: 1, JSON: written}))(t)
			terms, hit, err := a.fields(1)
			expect.OK(t, err)
			verifyHit(t, hit)
			for field, list := range terms {
				if len(list) > maxTerms {
					t.Errorf("the field %s: got %d terms, want at most %d", field, len(list), maxTerms)
				}
				for _, term := range list {
					if len(term) > maxKey || len(term) > maxTerm && (field == wordField || field == titleField) {
						t.Errorf("the field %s: got a term of %d bytes", field, len(term))
					}
					if utf8.RuneCountInString(term) > 42 && (field == wordField || field == titleField) && term[0] != '1' {
						t.Errorf("the field %s: got the word %q, want at most 40 letters", field, term)
					}
				}
			}
		})
	}
}

// TestTheWordsOfAnAssetAreBounded indexes a text with more words than maxWords. The last words must not be
// indexed.
func TestTheWordsOfAnAssetAreBounded(t *testing.T) {
	a := &asset{ID: idOf(1), Title: "перше", Description: strings.Repeat("слово ", maxWords) + "останнє"}
	terms, _, err := a.fields(1)
	expect.OK(t, err)
	all := strings.Join(terms[wordField], " ")
	if !strings.Contains(all, "перш") || !strings.Contains(all, "слов") || strings.Contains(all, "останн") {
		t.Errorf("got the words %q, want the first and the second one only", all)
	}
}

func TestBatchesHaveFewBytes(t *testing.T) {
	entry := func(bytes int) replica.Entry { return replica.Entry{JSON: make([]byte, bytes)} }
	for _, c := range []struct {
		name    string
		entries []replica.Entry
		want    []int
	}{
		{"none", nil, []int{0}},
		{"one that is too large", []replica.Entry{entry(batchBytes + 1)}, []int{1}},
		{"large ones", []replica.Entry{entry(1), entry(batchBytes), entry(batchBytes), entry(1)}, []int{1, 1, 1, 1}},
		{"small ones", make([]replica.Entry, batchSize+1), []int{batchSize, 1}},
	} {
		var got []int
		for _, part := range batches(c.entries) {
			got = append(got, len(part))
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: got batches of %v assets, want %v", c.name, got, c.want)
		}
	}
}

func TestAnInterruptedIndexTakesNoChange(t *testing.T) {
	x := openIndex(t, t.TempDir())
	defer x.Close()
	apply(t, x, stateAt(1e15), simple{n: 1, position: 1e15, status: client.Active, title: "слово"})
	x.Interrupt()
	x.Interrupt()
	c := replica.Change{State: stateAt(2e15)}
	c.Entries = append(c.Entries, simple{n: 2, position: 2e15, status: client.Active, title: "слово"}.entry(t))
	expect.Err(t, x.Apply(c), ErrInterrupted, "")
	expect.Equal(t, mustSearch(t, x, search.Query{Text: "слово", Limit: 1}).Total, 1, "assets")
}

// verifyHit checks the size of a hit in the form that an answer has, and the length of each of its texts.
func verifyHit(t *testing.T, hit []byte) {
	t.Helper()
	escaped, err := json.Marshal(json.RawMessage(hit))
	if err != nil || len(escaped) > search.MaxHit {
		t.Errorf("got a hit of %d bytes and %v, want at most %d", len(escaped), err, search.MaxHit)
	}
	expect.Nil(t, json.Unmarshal(hit, &client.Asset{}), "read a hit as clients do")
	var texts any
	expect.OK(t, json.Unmarshal(hit, &texts))
	verifyTexts(t, "", texts)
}

func verifyTexts(t *testing.T, path string, v any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			verifyTexts(t, path+"."+name, member)
		}
	case []any:
		for _, element := range v {
			verifyTexts(t, path, element)
		}
	default:
		if got := utf8.RuneCountInString(fmt.Sprint(v)); got > maxShown+1 {
			t.Errorf("%s: got %d characters in a hit, want at most %d", path, got, maxShown+1)
		}
	}
}

// TestHitsShowNoLongNumber has an id of 900,000 digits, as a number and as a text, and other values that this
// registry never writes. A hit must show the beginning of a long id, and leave out what is not an id.
// Promises: search-hits
func TestHitsShowNoLongNumber(t *testing.T) {
	long := strings.Repeat("7", 900_000)
	for _, c := range []struct{ id, want string }{
		{long, `"` + long[:maxCode] + `…"`}, {`"` + long + `"`, `"` + long[:maxCode] + `…"`}, {`"00037256"`, `"00037256"`},
		{"37256", "37256"}, {"{}", ""}, {"[]", ""}, {"null", ""}, {`""`, ""},
	} {
		text := fmt.Sprintf(`{"id":%q,"status":"active","dateModified":%q,"date":%q,"assetCustodian":{"identifier":{"scheme":"UA-EDR","id":%s}},
			"items":[{"quantity":%s},{"quantity":%s},{"quantity":5.5}]}`, idOf(1), long, long, c.id, c.id, `"`+long+`"`)
		a := expect.Get(parse(replica.Entry{ID: idOf(1), Position: 1, JSON: []byte(text)}))(t)
		_, hit, err := a.fields(1)
		expect.OK(t, err)
		verifyHit(t, hit)
		var got struct {
			AssetCustodian struct{ Identifier struct{ ID json.RawMessage } }
			Items          []struct{ Quantity json.RawMessage }
		}
		expect.OK(t, json.Unmarshal(hit, &got))
		if id := string(got.AssetCustodian.Identifier.ID); id != c.want {
			t.Errorf("%.20s: got the id %.40s, want %.40s", c.id, id, c.want)
		}
		expect.Equal(t, string(got.Items[2].Quantity), "5.5", "%.20s, the quantity", c.id)
	}
}

func TestAnAssetWithALongIDIsNotFound(t *testing.T) {
	id := strings.Repeat("a", maxID+1)
	a := &asset{ID: id, Status: client.Active}
	expect.ErrorIf(t, isFound(replica.Entry{ID: id}, a), "got an asset with a long id, want none")
}
