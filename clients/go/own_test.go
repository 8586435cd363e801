package client

import (
	"errors"
	"testing"
)

func TestOwnAssetsAreListedToTheEnd(t *testing.T) {
	first := `{"data":[{"id":"a","dateModified":"t1","reference":"lot-1","new":1},{"id":"b","dateModified":"t2"}],
		"next_page":{"offset":"t2"}}`
	r := newRegistry(t, reply{200, first, nil}, reply{200, `{"data":[],"next_page":{"offset":"t2"}}`, nil})
	own := Own{Position: Position{Offset: "t0"}, Limit: 2, Status: Draft, Fields: []string{"reference"}}
	var found []OwnAsset
	var last Position
	for page, err := range r.client(t).OwnPages(t.Context(), own) {
		must(t, err)
		found, last = append(found, page.Assets...), page.Next
	}
	if len(found) != 2 || found[0].Asset.ID != "a" || found[0].Reference != "lot-1" || found[1].Reference != "" {
		t.Errorf("got %+v, want a with the reference lot-1, and b without", found)
	}
	if _, known := found[0].Asset.Unknown["reference"]; known || len(found[0].Asset.Unknown) != 1 {
		t.Errorf("got the unknown fields %v, want new only", found[0].Asset.Unknown)
	}
	errorIf(t, last.Offset != "t2", "got the last position %q, want t2", last.Offset)
	path := "GET /api/2.5/me/assets?limit=2&offset="
	r.check(t, path+"t0&opt_fields=reference&status=draft", path+"t2&opt_fields=reference&status=draft")
}

func TestAnUnknownPositionOfOwnAssetsIsTold(t *testing.T) {
	gone := `{"status":"error","errors":[{"location":"querystring","name":"offset","description":"Unknown."}]}`
	c := newRegistry(t, reply{404, gone, nil}).client(t)
	var got []error
	for _, err := range c.OwnPages(t.Context(), Own{Position: Position{Offset: "x"}}) {
		got = append(got, err)
	}
	errorIf(t, len(got) != 1 || !errors.Is(got[0], ErrStartOver), "got %v, want ErrStartOver once", got)
}
