package client

// The methods of this file implement json.Marshaler and json.Unmarshaler. A field of the JSON that the struct does
// not declare is kept in the struct's field Unknown.

func (v *Asset) UnmarshalJSON(text []byte) error {
	type plain Asset
	return decode(text, (*plain)(v), &v.Unknown)
}

func (v Asset) MarshalJSON() ([]byte, error) {
	type plain Asset
	return encode(plain(v), v.Unknown)
}

func (v *Item) UnmarshalJSON(text []byte) error {
	type plain Item
	return decode(text, (*plain)(v), &v.Unknown)
}

func (v Item) MarshalJSON() ([]byte, error) {
	type plain Item
	return encode(plain(v), v.Unknown)
}

func (v *Classification) UnmarshalJSON(text []byte) error {
	type plain Classification
	return decode(text, (*plain)(v), &v.Unknown)
}

func (v Classification) MarshalJSON() ([]byte, error) {
	type plain Classification
	return encode(plain(v), v.Unknown)
}

func (v *Unit) UnmarshalJSON(text []byte) error {
	type plain Unit
	return decode(text, (*plain)(v), &v.Unknown)
}

func (v Unit) MarshalJSON() ([]byte, error) {
	type plain Unit
	return encode(plain(v), v.Unknown)
}

func (v *Address) UnmarshalJSON(text []byte) error {
	type plain Address
	return decode(text, (*plain)(v), &v.Unknown)
}

func (v Address) MarshalJSON() ([]byte, error) {
	type plain Address
	return encode(plain(v), v.Unknown)
}

func (v *Location) UnmarshalJSON(text []byte) error {
	type plain Location
	return decode(text, (*plain)(v), &v.Unknown)
}

func (v Location) MarshalJSON() ([]byte, error) {
	type plain Location
	return encode(plain(v), v.Unknown)
}

func (v *RegistrationDetails) UnmarshalJSON(text []byte) error {
	type plain RegistrationDetails
	return decode(text, (*plain)(v), &v.Unknown)
}

func (v RegistrationDetails) MarshalJSON() ([]byte, error) {
	type plain RegistrationDetails
	return encode(plain(v), v.Unknown)
}

func (v *Decision) UnmarshalJSON(text []byte) error {
	type plain Decision
	return decode(text, (*plain)(v), &v.Unknown)
}

func (v Decision) MarshalJSON() ([]byte, error) {
	type plain Decision
	return encode(plain(v), v.Unknown)
}

func (v *Document) UnmarshalJSON(text []byte) error {
	type plain Document
	return decode(text, (*plain)(v), &v.Unknown)
}

func (v Document) MarshalJSON() ([]byte, error) {
	type plain Document
	return encode(plain(v), v.Unknown)
}

func (v *Organisation) UnmarshalJSON(text []byte) error {
	type plain Organisation
	return decode(text, (*plain)(v), &v.Unknown)
}

func (v Organisation) MarshalJSON() ([]byte, error) {
	type plain Organisation
	return encode(plain(v), v.Unknown)
}

func (v *Identifier) UnmarshalJSON(text []byte) error {
	type plain Identifier
	return decode(text, (*plain)(v), &v.Unknown)
}

func (v Identifier) MarshalJSON() ([]byte, error) {
	type plain Identifier
	return encode(plain(v), v.Unknown)
}

func (v *Contact) UnmarshalJSON(text []byte) error {
	type plain Contact
	return decode(text, (*plain)(v), &v.Unknown)
}

func (v Contact) MarshalJSON() ([]byte, error) {
	type plain Contact
	return encode(plain(v), v.Unknown)
}

func (v *Period) UnmarshalJSON(text []byte) error {
	type plain Period
	return decode(text, (*plain)(v), &v.Unknown)
}

func (v Period) MarshalJSON() ([]byte, error) {
	type plain Period
	return encode(plain(v), v.Unknown)
}

func (v *RelatedProcess) UnmarshalJSON(text []byte) error {
	type plain RelatedProcess
	return decode(text, (*plain)(v), &v.Unknown)
}

func (v RelatedProcess) MarshalJSON() ([]byte, error) {
	type plain RelatedProcess
	return encode(plain(v), v.Unknown)
}
