package record

import (
	"bytes"
	"iter"
)

// Skim iterates over the members of a stored JSON object, or over the elements of a list. It parses nothing and copies
// nothing: a name has its escape sequences and no quotes, an element has no name, and a value is its JSON text. The
// text must be JSON; in another text Skim ends early. A value that is neither an object nor a list has no elements.
func Skim(text []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		i := blank(text, 0)
		if i == len(text) || text[i] != '{' && text[i] != '[' {
			return
		}
		hasNames := text[i] == '{'
		for i = blank(text, i+1); i < len(text) && text[i] != '}' && text[i] != ']'; {
			var name []byte
			if hasNames {
				end := skip(text, i)
				colon := blank(text, end)
				if text[i] != '"' || colon == len(text) || text[colon] != ':' {
					return
				}
				name, i = text[i+1:end-1], blank(text, colon+1)
			}
			end := skip(text, i)
			if end == i || !yield(name, text[i:end]) {
				return
			}
			if i = blank(text, end); i == len(text) || text[i] != ',' {
				return
			}
			i = blank(text, i+1)
		}
	}
}

// blank returns the index of the first character that is no white space, from i on.
func blank(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	return i
}

// skip returns the index behind the JSON value that begins at i.
func skip(text []byte, i int) int {
	for depth := 0; i < len(text); {
		switch text[i] {
		case '"':
			i = skipString(text, i)
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
			i++
		case ',', ':', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
			i++
			continue
		default:
			i++
			continue
		}
		if depth == 0 {
			return i
		}
	}
	return len(text)
}

// skipString returns the index behind the JSON string that begins at i.
func skipString(text []byte, i int) int {
	for i++; ; i++ {
		length := bytes.IndexByte(text[i:], '"')
		if length < 0 {
			return len(text)
		}
		i += length
		slashes := 0
		for text[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
}
