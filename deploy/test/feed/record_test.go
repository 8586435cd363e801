package feed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"asset-registry/shared/randtest"
)

// revision is one change in the record of an asset.
type revision struct {
	Revision int
	Date     string
	Changes  []operation
}

// description returns the description that the change sets, or "" if it sets none.
func (r revision) description() string {
	for _, o := range r.Changes {
		value := o.Value
		if whole, ok := value.(map[string]any); ok && o.Path == "" {
			value = whole["description"]
		} else if o.Path != "/description" {
			continue
		}
		text, _ := value.(string)
		return text
	}
	return ""
}

// checkRecord compares the record of each asset with the answers that the writers got (R1 and R2 of
// docs/protocol.md, "Invariants").
func (h *history) checkRecord(ctx context.Context) {
	acknowledged := map[string]map[string]string{} // asset id -> date of the change -> description
	for _, a := range h.acks {
		if acknowledged[a.id] == nil {
			acknowledged[a.id] = map[string]string{}
		}
		acknowledged[a.id][a.modified] = a.description
	}
	for _, a := range h.assets {
		now, record := h.readRecord(ctx, a)
		h.checkOrder(a.id, record)
		h.compare(a, record, acknowledged[a.id])
		h.checkPatches(a.id, record, now)
		h.report.recorded += len(record)
		h.report.count(0, 3*len(record))
	}
}

// settling is how long it may take until a change appears in the record if the service that wrote the change was
// killed. Another service must first fence the batch of the killed one, and settle it.
const settling = time.Minute

// readRecord reads an asset and its record, the newest change first. It reads both again if the asset has changed
// in between, or if the newest change is not settled yet.
func (h *history) readRecord(ctx context.Context, a owned) (now map[string]any, record []revision) {
	for end := time.Now().Add(settling); ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		before := h.readAsset(ctx, a.id)
		record = nil
		for path := fmt.Sprintf("/api/2.5/assets/%s/revisions?limit=%d", a.id, 20+randtest.IntN(81)); ; {
			var p struct {
				Data []revision
				Next struct{ Path string } `json:"next_page"`
			}
			h.repeat(ctx, path, a.token, &p)
			if len(p.Data) == 0 {
				break
			}
			record, path = append(record, p.Data...), p.Next.Path
		}
		now = h.readAsset(ctx, a.id)
		settled := len(record) > 0 && record[0].Date == now["dateModified"]
		if reflect.DeepEqual(now, before) && (settled || time.Now().After(end)) {
			break
		}
	}
	return now, record
}

func (h *history) readAsset(ctx context.Context, id string) map[string]any {
	var got struct{ Data json.RawMessage }
	h.repeat(ctx, "/api/2.5/assets/"+id, "", &got)
	var data map[string]any
	decoder := json.NewDecoder(bytes.NewReader(got.Data))
	decoder.UseNumber()
	if err := decoder.Decode(&data); err != nil && ctx.Err() == nil {
		h.report.violation(&h.report.other, "%s: got %s, want an object: %v", id, got.Data, err)
	}
	return data
}

// repeat repeats a GET until it succeeds or ctx is done.
func (h *history) repeat(ctx context.Context, path, token string, into any) {
	for h.services.call(ctx, "GET", path, token, nil, into) != http.StatusOK && ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
	}
}

// checkOrder checks that dates and revision numbers get strictly smaller along the record, and that the last entry
// is the creation.
func (h *history) checkOrder(id string, record []revision) {
	r := &h.report
	for i := 1; i < len(record); i++ {
		if now, before := record[i], record[i-1]; now.Date >= before.Date || now.Revision >= before.Revision {
			r.violation(&r.reordered, "the record of %s: got revision %d of %s after %d of %s, want the newest first", id,
				now.Revision, now.Date, before.Revision, before.Date)
		}
	}
	if last := len(record) - 1; last < 0 || record[last].Revision != 1 {
		r.violation(&r.missing, "the record of %s: got %d changes without the creation, want it last", id, len(record))
	}
}

// compare checks that the record has each acknowledged change at its date. All other changes in it must be changes
// that got no clear answer.
func (h *history) compare(a owned, record []revision, acknowledged map[string]string) {
	r, found := &h.report, map[string]bool{}
	for i, c := range record {
		description := c.description()
		want, known := acknowledged[c.Date]
		switch {
		case i == len(record)-1 && c.Date == a.created:
		case known && description == want && !found[description]:
		case !known && h.unknown[description] == a.id && !found[description]:
		default:
			r.violation(&r.extra, "the record of %s: got %q at %s, want %q or a change without an answer", a.id,
				description, c.Date, want)
		}
		found[description] = true
	}
	for date, description := range acknowledged {
		if !found[description] {
			r.violation(&r.missing, "the record of %s: got no %s of %s, want the acknowledged change", a.id, description,
				date)
		}
	}
}

// checkPatches applies the patches of a record, the oldest first. The result must be the asset as it is now.
func (h *history) checkPatches(id string, record []revision, now map[string]any) {
	r := &h.report
	if len(record) > 0 && record[0].Date != now["dateModified"] {
		r.violation(&r.missing, "the record of %s: got %s as its newest change, want %s", id, record[0].Date,
			now["dateModified"])
	}
	var value any
	for i := len(record) - 1; i >= 0; i-- {
		for _, o := range record[i].Changes {
			var err error
			if value, err = o.apply(value); err != nil {
				r.violation(&r.other, "the record of %s: revision %d: %v", id, record[i].Revision, err)
				return
			}
		}
	}
	delete(now, "dateModified")
	if !reflect.DeepEqual(value, any(now)) {
		r.violation(&r.other, "the record of %s: got the asset %v from its patches, want %v", id, value, now)
	}
}
