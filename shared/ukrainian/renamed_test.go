package ukrainian

import (
	"slices"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

func TestPlacesHaveTheirOtherNames(t *testing.T) {
	for _, c := range []struct{ locality, region, names, beside string }{
		{"м. Мирноград", "Донецька область", "Димитров", ""},
		{"місто Димитров", "Донеччина", "Мирноград", ""},
		{"Димитров", "", "Мирноград", ""},
		{"м. Димитров", "Кіровоградська область", "", ""},
		{"смт Доброслав", "Одеська область", "Комінтернівське", ""},
		{"Олешки, Скадовський район", "Херсонська область", "Цюрупинськ", ""},
		{"м. Яни Капу", "АР Крим", "Красноперекопськ", ""},
		{"м. Торецьк", "Донецька область", "", "~дзержинськ донецька"},
		{"Дзержинськ", "Донецька область", "Торецьк", "~дзержинськ донецька"},
		{"Дзержинськ", "", "", ""},
		{"смт Дзержинськ", "Житомирська область", "", ""},
		{"смт Дружба", "Тернопільська область", "", ""},
		{"Самарівський район", "Дніпропетровська область", "Новомосковський район", ""},
		{"Кіровоградський район", "Кіровоградська область", "Кропивницький район", ""},
		{"с. Клинове, Артемівський р-н", "Донецька область", "Бахмутський район", "~артемівський район донецька"},
		{"с. Клинове, Бахмутський район", "Донецька область", "", "~артемівський район донецька"},
		{"Комінтернівський район", "Одещина", "Лиманський район", "~комінтернівський район одеська"},
		{"Лиманський р-н", "Донецька область", "Краснолиманський район", ""},
		{"Дніпровський район", "Дніпропетровська область", "Дніпропетровський район", ""},
		{"Перекопський район", "АР Крим", "Красноперекопський район", ""},
		{"Олешківський район", "", "Цюрупинський район", ""},
		{"Кіровоградська", "Кіровоградська область", "", ""},
		{"Дніпропетровська область", "Дніпропетровська область", "", ""},
		{"Артемівський район", "Луганська область", "", ""},
		{"Комінтернівський район", "Харківська область", "", ""},
		{"Володарський район", "Київська область", "", ""},
		{"Жовтневий район", "Луганська область", "", ""},
		{"Першотравневий район", "", "", ""},
		{"Лиманський район", "Харківська область", "", ""},
		{"Куйбишевський район", "Донецька область", "", ""},
		{"Ленінський район", "м. Севастополь", "", ""},
		{"вул. Щорса", "Чернігівська область", "", ""},
		{"м. Київ", "м. Київ", "", ""},
	} {
		names, beside := Renamed(c.locality, c.region)
		if strings.Join(names, ",") != c.names || strings.Join(beside, ",") != c.beside {
			t.Errorf("%s, %s: got %q and %q, want %q and %q", c.locality, c.region, names, beside, c.names, c.beside)
		}
	}
}

func TestASharedNameIsReadBesideItsRegion(t *testing.T) {
	for text, want := range map[string]string{
		"прес Дзержинськ": "", "прес Дзержинськ Донецька обл": "~дзержинськ донецька", "у Дзержинську Донецької області": "~дзержинськ донецька",
		"Артемівський район": "", "земля Артемівський район Донецька область": "~артемівський район донецька",
		"Комінтернівському районі Одеської області": "~комінтернівський район одеська", "Комінтернівський р-н Одещина": "~комінтернівський район одеська",
		"Комінтернівський район Харківської області": "", "Комінтернівський завод Одеська": "", "Ленінський район Донецька": "",
		"Кіровоградська область": "", "Дзержинськ район Донецька": "~дзержинськ донецька", "Жовтневий Миколаївська": "",
		"Дзержинськ Житомирщина": "", "Дружба Сумщина": "~дружба сумська", "Сновськ Чернігівська": "",
	} {
		got := ""
		for _, key := range Former(Ask(text), nil) {
			got += key
		}
		expect.ErrorIf(t, got != want, "%q: got %q, want %q", text, got, want)
	}
	if got := Former(Ask("прес Дзержинськ"), []string{"Донецька область"}); got[1] != "~дзержинськ донецька" {
		t.Errorf("got %v with a filter by region, want the key of the town", got)
	}
}

// TestTheListOfRenamedPlacesIsWhole checks the form of each line, and that a name that stands in two lines is shared.
func TestTheListOfRenamedPlacesIsWhole(t *testing.T) {
	lines, formers := 0, map[string]bool{}
	for line := range strings.Lines(renamedList) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		lines++
		parts := strings.Split(strings.TrimSpace(line), " : ")
		former, present, ok := strings.Cut(parts[0], " = ")
		name, isShared := strings.CutPrefix(former, "!")
		if len(parts) != 3 || !ok || present == "" || parts[2] == "" || Region(parts[1]) != parts[1] {
			t.Errorf("%q: want two names, a region and a source", line)
		}
		if !slices.ContainsFunc(regions, func(r RegionName) bool { return r.Key == parts[1] }) {
			t.Errorf("%q: got no region of regions.txt", line)
		}
		for letter := range strings.FieldsSeq(parts[2]) {
			if !strings.Contains(renamedList, "# ") || !strings.Contains(renamedList, " "+letter+" ") {
				t.Errorf("%q: got the source %s, want one of the first lines", line, letter)
			}
		}
		if formers[name] && !isShared || isShared && len(strings.Fields(strings.TrimSuffix(name, districtWord))) > 1 {
			t.Errorf("%q: a name of two places needs a ! and one word", line)
		}
		formers[name] = true
	}
	expect.ErrorIf(t, lines < 80, "got %d places, want 80", lines)
}

func TestAFormerNameHasItsKeys(t *testing.T) {
	for key, want := range map[string]string{"цюрупинськ": "Цюрупинськ", "димитров": "Димитров", "склад": ""} {
		expect.Equal(t, FormerName(stems(key)[0]), want, "%s", key)
	}
}
