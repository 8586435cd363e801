package asset

import "asset-registry/assetsvc/internal/record"

// handoverModel is the body by which a broker takes over an asset
// (docs/contract.md, "Ownership").
var handoverModel = model{name: "Ownership", fields: []field{
	{name: "id", of: code, required: true},
	{name: "transfer", of: secret, required: true},
}}

// transferModel is a transfer (docs/contract.md, "Transfers"). Clients may send
// its fields back; the service ignores their values.
var transferModel = model{name: "Transfer", fields: []field{
	{name: "id", of: dropped{of: text}},
	{name: "date", of: dropped{of: text}},
	{name: "usedFor", of: dropped{of: text}},
}}

// recoveryModel is the body by which an administrator gives an asset new tokens
// (docs/contract.md, "Recovery").
var recoveryModel = model{name: "Recovery", fields: []field{
	{name: "reason", of: code, required: true},
}}

// ParseRecovery returns the reason of a recovery. It returns a fault of kind Invalid with all
// that is wrong with sent.
func ParseRecovery(sent record.Object) (reason string, err error) {
	w := &walk{}
	r, _ := recoveryModel.convert(w, "", nil, sent).(record.Object)
	return r.Text("reason"), w.fault()
}

// ParseHandover returns the id of a transfer and the transfer token of an asset.
// It returns a fault of kind Invalid with all that is wrong with sent.
func ParseHandover(sent record.Object) (transfer, token string, err error) {
	w := &walk{}
	h, _ := handoverModel.convert(w, "", nil, sent).(record.Object)
	return h.Text("id"), h.Text("transfer"), w.fault()
}

// CheckTransfer returns a fault of kind Invalid if sent has a field that a
// transfer does not have, or a field of the wrong type.
func CheckTransfer(sent record.Object) error {
	w := &walk{}
	transferModel.convert(w, "", nil, sent)
	return w.fault()
}
