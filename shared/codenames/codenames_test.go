package codenames

import "testing"

func TestFilesOfNamesHaveASchemeAndALanguage(t *testing.T) {
	for _, c := range []struct {
		file, scheme, lang string
		ok                 bool
	}{
		{"CPV.uk.json", "CPV", "uk", true},
		{"CAV-PS.en.json", "CAV-PS", "en", true},
		{"CPV.json", "", "", false},
		{"CPV.ru.json", "", "", false},
		{"DK018.uk.json", "", "", false},
		{"CPV.txt", "", "", false},
		{"CPV.uk.json.txt", "", "", false},
	} {
		scheme, lang, ok := File(c.file)
		if ok != c.ok || ok && (scheme != c.scheme || lang != c.lang) {
			t.Errorf("%s: got %q %q %v, want %q %q %v", c.file, scheme, lang, ok, c.scheme, c.lang, c.ok)
		}
	}
}
