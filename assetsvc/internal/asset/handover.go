package asset

import (
	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
)

// reason accepts a string that a person can read, and nothing else in place of a string.
var reason = plain{form: Form{Sent: schema{"type": "string"}},
	take: func(w *walk, path string, _, sent record.Value) record.Value {
		s, ok := sent.(string)
		if !ok || !fault.SaysSomething(s) {
			w.wrong(path, "This must be a string that says why.")
		}
		return s
	}}.upTo(codeLength)

// ParseRecovery returns the reason of a recovery. Its error is a fault of kind Invalid that lists everything
// wrong with the sent body.
func ParseRecovery(sent record.Object) (reason string, err error) {
	w := &walk{}
	r, _ := recoveryModel.convert(w, "", nil, sent).(record.Object)
	return r.Text("reason"), w.fault()
}

// ParseHandover returns the id of a transfer and the transfer token of an asset. Its error is a fault of kind
// Invalid that lists everything wrong with the sent body.
func ParseHandover(sent record.Object) (transfer, token string, err error) {
	w := &walk{}
	h, _ := handoverModel.convert(w, "", nil, sent).(record.Object)
	return h.Text("id"), h.Text("transfer"), w.fault()
}

// CheckTransfer returns a fault of kind Invalid if the sent body has a field that a transfer does not have, or a
// field of the wrong type.
func CheckTransfer(sent record.Object) error {
	w := &walk{}
	transferModel.convert(w, "", nil, sent)
	return w.fault()
}
