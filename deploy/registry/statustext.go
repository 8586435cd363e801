package registry

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// WriteJSON writes the status as indented JSON.
func (s Status) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(s)
}

// WriteText writes the status as text that fits on one screen.
func (s Status) WriteText(to io.Writer, now time.Time) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, plain(fmt.Sprintf(format, args...)))
	}
	row("registry", "%s, up %s", s.Version, span(now.Sub(s.Started)))
	at := s.Address
	if s.BaseURL != "" {
		at += " as " + s.BaseURL
	}
	if s.Sandbox {
		at += "; SANDBOX KEYS ARE ON"
	}
	row("address", "%s", at)
	for i, service := range s.Services {
		name := ""
		if i == 0 {
			name = "services"
		}
		row(name, "%s %s", service.Name, service.text())
	}
	row("assets", "%s", counts(s.Assets))
	stores := map[string]string{}
	for name, bytes := range s.Stores {
		stores[name] = size(bytes)
	}
	row("data", "%s: %s; disk: %s of %s free", s.Data, counts(stores), size(s.Disk.Free), size(s.Disk.Size))
	row("backup", "%s", s.Backup.text(now))
	row("certificate", "%s", s.certificateText(now))
	row("public log", "%d leaves, signed up to %s ago", s.Log.Leaves, seconds(s.Log.Behind))
	for _, name := range slices.Sorted(maps.Keys(s.Log.Witnesses)) {
		c := s.Log.Witnesses[name]
		row("", "witness %s: cosignatures given %d, missing %d", name, c.Given, c.Missing)
	}
	row("audit log", "%s", s.Audit.text())
	row("limits", "%d admitted, refused: %s", s.Limits.Admitted, counts(s.Limits.Refused))
	row("streams", "%d open, %d ended as too slow, %d refused", s.Streams.Open, s.Streams.Slow, s.Streams.Refused)
	row("webhooks", "%s", counts(s.Webhooks))
	behind := map[string]string{}
	for name, d := range s.Behind {
		behind[name] = seconds(d)
	}
	row("behind", "%s", counts(behind))
	row("memory", "%s resident, of which Go uses %s", size(s.Memory.Resident), size(s.Memory.Used))
	for _, says := range s.Warnings {
		row("warning", "%s", says)
	}
	for _, p := range s.Problems {
		hint := ""
		if p.Alert != "" {
			hint = " (docs/runbook.md#" + strings.ToLower(p.Alert) + ")"
		}
		row("PROBLEM", "%s%s", p.Says, hint)
	}
	if len(s.Problems) == 0 {
		row("problems", "none")
	}
	return w.Flush()
}

func (s Service) text() string {
	if !s.Ready {
		return "NOT READY: " + s.Says
	}
	return strings.Join(append([]string{"ready"}, s.Warnings...), "; ")
}

func (b LastBackup) text(now time.Time) string {
	var says []string
	switch {
	case b.Finished.IsZero():
		says = append(says, "none")
	case b.Checked:
		says = append(says, fmt.Sprintf("%s ago, checked: %s, %s", span(now.Sub(b.Finished)), b.File, size(b.Bytes)))
	default:
		says = append(says, fmt.Sprintf("%s ago, NOT CHECKED: %s, %s", span(now.Sub(b.Finished)), b.File, size(b.Bytes)))
	}
	if b.Fault != "" {
		says = append(says, fmt.Sprintf("a later one failed %s ago", span(now.Sub(b.Failed))))
	}
	return strings.Join(says, "; ")
}

func (s Status) certificateText(now time.Time) string {
	var says []string
	if s.Expires.IsZero() {
		says = append(says, "none")
	} else {
		says = append(says, "expires in "+span(s.Expires.Sub(now)))
	}
	if a := s.Certificate; a != nil {
		says = append(says, "of "+a.Host)
		if !a.Next.IsZero() {
			says = append(says, "next attempt in "+span(a.Next.Sub(now)))
		}
		if a.Failures > 0 {
			says = append(says, fmt.Sprintf("failures: %d, the last: %s", a.Failures, a.Cause))
		}
	}
	return strings.Join(says, ", ")
}

func (a Audit) text() string {
	switch {
	case a.Fault != "":
		return "NOT CHECKED: " + a.Fault
	case len(a.Problems) > 0:
		return fmt.Sprintf("%d entries, BROKEN: %s", a.Entries, strings.Join(a.Problems, "; "))
	default:
		return fmt.Sprintf("%d entries, the chain is whole", a.Entries)
	}
}

// counts returns a text with the names and their values, ordered by name. It skips values that are 0.
func counts[V comparable](of map[string]V) string {
	var zero V
	var says []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if of[name] != zero {
			says = append(says, fmt.Sprintf("%s %v", name, of[name]))
		}
	}
	if len(says) == 0 {
		return "none"
	}
	return strings.Join(says, ", ")
}

func seconds(s float64) string { return span(time.Duration(s * float64(time.Second))) }

// span returns a duration as text with one unit.
func span(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0f hours", d.Hours())
	default:
		return fmt.Sprintf("%.0f days", d.Hours()/24)
	}
}

// size returns a number of bytes as text with one unit.
func size(bytes int64) string {
	value, unit := float64(bytes), "B"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value < 1024 {
			break
		}
		value, unit = value/1024, next
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", bytes)
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}

// plain removes characters that a terminal could interpret as a command, because some texts come from other
// servers.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, text)
}
