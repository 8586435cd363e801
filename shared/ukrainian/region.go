package ukrainian

import (
	"maps"
	"slices"
	"strings"
)

// regionNames are the regions of Ukraine, each with its key first and its other spellings after it:
// in Ukrainian, Russian and English, and as people call it. Place has left out words such as область.
var regionNames = `
крим: автономна республіка крим, ар крим, арк, республіка крим, автономная республика крым, ар крым, крым, crimea,
	autonomous republic of crimea, krym
вінницька: вінничина, винницкая, vinnytsia, vinnytska, vinnitsa
волинська: волинь, волынская, volyn, volynska
дніпропетровська: дніпропетровщина, днепропетровская, dnipropetrovsk, dnipropetrovska
донецька: донеччина, донецкая, donetsk, donetska
житомирська: житомирщина, житомирская, zhytomyr, zhytomyrska
закарпатська: закарпаття, закарпатская, zakarpattia, zakarpatska, transcarpathia
запорізька: запоріжжя, запорожская, zaporizhzhia, zaporizka
івано франківська: івано-франківська, франківщина, прикарпаття, ивано франковская, ivano frankivsk, ivano frankivska
київська: київщина, киевская, kyivska, kiev oblast
кіровоградська: кіровоградщина, кировоградская, kirovohrad, kirovohradska
луганська: луганщина, луганская, luhansk, luhanska
львівська: львівщина, львовская, lviv, lvivska
миколаївська: миколаївщина, николаевская, mykolaiv, mykolaivska
одеська: одещина, одесская, odesa, odeska, odessa
полтавська: полтавщина, полтавская, poltava, poltavska
рівненська: рівненщина, ровенская, ровненская, rivne, rivnenska
сумська: сумщина, сумская, sumy, sumska
тернопільська: тернопільщина, тернопольская, ternopil, ternopilska
харківська: харківщина, харьковская, kharkiv, kharkivska
херсонська: херсонщина, херсонская, kherson, khersonska
хмельницька: хмельниччина, хмельницкая, khmelnytskyi, khmelnytska
черкаська: черкащина, черкасская, cherkasy, cherkaska
чернівецька: буковина, черновицкая, chernivtsi, chernivetska
чернігівська: чернігівщина, черниговская, chernihiv, chernihivska
київ: киев, kyiv, kiev, city of kyiv
севастополь: sevastopol, city of sevastopol
`

// regionKeys are the keys of regions by each of their spellings, in the form that Place gives them.
var regionKeys = func() map[string]string {
	keys := map[string]string{}
	for _, line := range strings.Split(strings.ReplaceAll(strings.TrimSpace(regionNames), ",\n\t", ", "), "\n") {
		key, others, _ := strings.Cut(line, ":")
		keys[key] = key
		for other := range strings.SplitSeq(others, ",") {
			keys[Place(other)] = key
		}
	}
	return keys
}()

// Region returns the key of the name of a region. All spellings of one have one key. The key of
// another name is that of Place.
func Region(name string) string {
	key := Place(name)
	if known, ok := regionKeys[key]; ok {
		return known
	}
	return key
}

// Regions returns the keys of all regions of Ukraine.
func Regions() []string {
	return slices.Compact(slices.Sorted(maps.Values(regionKeys)))
}
