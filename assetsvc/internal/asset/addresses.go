package asset

import "regexp"

// Kinds of text with a form of their own. The empty string passes.
var (
	webAddress      = textThat(urlForm.MatchString, notURL)
	documentAddress = textThat(documentForm.MatchString, notURL)
	emailAddress    = textThat(emailForm.MatchString, "Not a well formed email address.")
	mediaType       = textThat(mediaForm.MatchString, noMatch)
)

const notURL = "Not a well formed URL."

// The forms. Host names may have letters of any script.
var (
	urlForm      = regexp.MustCompile(`^(?i:https?)://(?:` + publicHost + `)` + afterHost + `$`)
	documentForm = regexp.MustCompile(`^(?i:https?)://(?:` + publicHost + `|` + innerHost + `)` + afterHost + `$`)

	emailForm = regexp.MustCompile(`^[^@\s\pC]{1,64}@` + domain + `$`)
	mediaForm = regexp.MustCompile(`^[a-zA-Z0-9!#$&^_.+-]+/[a-zA-Z0-9!#$&^_.+-]+$`)
)

// The parts of the forms. Documents may also lie on an inner host, one of a
// private network: a name without a dot, or an IPv6 address.
const (
	domain     = `(?:[\pL\pN](?:[\pL\pN-]{0,61}[\pL\pN])?\.)+[\pL][\pL\pN-]{0,61}[\pL\pN]`
	publicHost = domain + `\.?` +
		`|(?i:localhost)` +
		`|(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)`
	innerHost = `(?:\pN[\pL\pN_-]{0,31})?\pL(?:[\pL\pN_-]{0,61}[\pL\pN])?|\[[0-9a-fA-F:.]{2,45}\]`
	afterHost = `(?::\d{1,5})?(?:[/?#][^\s\pC]*)?`
)
