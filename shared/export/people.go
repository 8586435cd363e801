package export

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"asset-registry/shared/assetfields"
	"asset-registry/shared/assetfilter"
	"asset-registry/shared/isotime"
	"asset-registry/shared/ukrainian"
)

// People is a file of a search for people (docs/contract.md, "Exports"): its language, and facts for its second sheet.
type People struct {
	Lang    string         // uk or en
	Kyiv    *time.Location // zone of the times
	Base    string         // public address of the registry
	Query   url.Values     // parameters of the search
	Total   int64          // found assets
	Licence string         // "": the operator has not set it
	Now     time.Time
}

// Endings are the endings of the names of files for people.
var Endings = []string{"xlsx", "csv"}

// say returns the text in the language of the file.
func (p People) say(uk, en string) string {
	if p.Lang == "en" {
		return en
	}
	return uk
}

// Form returns the format of the file with an ending.
func (p People) Form(ending string) Form {
	f := Form{Name: ending, ContentType: csvType}
	f.open = func(w io.Writer, _ []column) (writer, error) {
		csv := &csvFile{to: w, separator: p.say(";", ",")[0]}
		if _, err := io.WriteString(w, "\ufeff"); err != nil {
			return nil, err
		}
		return p.begin(csv)
	}
	if ending == "xlsx" {
		f.ContentType = xlsxType
		f.open = func(w io.Writer, _ []column) (writer, error) {
			to, err := newSheet(w, sheetPage{p.say("Активи", "Assets"), p.widths(), true},
				sheetPage{name: p.say("Про файл", "About"), widths: []int{24, 100}})
			if err != nil {
				return nil, err
			}
			return p.begin(to)
		}
	}
	return f
}

// Name returns the name of the file without its ending: the words and values of the question, and the day.
func (p People) Name() string {
	var words []string
	for _, q := range p.question() {
		words = append(words, q[1])
	}
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(`\/:*?"<>|`, r) {
			return ' '
		}
		return r
	}, strings.Join(words, ", "))
	clean = strings.Join(strings.Fields(string([]rune(clean)[:min(len([]rune(clean)), mostInName)])), " ")
	name := p.say("Активи", "Assets") + " " + p.Now.In(p.Kyiv).Format(time.DateOnly)
	if clean != "" {
		name += " " + clean
	}
	return name
}

// mostInName is the maximum number of characters of the question in the name of a file.
const mostInName = 60

// question returns the parameters of the search that say what is asked for, with their names for people.
func (p People) question() (all [][2]string) {
	add := func(name, uk, en string) {
		values := slices.Clone(p.Query[name])
		for i, v := range values {
			values[i] = p.word(name, v)
			at, err := isotime.Parse(v, time.UTC)
			if err == nil && !isotime.IsDate(v) && name != "q" {
				values[i] = at.In(p.Kyiv).Format(timeForm)
			}
		}
		if len(values) > 0 {
			all = append(all, [2]string{p.say(uk, en), strings.Join(values, ", ")})
		}
	}
	add("q", assetfilter.Labels["q"].Uk, assetfilter.Labels["q"].En)
	for _, f := range assetfilter.All {
		add(string(f.Name), f.Uk, f.En)
	}
	for _, name := range []string{"published", "modified", "quantity"} {
		for _, end := range []string{"_from", "_to", "_unit"} {
			label := assetfilter.Labels[name+end]
			add(name+end, label.Uk, label.En)
		}
	}
	return all
}

// word returns the name of a value of a field, or the value itself.
func (p People) word(field, value string) string {
	said := assetfields.Words[field+"/"+value]
	return cmp.Or(p.say(said[0], said[1]), value)
}

// peoplesColumns are the indexes in the table of assets of the columns for people. The address of the page comes behind
// the first one, and stands for the id.
var peoplesColumns = func() []int {
	all := []int{Tables[ofAssets].index("assetID")}
	for i, c := range Tables[ofAssets].columns {
		if c.name != "assetID" && c.name != "id" {
			all = append(all, i)
		}
	}
	return all
}()

// heading returns the name of a column for people.
func (p People) heading(c column) string {
	var parts []string
	for _, f := range c.above {
		name, isEnglish := strings.CutSuffix(f.Name, "_en")
		said := names[name]
		part := p.say(said[0], said[1])
		if isEnglish {
			part += p.say(", англійською", ", in English")
		}
		parts = append(parts, part)
	}
	switch {
	case strings.HasSuffix(c.name, ".length"):
		parts = append(parts, p.say("скільки", "how many"))
	case strings.HasPrefix(c.name, "items.0."):
		parts[0] = p.say("Складова", "Item")
	case c.of == "timestamp":
		parts[len(parts)-1] += p.say(" (за Києвом)", " (Kyiv time)")
	}
	return strings.Join(parts, ": ")
}

// names has the names of fields for people, in Ukrainian and in English.
var names = func() map[string][2]string {
	all := map[string][2]string{}
	assetfields.Asset.Each(func(rows []assetfields.Field) {
		for _, f := range rows {
			if f.Uk != "" && !f.Is.Has(assetfields.Renamed) {
				all[f.Name] = [2]string{f.Uk, f.En}
			}
		}
	})
	return all
}()

// widths returns the widths of the columns of a sheet.
func (p People) widths() []int {
	all := []int{30, 50}
	for _, i := range peoplesColumns[1:] {
		width := 18
		if of := Tables[ofAssets].columns[i].of; of == "line" || of == "prose" {
			width = 40
		}
		all = append(all, width)
	}
	return all
}

// peoples writes a file for people.
type peoples struct {
	People
	to rowWriter
}

func (p People) begin(to rowWriter) (writer, error) {
	row := []cell{{text: p.heading(Tables[ofAssets].columns[peoplesColumns[0]])}, {text: p.say("Сторінка", "Page")}}
	for _, i := range peoplesColumns[1:] {
		row = append(row, cell{text: p.heading(Tables[ofAssets].columns[i])})
	}
	return &peoples{p, to}, to.addRow(row)
}

func (p *peoples) add(a *Asset) (rows int, err error) {
	from := slices.Clone(a.rows[ofAssets][0])
	if items := a.rows[ofItems]; len(items) > 1 {
		copy(from[lengthColumns[ofItems]+1:], items[p.found(items)][2:])
	}
	var row []cell
	for i, at := range peoplesColumns {
		c := from[at]
		switch of := Tables[ofAssets].columns[at]; of.of {
		case "state", "asset type":
			c.text = p.word(of.name, c.text)
		case "timestamp":
			if at, err := isotime.Parse(c.text, time.UTC); err == nil {
				c = cell{text: at.In(p.Kyiv).Format(timeForm), isTime: true}
			}
		}
		if row = append(row, c); i == 0 {
			row = append(row, cell{text: strings.Replace(pageOf(p.Base, a), p.Base, p.Base+"/"+p.Lang, 1)})
		}
	}
	return 1, p.to.addRow(row)
}

// The method `found` returns the index of the item that meets most filters of the question, and of these the one with
// most of its words; the first one if several are equal.
func (p *peoples) found(items [][]cell) (best int) {
	most := -1
	for i, item := range items {
		text := func(name string) string { return item[Tables[ofItems].index(name)].text }
		is := &assetfilter.Asset{Items: []assetfilter.Item{{
			Classification: assetfilter.Class{ID: text("classification.id")},
			Address:        assetfilter.Address{Region: text("address.region"), Locality: text("address.locality")}}}}
		score := 0
		for _, name := range []assetfilter.Name{assetfilter.Classification, assetfilter.Region, assetfilter.Locality} {
			var wanted []string
			f := assetfilter.Of(name)
			for _, value := range p.Query[string(name)] {
				wanted = append(wanted, f.Terms(value)...)
			}
			meets := false
			f.Each(is, func(term, _, _ string) { meets = meets || slices.Contains(wanted, term) })
			if meets {
				score += mostWords
			}
		}
		if p.hasQuantity(text("quantity")) {
			score += mostWords
		}
		if score += p.words(item); score > most {
			best, most = i, score
		}
	}
	return best
}

// mostWords is a number of words that no question has.
const mostWords = 1000

// hasQuantity reports whether the question names quantities, and this is one of them in the unit that it has.
func (p *peoples) hasQuantity(text string) bool {
	n, err := strconv.ParseFloat(text, 64)
	from, noFrom := strconv.ParseFloat(p.Query.Get("quantity_from"), 64)
	to, noTo := strconv.ParseFloat(p.Query.Get("quantity_to"), 64)
	return err == nil && (noFrom == nil || noTo == nil) && (noFrom != nil || n >= from) && (noTo != nil || n <= to)
}

// words returns how many words of the question an item has.
func (p *peoples) words(item []cell) (n int) {
	keys := map[string]bool{}
	for _, c := range item {
		ukrainian.Each(c.text, len(c.text), func(key string) { keys[key] = true })
	}
	for _, word := range ukrainian.Ask(p.Query.Get("q")) {
		if word.IsIn(func(asked []string) bool {
			return slices.ContainsFunc(asked, func(key string) bool { return keys[key] })
		}) {
			n++
		}
	}
	return n
}

// close writes the second sheet of XLSX.
func (p *peoples) close() error {
	s, isSheet := p.to.(*sheet)
	if !isSheet {
		return p.to.close()
	}
	rows := s.rows - 1
	if err := s.next(); err != nil {
		return err
	}
	facts := append(p.question(), [][2]string{
		{p.say("Адреса питання", "Address of the question"), p.search()},
		{p.say("Зроблено (за Києвом)", "Made at (Kyiv time)"), p.Now.In(p.Kyiv).Format(timeForm)},
		{p.say("Рядків у файлі", "Rows of the file"),
			fmt.Sprintf(p.say("%d з %d знайдених", "%d of %d found"), rows, p.Total)},
		{p.say("Джерело", "Source"), p.Base},
		{p.say("Ліцензія", "Licence"), cmp.Or(p.Licence, p.say("не вказана оператором", "not set by the operator"))},
	}...)
	for _, fact := range facts {
		if err := s.addRow([]cell{{text: fact[0]}, {text: fact[1]}}); err != nil {
			return err
		}
	}
	return s.close()
}

// search returns the address of the search page with the question.
func (p People) search() string {
	sent := url.Values{}
	for name, values := range p.Query {
		if name != "limit" && name != "search_after" {
			sent[name] = values
		}
	}
	return p.Base + "/" + p.Lang + "/?" + sent.Encode()
}
