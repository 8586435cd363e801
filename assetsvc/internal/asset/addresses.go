package asset

import "regexp"

// Kinds of text that must match a form. All of them accept the empty string.
var (
	webAddress      = textThat(urlForm, shownURL, notURL).upTo(addressLength)
	documentAddress = textThat(documentForm, shownURL, notURL).upTo(addressLength)
	emailAddress    = textThat(emailForm, shownEmail, "Not a well formed email address.").upTo(codeLength)
	mediaType       = textThat(mediaForm, mediaForm.String(), noMatch).upTo(codeLength)
)

// The forms that the description of the fields shows. They accept more than urlForm and emailForm, which use
// classes of letters that many validators do not know.
const (
	shownURL   = `^[hH][tT][tT][pP][sS]?://[^\s/?#]+([/?#]\S*)?$`
	shownEmail = `^[^@\s]+@[^@\s]+\.[^@\s]+$`
)

const notURL = "Not a well formed URL."

// The forms that the rules use. They list letters in both cases, because (?i:s) would also accept ſ. Host names
// may have letters of any script.
var (
	urlForm      = regexp.MustCompile(`^` + web + `(?:` + publicHost + `)` + afterHost + `$`)
	documentForm = regexp.MustCompile(`^` + web + `(?:` + publicHost + `|` + innerHost + `)` + afterHost + `$`)

	emailForm = regexp.MustCompile(`^[^@\s\pC]{1,64}@` + domain + `$`)
	mediaForm = regexp.MustCompile(`^[a-zA-Z0-9!#$&^_.+-]+/[a-zA-Z0-9!#$&^_.+-]+$`)
)

// Parts of the forms. The address of a document may also have a host in a private network (innerHost): a name
// without a dot, or an IPv6 address.
const (
	web        = `[hH][tT][tT][pP][sS]?://`
	domain     = `(?:[\pL\pN](?:[\pL\pN-]{0,61}[\pL\pN])?\.)+[\pL][\pL\pN-]{0,61}[\pL\pN]`
	publicHost = domain + `\.?` +
		`|[lL][oO][cC][aA][lL][hH][oO][sS][tT]` +
		`|(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)`
	innerHost = `(?:\pN[\pL\pN_-]{0,31})?\pL(?:[\pL\pN_-]{0,61}[\pL\pN])?|\[[0-9a-fA-F:.]{2,45}\]`
	afterHost = `(?::\d{1,5})?(?:[/?#][^\s\pC]*)?`
)
