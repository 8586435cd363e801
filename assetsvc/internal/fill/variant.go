package main

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"

	"asset-registry/assetsvc/internal/record"
)

// words replace the words of texts, so that the texts of assets differ as much as in a real registry.
var words = strings.Fields(`нежитлові приміщення першого поверху будівля гараж склад адміністративний корпус
окрема частина вбудоване підвал цокольний вхід окремий стан задовільний площа загальна вулиця майдан проспект
область район місто селище Київ Львів Одеса Харків Дніпро Полтава Чернігів Суми Вінниця Житомир Рівне Луцьк
комплекс єдиний майновий земельна ділянка обладнання верстат автомобіль причіп трактор лінія цех котельня
підприємство державне комунальне товариство відділення регіональне фонд майна управління власність оренда
реконструкція ремонт фасад покрівля мережі водопостачання опалення електрика газ каналізація історія пам'ятка`)

// freeTexts are the fields whose words vary.
var freeTexts = map[string]bool{
	"title": true, "description": true, "streetAddress": true, "locality": true, "name": true,
}

var (
	regions = strings.Fields(`Вінницька Волинська Дніпропетровська Донецька Житомирська Закарпатська Запорізька
	Івано-Франківська Київська Кіровоградська Луганська Львівська Миколаївська Одеська Полтавська Рівненська Сумська
	Тернопільська Харківська Херсонська Хмельницька Черкаська Чернівецька Чернігівська`)
	codes = strings.Fields(`04111000-9 04113000-3 04121000-2 04123000-6 04132000-2 04142000-5 04152000-8 04212000-7
	04214000-1 04222000-0 04224000-4 04231000-6 04233000-0 05111000-6 06112000-0 06122000-3
	06124000-7 06126000-1 06128000-5 07121000-3 07123000-7 07125000-1 07127000-5 07222000-1
	07224000-5 07226000-9`)
)

// organisations is the number of custodians. In reality, about as many organisations hold state or municipal property.
const organisations = 20_000

// variant makes random variants of values. The same seed always makes the same variants.
type variant struct{ random *rand.Rand }

func newVariant(seed, stream uint64) *variant { return &variant{rand.New(rand.NewPCG(seed, stream))} }

// vary returns a random variant of the value of a field.
func (v *variant) vary(name string, value record.Value) record.Value {
	switch value := value.(type) {
	case record.Object:
		varied := make(record.Object, len(value))
		for i, m := range value {
			varied[i] = record.Member{Name: m.Name, Value: v.member(name, m)}
		}
		return varied
	case record.List:
		varied := make(record.List, len(value))
		for i, element := range value {
			varied[i] = v.vary(name, element)
		}
		return varied
	case record.Number:
		return record.Number(v.digits(string(value)))
	case string:
		return v.text(name, value)
	}
	return value
}

// member returns a random variant of the value of a member. The argument `of` is the name of the field whose value
// is the object with this member.
func (v *variant) member(of string, m record.Member) record.Value {
	switch {
	case of == "identifier" && m.Name == "id":
		return fmt.Sprintf("%08d", 10_000_000+v.random.IntN(organisations))
	case of == "classification" && m.Name == "id":
		return codes[v.random.IntN(len(codes))]
	case m.Name == "region":
		return regions[v.random.IntN(len(regions))] + " область"
	}
	return v.vary(m.Name, m.Value)
}

func (v *variant) text(name, text string) string {
	switch {
	case isID(text):
		id := make([]byte, hex.DecodedLen(len(text)))
		for i := range id {
			id[i] = byte(v.random.Uint32())
		}
		return hex.EncodeToString(id)
	case freeTexts[name]:
		return v.words(text)
	case name == "assetID" || name == "decisionID" || name == "postalCode" || name == "telephone":
		return v.digits(text)
	}
	return text
}

// isID reports whether a text has the form of an id.
func isID(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == 16
}

// words returns a text with a random word in place of each word of the given text. A word with digits keeps its
// form, but its digits change.
func (v *variant) words(text string) string {
	varied := strings.Fields(text)
	for i, word := range varied {
		if strings.ContainsAny(word, "0123456789") {
			varied[i] = v.digits(word)
		} else {
			varied[i] = words[v.random.IntN(len(words))]
		}
	}
	return strings.Join(varied, " ")
}

// digits replaces each digit of a text by a random digit. No new digit is 0, so a number never begins with 0.
func (v *variant) digits(text string) string {
	varied := []byte(text)
	for i, c := range varied {
		if '0' <= c && c <= '9' {
			varied[i] = byte('1' + v.random.IntN(9))
		}
	}
	return string(varied)
}
