package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"asset-registry/authsvc/internal/audit"
	"asset-registry/authsvc/internal/staff"
	"asset-registry/shared/adminapi"
)

// auditEntry is an entry of the audit log as people read it.
type auditEntry struct {
	adminapi.Entry
	Name    string // the name of a key, or the title of a broker; "": the subject has neither
	ID      string // id of the subject
	Kind    string // kind of the subject: "key", "broker", "webhook" or "asset"
	Broker  string // broker of the key, webhook or asset; "": not known
	By      string // name of the caller
	ByID    string // id of the caller's key; "": the caller has none
	Changes []difference
}

// IsChange reports whether the entry describes a change of something that existed before.
func (e auditEntry) IsChange() bool { return len(e.Before) > 0 }

// difference is a field that changed, with its values as text.
type difference struct{ Field, Before, After string }

// viewEntry returns an entry with the fields that it changed.
func viewEntry(e adminapi.Entry) (auditEntry, error) {
	shown := auditEntry{Entry: e, By: e.Who}
	if id, name, found := strings.Cut(e.Who, " "); found && id != "command" && !staff.IsID(id) {
		shown.ByID, shown.By = id, name
	}
	before, err := fieldsOf(e.Before)
	if err != nil {
		return shown, fmt.Errorf("read audit entry %d: %w", e.Seq, err)
	}
	after, err := fieldsOf(e.After)
	if err != nil {
		return shown, fmt.Errorf("read audit entry %d: %w", e.Seq, err)
	}
	shown.Kind, shown.ID, _ = strings.Cut(e.Subject, " ")
	shown.Name, shown.Broker = told("name", after["name"]), told("broker", after["broker"])
	if _, ok := audit.BrokerOf(e.Subject); ok {
		shown.Name, shown.Broker = told("title", after["title"]), ""
	}
	both := maps.Clone(before)
	maps.Copy(both, after)
	for _, field := range slices.SortedFunc(maps.Keys(both), inOrder) {
		if slices.Contains(implied, field) || bytes.Equal(before[field], after[field]) {
			continue
		}
		shown.Changes = append(shown.Changes, difference{field, told(field, before[field]), told(field, after[field])})
	}
	return shown, nil
}

func fieldsOf(state json.RawMessage) (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if len(state) == 0 {
		return fields, nil
	}
	err := json.Unmarshal(state, &fields)
	return fields, err
}

// implied has fields that are not shown, because other parts of an entry say the same.
var implied = []string{"id", "created", "modified"}

// order is the order in which an entry shows its fields. Fields that are not listed come last.
var order = []string{
	"name", "title", "contact", "blocked", "broker", "role", "levels", "test", "expires", "limits", "allow", "secrets",
	"revoked",
}

func inOrder(a, b string) int {
	place := func(field string) int {
		if at := slices.Index(order, field); at >= 0 {
			return at
		}
		return len(order)
	}
	if d := place(a) - place(b); d != 0 {
		return d
	}
	return strings.Compare(a, b)
}

// told returns the value of a field as text for people; "" if the value is absent or empty.
func told(field string, value json.RawMessage) string {
	if len(value) == 0 {
		return ""
	}
	switch field {
	case "levels":
		var levels string
		if json.Unmarshal(value, &levels) == nil {
			return toldLevels(levels)
		}
	case "limits":
		var limits map[string]map[string]int64
		if json.Unmarshal(value, &limits) == nil {
			return toldLimits(limits)
		}
	case "secrets":
		var secrets []adminapi.Secret
		if json.Unmarshal(value, &secrets) == nil {
			return toldSecrets(secrets)
		}
	}
	var any any
	if json.Unmarshal(value, &any) != nil {
		return string(value)
	}
	return plain(any)
}

// plain returns a JSON value as text without quotes and braces.
func plain(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		if t, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return exactly(t)
		}
		return v
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case []any:
		parts := make([]string, len(v))
		for i, part := range v {
			parts[i] = plain(part)
		}
		return strings.Join(parts, ", ")
	case map[string]any:
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, name+" "+plain(v[name]))
		}
		return strings.Join(parts, ", ")
	}
	return fmt.Sprint(value)
}

// toldLevels returns accreditation levels for people: "1, 3", or "all".
func toldLevels(levels string) string {
	if strings.Contains(levels, allLevels) {
		return "all"
	}
	return strings.Join(strings.Split(levels, ""), ", ")
}

func toldLimits(limits map[string]map[string]int64) string {
	var parts []string
	for _, r := range rates(limits) {
		parts = append(parts, r.Class+" "+r.Told)
	}
	return strings.Join(parts, "; ")
}

func toldSecrets(secrets []adminapi.Secret) string {
	var parts []string
	for _, s := range secrets {
		text := fmt.Sprintf("%d (%s)", s.Number, s.Fingerprint)
		if s.Until != nil {
			text += " – " + exactly(*s.Until)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}
