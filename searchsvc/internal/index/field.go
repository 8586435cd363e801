package index

import (
	index "github.com/blevesearch/bleve_index_api"
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
	e.fields = append(e.fields, &stored{hitField, hit})
	if picture != "" {
		e.fields = append(e.fields, &stored{pictureField, []byte(picture)})
	}
	for name, list := range terms {
		e.fields = append(e.fields, &indexed{name: name, terms: list})
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
	e.fields = append(e.fields, &indexed{name: idField, terms: []string{e.id}, stored: true})
}

// StoredFieldsBytes implements index.Document.
func (e *entry) StoredFieldsBytes() uint64 { return uint64(len(e.hit)) }

// Indexed implements index.Document.
func (e *entry) Indexed() bool { return true }

// indexed is a field with terms. It implements index.Field.
type indexed struct {
	name        string
	terms       []string
	stored      bool // the first term is also stored
	frequencies index.TokenFrequencies
}

// Name implements index.Field.
func (f *indexed) Name() string { return f.name }

// Value implements index.Field.
func (f *indexed) Value() []byte { return []byte(f.terms[0]) }

// ArrayPositions implements index.Field.
func (f *indexed) ArrayPositions() []uint64 { return nil }

// EncodedFieldType implements index.Field.
func (f *indexed) EncodedFieldType() byte { return 't' }

// Analyze implements index.Field.
func (f *indexed) Analyze() {
	f.frequencies = make(index.TokenFrequencies, len(f.terms))
	freqs := make([]index.TokenFreq, len(f.terms))
	for i, term := range f.terms {
		freqs[i].Term = []byte(term)
		freqs[i].SetFrequency(1)
		f.frequencies[term] = &freqs[i]
	}
}

// Options implements index.Field.
func (f *indexed) Options() index.FieldIndexingOptions {
	options := index.IndexField | index.SkipFreqNorm
	if f.stored {
		options |= index.StoreField
	}
	return options
}

// AnalyzedLength implements index.Field.
func (f *indexed) AnalyzedLength() int { return 1 }

// AnalyzedTokenFrequencies implements index.Field.
func (f *indexed) AnalyzedTokenFrequencies() index.TokenFrequencies { return f.frequencies }

// NumPlainTextBytes implements index.Field.
func (f *indexed) NumPlainTextBytes() uint64 { return 0 }

// stored is a field that is kept and not searched. It implements index.Field.
type stored struct {
	name  string
	value []byte
}

// Name implements index.Field.
func (f *stored) Name() string { return f.name }

// Value implements index.Field.
func (f *stored) Value() []byte { return f.value }

// ArrayPositions implements index.Field.
func (f *stored) ArrayPositions() []uint64 { return nil }

// EncodedFieldType implements index.Field.
func (f *stored) EncodedFieldType() byte { return 't' }

// Analyze implements index.Field.
func (f *stored) Analyze() {}

// Options implements index.Field.
func (f *stored) Options() index.FieldIndexingOptions { return index.StoreField }

// AnalyzedLength implements index.Field.
func (f *stored) AnalyzedLength() int { return 0 }

// AnalyzedTokenFrequencies implements index.Field.
func (f *stored) AnalyzedTokenFrequencies() index.TokenFrequencies { return nil }

// NumPlainTextBytes implements index.Field.
func (f *stored) NumPlainTextBytes() uint64 { return 0 }
