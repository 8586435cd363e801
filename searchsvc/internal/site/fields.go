package site

import (
	"cmp"
	"html/template"
	"net/mail"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"asset-registry.example/client"
	"asset-registry/shared/assetfields"
	"asset-registry/shared/filelink"
	"asset-registry/shared/ukrainian"
)

// field is what a page needs to know of a field: its name for people, and the form of its text.
type field struct {
	name text
	form assetfields.Shape
}

// fields has the fields of a record; the keys are their names. A field whose name ends in _en or _ru is the same field
// in that language. renamed has the names of fields that people call differently in some objects. Its key is the name
// of the list or object, a dot, and the name of the field.
var fields, renamed = named()

// named returns the names of the list of fields, and those of three fields that are not stored.
func named() (fields map[string]field, renamed map[string]text) {
	fields = map[string]field{
		"previousVersions": {text{"Попередні версії", "Previous versions"}, ""},
		"thumbnails":       {text{"Малі зображення", "Small pictures"}, ""},
		"side":             {text{"Довша сторона", "Longer side"}, ""},
	}
	renamed = map[string]text{}
	assetfields.Asset.Each(func(rows []assetfields.Field) {
		for i, f := range rows {
			name := text{f.Uk, f.En}
			switch {
			case f.Is.Has(assetfields.Renamed):
				renamed[rows[i-1].Name+"."+f.Name] = name
			case f.Uk != "":
				fields[f.Name] = field{name, f.Shown}
			}
		}
	})
	return fields, renamed
}

// words translates the values of fields into words for a page. A key is a field and a value. If a value means the
// same in every field, its key is the value alone.
var words = map[string]text{
	"registrationDetails.status/unknown":     {"Немає відомостей", "Unknown"},
	"registrationDetails.status/registering": {"Реєструється", "Being registered"},
	"registrationDetails.status/complete":    {"Зареєстровано", "Registered"},

	"mode/test": {"Тестовий запис", "Test record"},

	"documentType/notice":                    {"Оголошення", "Notice"},
	"documentType/technicalSpecifications":   {"Технічний опис", "Technical specifications"},
	"documentType/illustration":              {"Зображення", "Illustration"},
	"documentType/x_presentation":            {"Презентація", "Presentation"},
	"documentType/informationDetails":        {"Інформаційне повідомлення", "Information notice"},
	"documentType/cancellationDetails":       {"Підстава зняття з реєстру", "Reason of the removal"},
	"documentType/x_dgfAssetFamiliarization": {"Порядок ознайомлення з активом", "How to see the asset"},
	"documentType/evaluationCriteria":        {"Критерії оцінки", "Evaluation criteria"},
	"documentType/clarifications":            {"Роз’яснення", "Clarifications"},

	"author/asset_owner":            {"Оператор, який веде запис", "The broker that keeps the record"},
	"decisionOf/asset":              {"Актив", "Asset"},
	"documentOf/asset":              {"Актив", "Asset"},
	"documentOf/item":               {"Складова", "Item"},
	"relatedProcesses.type/asset":   {"Актив", "Asset"},
	"relatedProcesses.type/auction": {"Аукціон", "Auction"},
	"relatedProcesses.type/lot":     {"Лот", "Lot"},
	"kind/general":                  {"Загальна", "General"},
	"kind/special":                  {"Спеціальна", "Special"},
	"kind/other":                    {"Інша", "Other"},
}

// unit has the name of a unit in each language.
type unit struct {
	noun
	fraction string // Ukrainian form after a number with a fraction; "": the form after 2
}

// units has the names of common units of UN/CEFACT Recommendation 20, by their codes.
var units = map[string]unit{
	"MTK": sign("м²", "m²"), "MTR": sign("м", "m"), "MTQ": sign("м³", "m³"), "KMT": sign("км", "km"),
	"HAR": sign("га", "ha"), "ARE": sign("а", "a"), "KMK": sign("км²", "km²"),
	"KGM": sign("кг", "kg"), "GRM": sign("г", "g"),
	"TNE": sign("т", "t"), "LTR": sign("л", "l"), "KWH": sign("кВт·год", "kWh"), "KWT": sign("кВт", "kW"),
	"H87": sign("шт.", "pcs"), "C62": sign("од.", "units"),
	"E48": {noun: noun{forms{"послуга", "послуги", "послуг"}, forms{"service", "", "services"}}},
	"SET": {noun{forms{"комплект", "комплекти", "комплектів"}, forms{"set", "", "sets"}}, "комплекту"},
	"D63": {noun: noun{forms{"книга", "книги", "книг"}, forms{"book", "", "books"}}},
	"PR":  {noun: noun{forms{"пара", "пари", "пар"}, forms{"pair", "", "pairs"}}},
}

// unitOf returns the unit with a code, or with a form that stands for a code (ukrainian.Unit).
func unitOf(code string) (unit, bool) {
	u, known := units[cmp.Or(ukrainian.Unit(code), code)]
	return u, known
}

// sign returns a unit that is written in the same way after every number.
func sign(uk, en string) unit { return unit{noun: noun{forms{uk, uk, uk}, forms{en, "", en}}} }

// afterText returns the name of a unit in the form that follows the given number. The number is given as text.
func (u unit) afterText(l Lang, number string) string {
	n, err := strconv.ParseInt(strings.TrimPrefix(number, "-"), 10, 64)
	switch {
	case err == nil:
		return u.after(l, n)
	case l == English:
		return u.en.many
	}
	return cmp.Or(u.fraction, u.uk.few)
}

// mediaNames has short names of common types of files. Other types are shown unchanged.
var mediaNames = map[string]string{
	"application/pdf": "PDF", "application/msword": "DOC", "application/vnd.ms-excel": "XLS",
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document":   "DOCX",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         "XLSX",
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": "PPTX",
	"application/vnd.oasis.opendocument.text":                                   "ODT",
	"application/vnd.oasis.opendocument.spreadsheet":                            "ODS",
	"application/vnd.oasis.opendocument.presentation":                           "ODP",
	"application/zip": "ZIP", "application/pkcs7-signature": "P7S", "text/plain": "TXT",
	"image/jpeg": "JPEG", "image/png": "PNG", "image/webp": "WebP", "image/gif": "GIF", "image/tiff": "TIFF",
}

func mediaName(media string) string { return mediaNames[cmp.Or(filelink.PictureType(media), media)] }

func init() {
	for key, said := range assetfields.Words {
		words[key] = text{said[0], said[1]}
	}
}

// word returns the name of a value of a list in a language, or the value itself if it has no name.
func word(l Lang, path, value string) string {
	if t, ok := words[path+"/"+value]; ok {
		return t.in(l)
	}
	_, name, nested := cutLast(path)
	if t, ok := words[name+"/"+value]; ok && (!nested || name != "status") {
		return t.in(l)
	}
	return value
}

// cutLast splits a path at its last dot.
func cutLast(path string) (before, last string, cut bool) {
	at := strings.LastIndexByte(path, '.')
	if at < 0 {
		return "", path, false
	}
	return path[:at], path[at+1:], true
}

// languages maps the endings of names of fields to the endings that the labels of these fields get.
var languages = map[string]text{
	"_en": {" (англійською)", " in English"}, "_ru": {" (російською)", " in Russian"},
}

// fieldOf returns the field with a name, and the language of its text. The language is "" if the name has no ending
// for a language.
func fieldOf(name string) (f field, lang string) {
	for ending := range languages {
		if base, cut := strings.CutSuffix(name, ending); cut {
			f, _ = fieldOf(base)
			return f, ending[1:]
		}
	}
	f, known := fields[name]
	if !known {
		f.name = text{name, name}
	}
	if f.form == "" || f.form == "prose" {
		lang = string(Ukrainian)
	}
	return f, lang
}

// label returns the name of a field for people, in a language.
func label(l Lang, name string) string {
	f, _ := fieldOf(name)
	said := f.name.in(l)
	if len(name) > 3 {
		said += languages[name[len(name)-3:]].in(l)
	}
	return said
}

// part is a text on a page: either a value of the record, or a mark between two values.
type part struct {
	Text    string
	Path    string       // path of the value in the record; "": the part is a mark
	Value   string       // the value in the record, if Text differs from it
	Href    template.URL // only with schemes that this package chooses; "": no link
	Foreign bool         // the link leads out of the registry
	Machine string       // value of <time datetime>
	Lang    string       // language of the text, if it is not the page's
	Code    bool
	Spans   []span // parts of Text, if it contains links
}

// newPart returns the part that shows a value. The value must have a text.
func newPart(l Lang, path string, v *value) part {
	_, name, _ := cutLast(path)
	f, lang := fieldOf(name)
	p := part{Text: v.text, Path: path}
	if v.kind == jsontext.KindNumber {
		p.Text = decimal(l, v.text)
		lang = ""
	}
	switch f.form {
	case "time":
		if at := timeOf(client.Timestamp(v.text)); !at.IsZero() {
			p.Text, p.Machine = moment(l, at), at.UTC().Format(time.RFC3339Nano)
		}
	case "day":
		if at := timeOf(client.Timestamp(v.text)); !at.IsZero() {
			p.Text, p.Machine = day(l, at), at.Format(time.DateOnly)
		}
	case "word":
		p.Text = word(l, withoutIndexes(path), v.text)
	case "unit":
		if u, known := unitOf(v.text); known {
			p.Text = u.after(l, 1)
		}
	case "prose":
		p.Spans = addresses(v.text)
	case "media":
		p.Text = cmp.Or(mediaName(strings.ToLower(v.text)), v.text)
	case "bytes":
		p.Text = cmp.Or(size(l, v.text), p.Text)
	case "link":
		p.Href, p.Foreign = safeLink(v.text), true
	case "mail":
		if a, err := mail.ParseAddress(v.text); err == nil && a.Address == v.text {
			p.Href = template.URL("mailto:" + url.PathEscape(v.text))
		}
	case "telephone":
		if p.Href = phoneLink(v.text); p.Href == "" {
			p.Spans = telephones(v.text)
		}
	case "code":
		p.Code = true
	}
	if p.Text != v.text {
		p.Value = v.text
	}
	if p.Text == v.text && lang != string(l) && !isASCII(v.text) {
		p.Lang = lang
	}
	return p
}

// isASCII reports whether a text has only ASCII characters. Such a text, for example a number or a code, reads
// the same in any language.
func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

// withoutIndexes returns the last two names of a path: items.0.unit.code becomes unit.code.
func withoutIndexes(path string) string {
	var names []string
	for name := range strings.SplitSeq(path, ".") {
		if strings.Trim(name, "0123456789") != "" {
			names = append(names, name)
		}
	}
	last := names[max(0, len(names)-2):]
	return strings.Join(last, ".")
}

// safeLink returns an address if a page may link to it: http or https with a host. For any other address it
// returns "".
func safeLink(address string) template.URL {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return ""
	}
	return template.URL(u.String())
}

// phoneLink returns a link that calls a telephone number. The number is in the international form, or in the form
// within Ukraine, such as 044 000-00-00. For any other text it returns "". The result is marked as safe, because
// html/template does not accept the scheme tel by itself.
func phoneLink(number string) template.URL {
	digits := strings.NewReplacer(" ", "", "\u00a0", "", "-", "", "\u2010", "", "\u2011", "", "\u2013", "",
		"(", "", ")", "", ".", "").Replace(number)
	rest, international := strings.CutPrefix(digits, "+")
	if strings.Trim(rest, "0123456789") != "" {
		return ""
	}
	switch {
	case international && len(rest) >= 7 && len(rest) <= 15:
	case strings.HasPrefix(rest, "380") && len(rest) == 12:
	case strings.HasPrefix(rest, "0") && len(rest) == 10:
		rest = "38" + rest
	default:
		return ""
	}
	return template.URL("tel:+" + rest)
}
