package meaning

import (
	"slices"
	"strings"
	"testing"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/ukrainian"
)

// dictionary is a vocabulary with the keys of some words.
type dictionary struct {
	keys []string
	said map[string]string // a word for each key
}

func newDictionary(words string) dictionary {
	d := dictionary{said: map[string]string{}}
	for word := range strings.FieldsSeq(strings.ToLower(words)) {
		ukrainian.Each(word, 1000, func(key string) { d.said[key] = word })
	}
	ukrainian.Each(words, 1000, func(key string) { d.keys = append(d.keys, key) })
	return d
}

func (d dictionary) Has(keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(d.keys, key) })
}

func (d dictionary) IsValue(string) bool   { return false }
func (d dictionary) IsPlace([]string) bool { return false }

func (d dictionary) IsSpent() bool       { return false }
func (d dictionary) HasID(string) bool   { return false }
func (d dictionary) HasCode(string) bool { return false }

func (d dictionary) Said(key, _ string) string { return d.said[key] }

func (d dictionary) Begins(beginning string, _ int) []string {
	return slices.DeleteFunc(slices.Clone(d.keys), func(key string) bool { return !strings.HasPrefix(key, beginning) })
}

// Near finds keys of the same length in which one letter differs.
func (d dictionary) Near(key string, _ int) (near []string) {
	for _, other := range d.keys {
		a, b, differ := []rune(key), []rune(other), 0
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				differ++
			}
		}
		if len(a) == len(b) && differ == 1 {
			near = append(near, other)
		}
	}
	return near
}

// mostTries is the number of readings that Read tries at most (docs/search.md, "Second tries").
const mostTries = 3

const texts = "екскаватор гараж готель котельня санаторій аптека приміщення Городоцька Дніпро Чернівці Суми bmw toyota ЗІЛ-130 145 АЗС"

func mustSynonyms(t *testing.T) *Synonyms {
	t.Helper()
	synonyms := expect.Get(NewSynonyms("навіс, піддашок\nповітка > гараж"))(t)
	return synonyms
}

func read(t *testing.T, text string) (search.Reading, bool) {
	t.Helper()
	tries := 0
	r, ok, err := Read(text, mustSynonyms(t), newDictionary(texts), func(r search.Reading) (bool, error) {
		if tries++; tries > mostTries {
			t.Errorf("%s: got try %d, want at most %d", text, tries, mostTries)
		}
		return !r.Unknown, nil
	})
	expect.OK(t, err)
	return r, ok
}

func TestQuestionsAreReadInOtherWords(t *testing.T) {
	for _, c := range []struct{ text, used string }{
		{"cfyfnjhsq", "санаторій"},
		{"ufhf; xthysdws", "гараж чернівці"},
		{"ищц", ""},
		{"ексковатор", "екскаватор"},
		{"екскав", "екскав…"},
		{"гостиница Днепр", "готель дніпро"},
		{"Horodotska", "городоцька"},
		{"бмв", "BMW"},
		{"тойота", "Toyota"},
		{"заправка", "АЗС"},
		{"купити гараж у Чернівцях", "гараж чернівцях"},
		{"гараж бетонований", "гараж"},
		{"котельня Маріуполь", ""},
		{"котельня 146", ""},
		{"зіл 130", "зіл 130"},
		{"повітка", "гараж"},
		{"\"ексковатор\"", ""},
		{"«ексковатор»", ""},
		{"\"гараж ексковатор", "гараж екскаватор"}, // one quotation mark makes no phrase
		{"гараж\" ексковатор", "гараж екскаватор"},
		{"гараж \" ексковатор", "гараж екскаватор"},
		{"\"гараж\", ексковатор", "гараж екскаватор"},
		{"\"гараж ексковатор\" АЗС", ""},
		{"АЗС \"гараж ексковатор\".", ""},
	} {
		r, ok := read(t, c.text)
		if got := strings.Join(r.Used(), " "); c.used != "" && (!ok && r.IsAnother() || got != c.used) || c.used == "" && ok {
			t.Errorf("%q: got %q, found %t by %v; want %q", c.text, got, ok, r.Steps, c.used)
		}
	}
}

// Promises: kept-words
func TestNumbersAndPlacesAreNeverLeftOut(t *testing.T) {
	for _, text := range []string{"готель 999", "готель Маріуполь", "готель Кривий Ріг", "аптека XIV", "готель 49-б", "склад UA-EDR-1", "Канарейкова 145"} {
		if r, ok := read(t, text); ok {
			t.Errorf("%q: got it found with %q, want not", text, r.Used())
		}
	}
}

// TestFewWordsAreCorrected asks a question with more than mostCorrected misspelled words. Only mostCorrected words may
// be corrected, because each correction compares the word with all words of the assets.
func TestFewWordsAreCorrected(t *testing.T) {
	r, _, err := Read("ексковатор гбраж гбтель санбторій аптбка котбльня", &Synonyms{}, newDictionary(texts),
		func(search.Reading) (bool, error) { return false, nil })
	if got := len(r.Replaced()); err != nil || got != mostCorrected {
		t.Errorf("got %d corrected words, %v, want %d", got, err, mostCorrected)
	}
}

func TestAFaultyLineOfSynonymsIsNamed(t *testing.T) {
	long := strings.Repeat("а", search.MaxPhrase+1)
	for _, list := range []string{"одне", "слово >", "> слово", "?!, слово", strings.Repeat("слово, ", 20),
		"слово > " + strings.Repeat("слово, ", 20), long + ", слово", "слово > " + long} {
		if _, err := NewSynonyms("гараж, бокс\n" + list); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: got %v, want an error that names line 2", list, err)
		}
	}
}

func TestTheListOfSynonymsIsLongEnough(t *testing.T) {
	lines := 0
	for line := range strings.SplitSeq(embedded, "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			lines++
		}
	}
	expect.ErrorIf(t, lines < 150, "got %d lines, want 150", lines)
}

// TestACursorTakesEachReading asks a question with many words that have synonyms. The cursor holds the reading of
// the question, that is, how its words were understood, because the next page must understand them alike. The
// cursor must have room for it.
// Promises: search-synonyms
func TestACursorTakesEachReading(t *testing.T) {
	var several []string // synonyms of one word, written in two lines; a reading has no room for all of them
	for letter := range strings.SplitSeq("б в г ґ д ж з к л м н п р с т ф х ц ч ш а е и і о у", " ") {
		several = append(several, strings.Repeat(letter, 5))
	}
	synonyms := expect.Get(NewSynonyms("щось, " + strings.Repeat("а", 90) + ", " + strings.Repeat("о", 90) +
		"\nдещо, " + strings.Join(several[:13], ", ") + "\nдещо, " + strings.Join(several[13:], ", ")))(t)
	known := newDictionary("акціонерне товариство ПАТ ПрАТ ВАТ ЗАТ " + strings.Repeat("а", 90) + " " + strings.Repeat("о", 90) +
		" " + strings.Join(several, " "))
	for _, text := range []string{strings.Repeat("АТ ", 60), strings.Repeat("щось ", 60), "дещо"} {
		_, _, err := Read(text, synonyms, known, func(r search.Reading) (bool, error) {
			c := search.Cursor{Sort: search.ByRelevance, Reading: r}
			if _, err := search.ParseCursor(c.String()); err != nil && r.Has(search.BySynonym) {
				t.Errorf("%.20s: got %v for a cursor of the registry with %d bytes, want nil", text, err, len(c.String()))
			}
			return false, nil
		})
		expect.OK(t, err)
	}
}

// TestFewReadingsAreTried asks questions of up to four words that find nothing. Each reading that is tried is a search.
func TestFewReadingsAreTried(t *testing.T) {
	words := strings.Split("ufhf;|гостиница|бмв|заправка|повітка|гараж|екскав|готел|ексковатор|bmw|145|купити|АЗС", "|")
	synonyms, vocabulary, most := mustSynonyms(t), newDictionary(texts), 0
	var ask func(question []string, rest []string)
	ask = func(question []string, rest []string) {
		text, tries := strings.Join(question, " "), 0
		if _, _, err := Read(text, synonyms, vocabulary, func(search.Reading) (bool, error) {
			tries++
			return false, nil
		}); err != nil || tries > mostTries {
			t.Errorf("%q: got %d tries, %v; want at most %d", text, tries, err, mostTries)
		}
		most = max(most, tries)
		for i := range rest {
			if len(question) < 4 {
				ask(append(question[:len(question):len(question)], rest[i]), rest[i+1:])
			}
		}
	}
	ask(nil, words)
	expect.ErrorIf(t, most != mostTries, "got at most %d tries, want %d of some question", most, mostTries)
}
