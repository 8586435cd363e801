package asset

import "asset-registry/assetsvc/internal/record"

// handoverModel is what a broker sends to take an asset over (contract, section 6.4).
var handoverModel = model{name: "Ownership", fields: []field{
	{name: "id", of: text, required: true},
	{name: "transfer", of: secret, required: true},
}}

// transferModel is what a broker may send to make a transfer: what the service
// shows of one, which is ignored (contract, section 3).
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

// CheckTransfer returns a fault of kind Invalid for what no transfer has.
func CheckTransfer(sent record.Object) error {
	w := &walk{}
	transferModel.convert(w, "", nil, sent)
	return w.fault()
}
