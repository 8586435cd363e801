package apikey

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"asset-registry/authsvc/internal/problems"
	"asset-registry/shared/authapi"
	"asset-registry/shared/identity"
)

// The bounds of a key. Gateways read only answers of bounded length, and the answer about a key must always
// fit.
const (
	maxText    = 200 // characters of a name, title or contact
	maxAllow   = 100
	maxWindows = 8       // limits of one class of requests, each for a window of time
	maxLimit   = 1 << 40 // requests
)

// Set returns the key with new settings. The error lists every fault of the settings. A key of a broker cannot become
// a key of the admin API, and a key of the admin API cannot become a key of a broker.
func (k Key) Set(s Settings, now time.Time) (Key, error) {
	if err := k.changeable(); err != nil {
		return k, err
	}
	var found problems.List
	if slices.Contains(roles(), s.Role) && Administers(s.Role) != Administers(k.Settings.Role) {
		found.Add("role", "A key of a broker cannot become a key of the admin API, nor the reverse. Create another key.")
		s.Role = k.Settings.Role // so that Check checks the other settings for the role that the key keeps
	}
	k.Settings = s
	return k.changed(now), found.With(k.Check())
}

// Check returns a fault that lists everything wrong with the key.
func (k Key) Check() error {
	var found problems.List
	s := k.Settings
	checkRequired(&found, "name", s.Name)
	k.checkRole(&found)
	if strings.Trim(s.Levels, "01234") != "" || isRepeating(s.Levels) {
		found.Add("levels", "The levels must be some of 0, 1, 2, 3 and 4, each once.")
	}
	if len(s.Allow) > maxAllow {
		found.Add("allow", "At most %d addresses and networks.", maxAllow)
	}
	checkLimits(&found, s.Limits)
	return found.Err()
}

// roles returns every role that a key can have.
func roles() []identity.Role {
	return []identity.Role{identity.Broker, identity.Concierge, identity.Administrator, Operator, Auditor}
}

func (k Key) checkRole(found *problems.List) {
	s := k.Settings
	switch {
	case !slices.Contains(roles(), s.Role):
		found.Add("role", "The role must be one of broker, concierge, administrator, operator, auditor.")
	case !Administers(s.Role):
		if k.Broker == "" {
			found.Add("broker", "A key with this role needs a broker.")
		}
	default:
		if k.Broker != "" {
			found.Add("broker", "A key of the admin API has no broker.")
		}
		if s.Levels != "" || s.Test || len(s.Limits) > 0 {
			found.Add("role", "A key of the admin API has no levels, no test mode and no limits.")
		}
	}
}

// checkLimits adds the faults of limits to a list of problems. Each fault names its place, as in "limits.write.1m".
func checkLimits(found *problems.List, limits authapi.Limits) {
	for _, class := range slices.Sorted(maps.Keys(limits)) {
		name := "limits." + class
		if !slices.Contains(authapi.Classes(), class) {
			found.Add(name, "The class of requests must be list, read or write, not %.50q.", class)
		}
		if len(limits[class]) > maxWindows {
			found.Add(name, "At most %d limits of a class.", maxWindows)
			continue
		}
		for _, window := range slices.Sorted(maps.Keys(limits[class])) {
			checkLimit(found, name+"."+window, window, limits[class][window])
		}
	}
}

func checkLimit(found *problems.List, name, window string, requests int64) {
	var wrong []string
	length, err := time.ParseDuration(window)
	if err != nil || len(window) > maxText ||
		length < time.Second || length > 24*time.Hour || length%time.Second != 0 {
		wrong = append(wrong, fmt.Sprintf("%.50q is no length of a window. Use whole seconds, up to 24h.", window))
	}
	if requests < 1 || requests > maxLimit {
		wrong = append(wrong, fmt.Sprintf("A limit must be between 1 and %d.", int64(maxLimit)))
	}
	if wrong != nil {
		found.Add(name, "%s", strings.Join(wrong, " "))
	}
}

// Check returns a fault that lists everything wrong with the broker.
func (b Broker) Check() error {
	var found problems.List
	checkRequired(&found, "name", b.Name)
	if strings.Contains(b.Name, "/") {
		found.Add("name", "The name must not contain a slash: it is part of paths.")
	}
	checkText(&found, "title", b.Title)
	checkText(&found, "contact", b.Contact)
	b.checkRaise(&found)
	return found.Err()
}

// newName matches the names that new brokers may have.
var newName = regexp.MustCompile(`^[\p{L}\p{N}]([\p{L}\p{M}\p{N} .,&'’"«»()_-]*[\p{L}\p{M}\p{N}."»)])?$`)

// mixed matches a word with Latin and Cyrillic letters.
var mixed = regexp.MustCompile(`\p{Latin}[\p{L}\p{M}\p{N}]*\p{Cyrillic}|\p{Cyrillic}[\p{L}\p{M}\p{N}]*\p{Latin}`)

// CheckNewName adds a problem to a list of problems if a new broker must not have a name. Brokers of earlier releases
// keep theirs.
func CheckNewName(name string, found *problems.List) {
	switch {
	case !newName.MatchString(name):
		found.Add("name", "The name begins with a letter or digit, and has letters, digits, blanks and .,&'\"«»()_- only.")
	case mixed.MatchString(name):
		found.Add("name", "A word of the name mixes Latin and Cyrillic letters, which look alike.")
	}
}

// alike replaces characters by others that look like them.
var alike = strings.NewReplacer(
	"а", "a", "в", "b", "е", "e", "ё", "e", "з", "3", "і", "l", "ї", "l", "к", "k", "м", "m", "н", "h", "о", "o", "р", "p",
	"с", "c", "т", "t", "у", "y", "х", "x", "ј", "j", "ѕ", "s", "0", "o", "1", "l", "i", "l", "’", "", "'", "",
)

// Looks returns a text that is the same for names that look the same: letters of two scripts, O and 0, capitals, signs
// between words.
func Looks(name string) string {
	words := strings.FieldsFunc(alike.Replace(strings.ToLower(name)), func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.N)
	})
	return strings.Join(words, " ")
}

// isRepeating reports whether a level occurs twice in levels.
func isRepeating(levels string) bool {
	sorted := []byte(levels)
	slices.Sort(sorted)
	return len(slices.Compact(sorted)) < len(levels)
}

// The bounds of raised limits.
const (
	maxRaise      = 100
	maxRaisedTime = 31 * 24 * time.Hour // counted from the change of the broker
)

// checkRaise adds a problem to the argument `found` if the broker's limits are raised with a factor or an end that is
// not allowed, or if one of the two is missing.
func (b Broker) checkRaise(found *problems.List) {
	raises := b.Raise != 0
	switch {
	case raises && (b.Raise < 2 || b.Raise > maxRaise):
		found.Add("raise", "The limits can be 2 to %d times as high. 0 ends it.", maxRaise)
	case raises == b.RaisedUntil.IsZero():
		found.Add("raised_until", "Send raise and raised_until together. 0 and null end raised limits.")
	case b.RaisedUntil.Sub(b.Modified) > maxRaisedTime:
		found.Add("raised_until", "Limits are raised for at most %d days.", maxRaisedTime/(24*time.Hour))
	}
}

func checkRequired(found *problems.List, name, text string) {
	if text == "" {
		found.Add(name, "This field is required.")
	}
	checkText(found, name, text)
}

// checkText adds a problem to a list of problems if the text is too long or not printable. The empty text is
// accepted.
func checkText(found *problems.List, name, text string) {
	notPrintable := func(r rune) bool { return !unicode.IsPrint(r) }
	switch {
	case len([]rune(text)) > maxText:
		found.Add(name, "At most %d characters.", maxText)
	case !utf8.ValidString(text), strings.TrimSpace(text) != text, strings.ContainsFunc(text, notPrintable):
		found.Add(name, "Only printable characters, and no blanks around them.")
	}
}
