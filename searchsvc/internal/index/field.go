package index

import (
	index "github.com/blevesearch/bleve_index_api"

	"asset-registry/shared/ukrainian"
)

// Names of the fields of the index besides the fields of search.Properties. They are short, because each segment
// stores them.
const (
	wordField      = "w"   // words of the whole asset
	titleField     = "t"   // words of the titles
	exactField     = "e"   // words of the titles in the form in which they are written
	pairField      = "p"   // pairs of neighbouring words in titles (pairOf)
	lengthField    = "n"   // lengthTerm of the title
	placeField     = "pl"  // words that are the name of an item's place
	custodianField = "kb"  // nameTerms of the custodian
	positionField  = "at"  // numberTerm of the position
	publishedField = "pub" // numberTerm of the publication
	quantityField  = "q"   // floatTerm of each quantity
	amountField    = "qa"  // amount.term of each item that has an amount
	kindField      = "qk"  // for each code and measure: amount.term of the sum, followed by the code
	idField        = "_id" // scorch demands this name
	hitField       = "j"   // the JSON of a hit; only stored
	pictureField   = "f"   // asset.pictures; only stored, and only if the asset has a picture
)

// layout identifies the fields of the index and the meaning of its state. An index of another layout, or with keys of
// other rules, is built anew. A test computes the value from samples; a change that they do not show needs another one.
const layout = "e9882f713b5169c1"

const indexFormat = layout + " " + ukrainian.Rules

const (
	wholeLevel    = 8      // digits of a whole code
	nameSeparator = "\x00" // between a value and its name
)

// entry is an asset as scorch indexes it. It implements index.Document. Analyze does the work, because scorch
// calls it on several goroutines.
type entry struct {
	id     string
	hit    []byte
	terms  map[string][]string
	fields []index.Field
}

func newEntry(id string, terms map[string][]string, hit []byte, picture string) *entry {
	e := &entry{id: id, hit: hit, terms: terms}
	e.fields = append(e.fields, &field{name: hitField, value: hit, options: index.StoreField})
	if picture != "" {
		e.fields = append(e.fields, &field{name: pictureField, value: []byte(picture), options: index.StoreField})
	}
	for name, list := range terms {
		e.fields = append(e.fields, &field{name: name, terms: list, options: indexed})
	}
	return e
}

// ID implements index.Document.
func (e *entry) ID() string { return e.id }

// Size implements index.Document.
func (e *entry) Size() int { return len(e.id) + len(e.hit) }

// VisitFields implements index.Document.
func (e *entry) VisitFields(visit index.FieldVisitor) {
	for _, f := range e.fields {
		visit(f)
	}
}

// VisitComposite implements index.Document.
func (e *entry) VisitComposite(index.CompositeFieldVisitor) {}

// HasComposite implements index.Document.
func (e *entry) HasComposite() bool { return false }

// NumPlainTextBytes implements index.Document.
func (e *entry) NumPlainTextBytes() uint64 { return uint64(len(e.hit)) }

// AddIDField implements index.Document.
func (e *entry) AddIDField() {
	id := &field{name: idField, terms: []string{e.id}, value: []byte(e.id), options: indexed | index.StoreField}
	e.fields = append(e.fields, id)
}

// StoredFieldsBytes implements index.Document.
func (e *entry) StoredFieldsBytes() uint64 { return uint64(len(e.hit)) }

// Indexed implements index.Document.
func (e *entry) Indexed() bool { return true }

// indexed are the options of a field with terms.
const indexed = index.IndexField | index.SkipFreqNorm

// field has terms, or a value that is kept and not searched, or both. It implements index.Field.
type field struct {
	name        string
	terms       []string
	value       []byte
	options     index.FieldIndexingOptions
	frequencies index.TokenFrequencies
}

// Name implements index.Field.
func (f *field) Name() string { return f.name }

// Value implements index.Field.
func (f *field) Value() []byte { return f.value }

// ArrayPositions implements index.Field.
func (f *field) ArrayPositions() []uint64 { return nil }

// EncodedFieldType implements index.Field.
func (f *field) EncodedFieldType() byte { return 't' }

// Analyze implements index.Field.
func (f *field) Analyze() {
	f.frequencies = make(index.TokenFrequencies, len(f.terms))
	freqs := make([]index.TokenFreq, len(f.terms))
	for i, term := range f.terms {
		freqs[i].Term = []byte(term)
		freqs[i].SetFrequency(1)
		f.frequencies[term] = &freqs[i]
	}
}

// Options implements index.Field.
func (f *field) Options() index.FieldIndexingOptions { return f.options }

// AnalyzedLength implements index.Field.
func (f *field) AnalyzedLength() int { return min(1, len(f.terms)) }

// AnalyzedTokenFrequencies implements index.Field.
func (f *field) AnalyzedTokenFrequencies() index.TokenFrequencies { return f.frequencies }

// NumPlainTextBytes implements index.Field.
func (f *field) NumPlainTextBytes() uint64 { return 0 }
