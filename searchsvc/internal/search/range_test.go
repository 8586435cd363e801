package search

import (
	"fmt"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestRangesInWords has ranges of area as people write them in three languages. The last field is the question without
// the range.
// Promises: search-ranges
func TestRangesInWords(t *testing.T) {
	for text, want := range map[string]string{
		"склад до 500 м2":                                ". 500 m2 склад",
		"склад площею до 500 кв.м Львів":                 ". 500 m2 склад  Львів",
		"від 100 до 200 кв.м":                            "100 200 m2 ",
		"офіс, загальною площею від 1 234,5 до 2'000 м²": "1234.5 2000 m2 офіс,",
		"ділянка понад 1 га":                             "1 . ha ділянка",
		"більше 50 м²":                                   "50 . m2 ",
		"приміщення 100-200 м²":                          "100 200 m2 приміщення",
		"приміщення 100 – 200 м. кв.":                    "100 200 m2 приміщення",
		"не менше 2 соток":                               "200 . m2 ",
		"дача не більше ніж 12 соток":                    ". 1200 m2 дача",
		"від 50 соток до 2 га":                           "5000 20000 m2 ",
		"участок от 10 до 15 соток":                      "1000 1500 m2 участок",
		"земля не менее 5 гектаров":                      "5 . ha земля",
		"склад не более 300 квадратных метров":           ". 300 m2 склад",
		"помещение свыше 40 кв. метров":                  "40 . m2 помещение",
		"менше 30,5 м кв":                                ". 30.5 m2 ",
		"warehouse up to 500 sqm":                        ". 500 m2 warehouse",
		"land between 1 and 2 hectares":                  "1 2 ha land",
		"at least 40 square meters Kyiv":                 "40 . m2 Kyiv",
		"no more than 3 ha":                              ". 3 ha ",
		"між 20 і 30 м2":                                 "20 30 m2 ",
		"полігон до 2 кв.км":                             ". 200 ha полігон",
		`склад "до Явора" до 500 м2`:                     `. 500 m2 склад "до Явора"`,
		"До 0,12 Га":                                     ". 1200 m2 ",
		"понад 100 квадратів":                            "100 . m2 ",
		"ангар від 1,5 тис. м2":                          "1500 . m2 ангар",
		"до 2 тис кв.м цех":                              ". 2000 m2 цех",
		"площа 3-4 тисячі м²":                            "3000 4000 m2 ",
		"цех от 10 тыс. до 20 тыс. кв. м":                "1 2 ha цех",
		"офіс 70+ м2 Київ":                               "70 . m2 офіс  Київ",
		"land 2+ ha":                                     "2 . ha land",
		"60+ грн":                                        "", "до 3 тис. грн": "", "А60+ м2": "", "12+24 м2": "",
		"Садова 5 100-200 м²": "",
		"буд. 12-24":          "", "500 м до траси": "", "до 500 грн": "", "до 500 м": "", "від 100 до 200": "",
		"до 500": "", "склад 500 м2": "", `"до 500 м2"`: "", "склад «до 500 м2»": "", "200-100 м2": "", "до траси 2 га": "",
		"5-100-200 м2": "", "до 25.11.2019 га": "", "від 5 км до 10 км": "", "12-24 м. Київ": "", "до 0 м2": "", "кв. 5": "",
		"Т-150 до 2 гаражів": "", "дом 3-5 этажей": "", "до 3 арок": "", "від 2 га до 1 га": "", "до 1 000 000 000 000 000 га": "",
	} {
		got := ""
		if r, ok := (Query{Text: text}).Range(); ok {
			got = fmt.Sprintf("%s %s %s %s", bound0(r.From), bound0(r.To), r.Unit, r.Rest)
			expect.ErrorIf(t, r.Words == "", "%q: got no words of the range", text)
		}
		expect.ErrorIf(t, got != want, "%q: got %q, want %q", text, got, want)
	}
}

func bound0(n *float64) string {
	if n == nil {
		return "."
	}
	return numberText(n)
}

// TestRangesThatStayWords has questions whose words must not be read as a range.
// Promises: search-ranges
func TestRangesThatStayWords(t *testing.T) {
	from := 5.0
	for name, q := range map[string]Query{
		"exact":       {Exact: true},
		"a bound":     {Filters: Filters{Quantity: Quantities{From: &from}}},
		"only a unit": {Filters: Filters{Quantity: Quantities{Unit: Pieces}}},
	} {
		q.Text = "склад до 500 м2"
		if r, ok := q.Range(); ok {
			t.Errorf("%s: got the range %+v, want none", name, r)
		}
	}
}
