package asset

import "regexp"

// Kinds of text with a form of their own. The empty string passes.
var (
	webAddress      = textThat(urlForm, notURL)
	documentAddress = textThat(documentForm, notURL)
	emailAddress    = textThat(emailForm, "Not a well formed email address.")
	mediaType       = textThat(mediaForm, noMatch)
)

const notURL = "Not a well formed URL."

// The forms, in the syntax that ECMA-262 and Go share: the description of the
// fields quotes them. Host names may have letters of any script.
var (
	urlForm      = regexp.MustCompile(`^[hH][tT][tT][pP][sS]?://(?:` + publicHost + `)` + afterHost + `$`)
	documentForm = regexp.MustCompile(`^[hH][tT][tT][pP][sS]?://(?:` + publicHost + `|` + innerHost + `)` + afterHost + `$`)

	emailForm = regexp.MustCompile(`^[^@\s\p{C}]{1,64}@` + domain + `$`)
	mediaForm = regexp.MustCompile(`^[a-zA-Z0-9!#$&^_.+-]+/[a-zA-Z0-9!#$&^_.+-]+$`)
)

// The parts of the forms. Documents may also lie on an inner host, one of a
// private network: a name without a dot, or an IPv6 address.
const (
	domain     = `(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.)+[\p{L}][\p{L}\p{N}-]{0,61}[\p{L}\p{N}]`
	publicHost = domain + `\.?` +
		`|[lL][oO][cC][aA][lL][hH][oO][sS][tT]` +
		`|(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)`
	innerHost = `(?:\p{N}[\p{L}\p{N}_-]{0,31})?\p{L}(?:[\p{L}\p{N}_-]{0,61}[\p{L}\p{N}])?|\[[0-9a-fA-F:.]{2,45}\]`
	afterHost = `(?::\d{1,5})?(?:[/?#][^\s\p{C}]*)?`
)
