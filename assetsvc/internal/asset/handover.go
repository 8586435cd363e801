package asset

import "asset-registry/assetsvc/internal/record"

// handoverModel holds the fields by which a broker takes an asset over.
var handoverModel = model{name: "Ownership", fields: []field{
	{name: "id", of: text, required: true},
	{name: "transfer", of: secret, required: true},
}}

// transferModel holds the fields of a transfer. A client may send them back; the
// service ignores them.
var transferModel = model{name: "Transfer", fields: []field{
	{name: "id", of: dropped(text)},
	{name: "date", of: dropped(text)},
	{name: "usedFor", of: dropped(text)},
}}

// ParseHandover returns the id of a transfer and the transfer token of an asset,
// or a fault of kind Invalid that tells everything wrong with what was sent.
func ParseHandover(sent record.Object) (transfer, token string, err error) {
	w := &walk{}
	h, _ := handoverModel.convert(w, "", nil, sent).(record.Object)
	return h.Text("id"), h.Text("transfer"), w.fault()
}

// CheckTransfer returns a fault of kind Invalid for fields that a transfer does not have.
func CheckTransfer(sent record.Object) error {
	w := &walk{}
	transferModel.convert(w, "", nil, sent)
	return w.fault()
}
