package command

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"asset-registry/shared/durable"
	"asset-registry/shared/fault"
)

// Words returns an error as one line for a person. It puts the errors of Go and of libraries into plain words,
// names a fault only once, and replaces control characters.
func Words(err error) string {
	var faults []string
	text := fromVariable.ReplaceAllString(inWords(err.Error(), err), "(from the environment, $1)")
	for line := range strings.Lines(text) {
		if line = Plain(strings.TrimSpace(line)); line != "" && !slices.Contains(faults, line) {
			faults = append(faults, line)
		}
	}
	return WithoutPasswords(strings.Join(faults, "; "))
}

// credentials matches the name and the password in a URL. A password may hold any character.
var credentials = regexp.MustCompile(`://[^"\s]*@`)

// WithoutPasswords replaces the names and passwords in all URLs of a text.
func WithoutPasswords(text string) string { return credentials.ReplaceAllString(text, "://***@") }

// inWords finds the causes of an error for which plain words exist. In the text of the error, it replaces the text of
// each of these causes by the plain words.
func inWords(text string, err error) string {
	if words := wordsOf(err); words != "" {
		return strings.Replace(text, err.Error(), words, 1)
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if cause := e.Unwrap(); cause != nil {
			return inWords(text, cause)
		}
	case interface{ Unwrap() []error }:
		causes := e.Unwrap()
		for i, cause := range causes {
			if _, forClients := cause.(*fault.Error); forClients && i < len(causes)-1 {
				// Leave this cause out: the next one has the reason.
				text = strings.Replace(text, cause.Error()+": ", "", 1)
			}
			text = inWords(text, cause)
		}
	}
	return text
}

// fromVariable matches the text by which kong says that a value came from an environment variable.
var fromVariable = regexp.MustCompile(`\(from envar (\w+)=".*"\)`)

// serverSelection matches the driver's error while no server of MongoDB answers. The error quotes all that the
// driver knows.
var serverSelection = regexp.MustCompile(`server selection (error|timeout).*`)

// prefix matches what packages of Go put in front of their errors.
var prefix = regexp.MustCompile(`^(tls|x509|http|net/http|json|jsontext|archive/tar|time|slog|csv|pem): `)

// wordsOf returns one error in plain words, or "" if it is not an error of Go or of a library.
func wordsOf(err error) string {
	if selection := serverSelection.FindString(err.Error()); selection != "" {
		return strings.Replace(err.Error(), selection, "no server of MongoDB answers", 1)
	}
	switch e := err.(type) {
	case *fault.Error:
		var says []string
		for _, d := range e.Details {
			says = append(says, strings.TrimSuffix(d.Description, "."))
		}
		return strings.Join(says, "; ")
	case *url.Error:
		address, malformed := url.Parse(e.URL)
		if malformed != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
			return "an address must be such as https://HOST or http://HOST:PORT" // not quoted: it may have a password
		}
		return fmt.Sprintf("%s://%s does not answer: %s", address.Scheme, address.Host, silence(e.Err))
	case *net.OpError:
		return network(e)
	case *net.AddrError:
		if e.Err == "invalid port" {
			return badPort(e.Addr)
		}
		return fmt.Sprintf("%q must be an address such as 127.0.0.1:8080", e.Addr)
	case *net.DNSError:
		return "the name " + e.Name + " has no address"
	case *fs.PathError:
		return ofFile(e.Path, e.Err)
	case *os.LinkError:
		return ofFile(e.New, e.Err)
	case *os.SyscallError:
		return ofSystem(e.Err)
	case syscall.Errno:
		return ofSystem(e)
	case *strconv.NumError:
		return fmt.Sprintf("%q is not a number of the right form and size", e.Num)
	case *json.SyntaxError:
		return fmt.Sprintf("it breaks off or has a fault near byte %d", e.Offset)
	case *json.UnmarshalTypeError:
		return fmt.Sprintf("a JSON value of the wrong kind (%s) stands near byte %d", e.Value, e.Offset)
	}
	switch {
	case err == io.EOF, err == io.ErrUnexpectedEOF:
		return "it ends too early"
	case err == context.Canceled, err == context.DeadlineExceeded:
		return silence(err)
	}
	if found := prefix.FindString(err.Error()); found != "" && errors.Unwrap(err) == nil {
		return err.Error()[len(found):]
	}
	return ""
}

func badPort(text string) string {
	return fmt.Sprintf("%q is not a port: write a number up to 65535", text)
}

// network returns an error of a connection in plain words.
func network(e *net.OpError) string {
	address := ""
	if e.Addr != nil {
		address = e.Addr.String()
	}
	lookup, isLookup := errors.AsType[*net.DNSError](e)
	malformed, isMalformed := errors.AsType[*net.AddrError](e)
	switch {
	case isMalformed:
		return wordsOf(malformed)
	case isLookup && strings.HasPrefix(lookup.Name, e.Net+"/"):
		return badPort(strings.TrimPrefix(lookup.Name, e.Net+"/"))
	case isLookup:
		return wordsOf(lookup)
	case e.Op == "listen":
		return fmt.Sprintf("the program cannot listen on %s: %s", address, ofSystem(e.Err))
	}
	return fmt.Sprintf("%s does not answer: %s", address, silence(e.Err))
}

// silence says why a server does not answer.
func silence(cause error) string {
	var (
		lookup    *net.DNSError
		untrusted *tls.CertificateVerificationError
		plainHTTP tls.RecordHeaderError
		slow      net.Error
	)
	switch {
	case errors.Is(cause, syscall.ECONNREFUSED):
		return "nothing listens there"
	case errors.As(cause, &lookup):
		return "the name " + lookup.Name + " has no address"
	case errors.As(cause, &untrusted):
		return "its certificate is not valid for the address"
	case errors.As(cause, &plainHTTP), errors.Is(cause, http.ErrSchemeMismatch):
		return "it speaks HTTP where HTTPS is asked for, or the reverse"
	case errors.Is(cause, context.Canceled):
		return "the command was interrupted"
	case errors.Is(cause, context.DeadlineExceeded), errors.As(cause, &slow) && slow.Timeout():
		return "no answer came in time"
	}
	return "the connection fails"
}

// unfinished is the end of the name of a file that is not complete yet.
var unfinished = regexp.MustCompile(regexp.QuoteMeta(durable.Unfinished) + `[A-Z\d]*$`)

// ofFile says what is wrong with a file.
func ofFile(path string, cause error) string {
	return fmt.Sprintf("%q: %s", unfinished.ReplaceAllString(path, ""), ofSystem(cause))
}

// ofSystem returns an error of the operating system in plain words.
func ofSystem(cause error) string {
	for _, known := range []struct {
		cause error
		words string
	}{
		{syscall.ENOENT, "there is no such file or folder"},
		{syscall.EEXIST, "it is there already: name another one"},
		{syscall.ENOTEMPTY, "it is there already, and not empty: name another one"},
		{syscall.EISDIR, "it is a folder, not a file"},
		{syscall.ENOTDIR, "it is not a folder, or a part of its path is no folder"},
		{fs.ErrPermission, "the system does not permit it to this user"},
		{syscall.ENOSPC, "the disk is full"},
		{syscall.EROFS, "the disk is read-only"},
		{syscall.EADDRINUSE, "another program listens there: end it, or name another address"},
		{syscall.EADDRNOTAVAIL, "this machine does not have the address"},
		{fs.ErrNotExist, "there is no such file or folder"},
		{fs.ErrExist, "it is there already: name another one"},
	} {
		if errors.Is(cause, known.cause) {
			return known.words
		}
	}
	return cause.Error()
}

// IsControl reports whether a terminal may interpret a character as a command: control characters (C0, DEL,
// C1), ends of lines, and characters that change the direction of text.
func IsControl(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// Plain replaces the characters for which IsControl returns true, so that a terminal does not interpret them.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if IsControl(r) {
			return '?'
		}
		return r
	}, text)
}
