package ukrainian

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestRulesAreThoseOfTheKeys fails if a word of the list has got other keys, or a place another name. An index with the
// old keys would not find it.
func TestRulesAreThoseOfTheKeys(t *testing.T) {
	expect.Equal(t, Rules, fingerprint(), "the keys have changed: Rules must be the second value")
}

// fingerprint returns a hash of the keys of a fixed list of words. Together these words have all endings, signs and
// letters of the rules.
func fingerprint() string {
	hash := sha256.New()
	for _, stem := range []string{"будин", "зем", "ніч", "ходж", "стіль", "книз", "малюн"} {
		for _, ending := range slices.Concat(endings, youngEndings, verbEndings, []string{"ок", "ся", "сь", ""}) {
			fmt.Fprintf(hash, "%q", keys(stem+ending))
		}
	}
	for _, text := range []string{
		"об’єкт обʼєкти кам`яний ґанок ёлка эхо съезд ссуда", "UA-EDR-00032945 04121000-2 1-6 а/б x_y e.g.",
		"№145 240м² 12х24м 0,7777 36,60 49-а 49 А Т-150К III при ПРУ складське гаражні ЗИЛ-130 00032945 екс\u200bкаватор",
		"об\"єкт 1 234,5 1'234.5 1.234,56 пл.36,6кв.м п.4.15 25 листопада 2019 25.11.2019 3220882600:04:001:0417",
		"BA3-21074 XTA 21074071234567 3220882600 : 04:001: 0417 S-1 234,5",
		"houses running nationally relational", "Kиїв КИЇВ сaлo MAKET",
		"кафе\u0301 при\u00adміщення и\u0306 ﬃ ① ² № \ufdfa İ",
		"漢字 각 \xff", strings.Repeat("ж", 2*maxWord), strings.Repeat("1-a", maxCode), strings.Repeat("слово ", 2*pieceMost),
	} {
		fmt.Fprintf(hash, "%q %q", Words(text), Place(text))
		Each(text, 1000, func(key string) { fmt.Fprintf(hash, "%q", key) })
	}
	fmt.Fprint(hash, derivedList, renamedList)
	for _, kind := range append(slices.Sorted(maps.Keys(kindsOfPlaces)), "район") {
		fmt.Fprintf(hash, "%q", Place(kind+" Київ"))
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}
