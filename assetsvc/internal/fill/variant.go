package main

import (
	"encoding/hex"
	"math/rand/v2"
	"strings"

	"asset-registry/assetsvc/internal/record"
)

// words take the place of the words of texts, so that assets differ as real ones do.
var words = strings.Fields(`нежитлові приміщення першого поверху будівля гараж склад адміністративний корпус
окрема частина вбудоване підвал цокольний вхід окремий стан задовільний площа загальна вулиця майдан проспект
область район місто селище Київ Львів Одеса Харків Дніпро Полтава Чернігів Суми Вінниця Житомир Рівне Луцьк
комплекс єдиний майновий земельна ділянка обладнання верстат автомобіль причіп трактор лінія цех котельня
підприємство державне комунальне товариство відділення регіональне фонд майна управління власність оренда
реконструкція ремонт фасад покрівля мережі водопостачання опалення електрика газ каналізація історія пам'ятка`)

// freeTexts are the fields whose words vary.
var freeTexts = map[string]bool{
	"title": true, "description": true, "streetAddress": true, "locality": true, "region": true, "name": true,
}

// variant makes random variants of values. A seed always makes the same ones.
type variant struct{ random *rand.Rand }

func newVariant(seed, stream uint64) *variant { return &variant{rand.New(rand.NewPCG(seed, stream))} }

// vary returns a value like the one of a field.
func (v *variant) vary(name string, value record.Value) record.Value {
	switch value := value.(type) {
	case record.Object:
		varied := make(record.Object, len(value))
		for i, m := range value {
			varied[i] = record.Member{Name: m.Name, Value: v.vary(m.Name, m.Value)}
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

// isID tells whether a text has the form of an id.
func isID(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == 16
}

// words returns as many random words as a text has, and varies its numbers.
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

// digits returns a text with other digits. None becomes 0, so numbers keep their form.
func (v *variant) digits(text string) string {
	varied := []byte(text)
	for i, c := range varied {
		if '0' <= c && c <= '9' {
			varied[i] = byte('1' + v.random.IntN(9))
		}
	}
	return string(varied)
}
