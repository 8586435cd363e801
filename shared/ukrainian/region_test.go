package ukrainian

import (
	"testing"

	"asset-registry/shared/testing/expect"
)

func TestSpellingsOfARegionAreOne(t *testing.T) {
	for _, names := range [][]string{
		{"Автономна Республіка Крим", "АР Крим", "Крим", "АРК", "Autonomous Republic of Crimea"},
		{"м. Київ", "Київ", "місто Київ", "Kyiv", "Киев", "М.КИЇВ"},
		{"Одеська область", "Одеська обл.", "одеська", "Odesa region", "Одесская область", "Odeska oblast"},
		{"Івано-Франківська область", "Івано-Франківська обл", "Ivano-Frankivsk oblast"},
	} {
		for _, name := range names[1:] {
			if got, want := Region(name), Region(names[0]); got != want {
				t.Errorf("%s: got the key %q, want %q as of %s", name, got, want, names[0])
			}
		}
	}
	if Region("Київська область") == Region("м. Київ") {
		t.Error("got one key for Київська область and Київ, want two")
	}
}

// Promises: dictionaries
func TestNamesOfARegionAreSpellingsOfIt(t *testing.T) {
	all := Regions()
	expect.Equal(t, len(all), 27, "regions")
	for _, r := range all {
		if uk, en := Region(r.Uk), Region(r.En); uk != r.Key || en != r.Key {
			t.Errorf("%+v: got the keys %q and %q of its names, want its own", r, uk, en)
		}
	}
}
