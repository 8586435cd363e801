package ukrainian

import (
	"slices"
	"strings"
)

// regionNames are the regions of Ukraine. Each line has the key, the Ukrainian and the English name, and further
// spellings in Ukrainian, Russian and English, also colloquial ones. The spellings do not have words such as область,
// because Place drops these words.
var regionNames = `
крим = Автономна Республіка Крим = Autonomous Republic of Crimea: автономна республіка крим, ар крим, арк,
	республіка крим, автономная республика крым, ар крым, крым, crimea, autonomous republic of crimea, krym
вінницька = Вінницька область = Vinnytsia Oblast: вінничина, винницкая, vinnytsia, vinnytska, vinnitsa
волинська = Волинська область = Volyn Oblast: волинь, волынская, volyn, volynska
дніпропетровська = Дніпропетровська область = Dnipropetrovsk Oblast: дніпропетровщина, днепропетровская,
	dnipropetrovsk, dnipropetrovska
донецька = Донецька область = Donetsk Oblast: донеччина, донецкая, donetsk, donetska
житомирська = Житомирська область = Zhytomyr Oblast: житомирщина, житомирская, zhytomyr, zhytomyrska
закарпатська = Закарпатська область = Zakarpattia Oblast: закарпаття, закарпатская, zakarpattia, zakarpatska,
	transcarpathia
запорізька = Запорізька область = Zaporizhzhia Oblast: запоріжжя, запорожская, zaporizhzhia, zaporizka
івано франківська = Івано-Франківська область = Ivano-Frankivsk Oblast: івано-франківська, франківщина, прикарпаття,
	ивано франковская, ivano frankivsk, ivano frankivska
київська = Київська область = Kyivska Oblast: київщина, киевская, kyivska, kiev oblast
кіровоградська = Кіровоградська область = Kirovohrad Oblast: кіровоградщина, кировоградская, kirovohrad,
	kirovohradska
луганська = Луганська область = Luhansk Oblast: луганщина, луганская, luhansk, luhanska
львівська = Львівська область = Lviv Oblast: львівщина, львовская, lviv, lvivska
миколаївська = Миколаївська область = Mykolaiv Oblast: миколаївщина, николаевская, mykolaiv, mykolaivska
одеська = Одеська область = Odesa Oblast: одещина, одесская, odesa, odeska, odessa
полтавська = Полтавська область = Poltava Oblast: полтавщина, полтавская, poltava, poltavska
рівненська = Рівненська область = Rivne Oblast: рівненщина, ровенская, ровненская, rivne, rivnenska
сумська = Сумська область = Sumy Oblast: сумщина, сумская, sumy, sumska
тернопільська = Тернопільська область = Ternopil Oblast: тернопільщина, тернопольская, ternopil, ternopilska
харківська = Харківська область = Kharkiv Oblast: харківщина, харьковская, kharkiv, kharkivska
херсонська = Херсонська область = Kherson Oblast: херсонщина, херсонская, kherson, khersonska
хмельницька = Хмельницька область = Khmelnytskyi Oblast: хмельниччина, хмельницкая, khmelnytskyi, khmelnytska
черкаська = Черкаська область = Cherkasy Oblast: черкащина, черкасская, cherkasy, cherkaska
чернівецька = Чернівецька область = Chernivtsi Oblast: буковина, черновицкая, chernivtsi, chernivetska
чернігівська = Чернігівська область = Chernihiv Oblast: чернігівщина, черниговская, chernihiv, chernihivska
київ = Київ = Kyiv: киев, kyiv, kiev, city of kyiv
севастополь = Севастополь = Sevastopol: sevastopol, city of sevastopol
`

// RegionName is a region of Ukraine with its names for people.
type RegionName struct{ Key, Uk, En string }

// regions has all regions. regionKeys has the key of a region for each of its spellings, in the form that Place
// returns.
var regions, regionKeys = func() (all []RegionName, keys map[string]string) {
	keys = map[string]string{}
	for _, line := range strings.Split(strings.ReplaceAll(strings.TrimSpace(regionNames), ",\n\t", ", "), "\n") {
		names, others, _ := strings.Cut(line, ":")
		n := strings.Split(names, " = ")
		all = append(all, RegionName{n[0], n[1], n[2]})
		keys[n[0]] = n[0]
		for other := range strings.SplitSeq(others, ",") {
			keys[Place(other)] = n[0]
		}
	}
	slices.SortFunc(all, func(a, b RegionName) int { return strings.Compare(a.Key, b.Key) })
	return all, keys
}()

// Region returns the key of the name of a region. All spellings of a region have one key. For any other name it
// returns what Place returns.
func Region(name string) string {
	key := Place(name)
	if known, ok := regionKeys[key]; ok {
		return known
	}
	return key
}

// Regions returns all regions of Ukraine, in the order of their keys.
func Regions() []RegionName { return slices.Clone(regions) }

// maxPlace is the maximum number of characters of a place's name. Further characters are dropped.
const maxPlace = 200

// Place returns the key of the name of a region or a locality. The key does not have the words
// for a kind of place, such as область.
func Place(name string) string {
	name = cut(name, maxPlace)
	var kept []string
	for w := range splitAll(name) {
		parts := w.parts
		if w.isCode {
			parts = []string{w.text}
		}
		for _, part := range parts {
			if !kindsOfPlaces[part] {
				kept = append(kept, strings.ReplaceAll(fold(part), string(apostrophe), ""))
			}
		}
	}
	if len(kept) == 0 {
		return cut(strings.Join(strings.Fields(normal(name)), " "), maxPlace)
	}
	return cut(strings.Join(kept, " "), maxPlace)
}

var kindsOfPlaces = map[string]bool{
	"область": true, "обл": true, "м": true, "місто": true, "с": true, "село": true, "смт": true, "селище": true,
	"сел": true, "oblast": true, "region": true,
}
