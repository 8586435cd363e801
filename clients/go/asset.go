package client

// Status is a state of an asset (docs/contract.md, "States").
type Status string

// The states of an asset.
const (
	Draft        Status = "draft"
	Pending      Status = "pending" // published
	Verification Status = "verification"
	Active       Status = "active"
	Complete     Status = "complete"
	Deleted      Status = "deleted"
)

// Mode separates test assets from real ones.
type Mode string

// The modes. A test asset has TestMode, any other asset has the empty Mode. AllModes is only for a Feed: with it, pages
// have assets of both modes.
const (
	TestMode Mode = "test"
	AllModes Mode = "_all_"
)

// Asset is an asset (docs/contract.md, "Asset"). The registry sets ID, AssetID,
// Owner, Date, DateModified, Documents and RectificationPeriod. It ignores the values
// that a client sends in these fields.
type Asset struct {
	ID                  string           `json:"id,omitempty"`
	AssetID             string           `json:"assetID,omitempty"`
	AssetType           string           `json:"assetType,omitempty"`
	Status              Status           `json:"status,omitempty"`
	Mode                Mode             `json:"mode,omitempty"`
	Title               string           `json:"title,omitempty"`
	TitleEn             string           `json:"title_en,omitempty"`
	TitleRu             string           `json:"title_ru,omitempty"`
	Description         string           `json:"description,omitempty"`
	DescriptionEn       string           `json:"description_en,omitempty"`
	DescriptionRu       string           `json:"description_ru,omitempty"`
	Items               []Item           `json:"items,omitempty"`
	Decisions           []Decision       `json:"decisions,omitempty"`
	Documents           []Document       `json:"documents,omitempty"` // all versions
	RelatedProcesses    []RelatedProcess `json:"relatedProcesses,omitempty"`
	AssetCustodian      Organisation     `json:"assetCustodian,omitzero"`
	AssetHolder         *Organisation    `json:"assetHolder,omitempty"`
	Owner               string           `json:"owner,omitempty"`
	RectificationPeriod *Period          `json:"rectificationPeriod,omitempty"`
	SandboxParameters   string           `json:"sandboxParameters,omitempty"` // in a sandbox only
	Date                Timestamp        `json:"date,omitempty"`
	DateModified        Timestamp        `json:"dateModified,omitempty"`

	Tagged
	Unknown Unknown `json:"-"`
}

// Item is one thing in an asset (docs/contract.md, "Item").
type Item struct {
	ID                        string              `json:"id,omitempty"`
	Description               string              `json:"description,omitempty"`
	DescriptionEn             string              `json:"description_en,omitempty"`
	DescriptionRu             string              `json:"description_ru,omitempty"`
	Classification            Classification      `json:"classification,omitzero"`
	AdditionalClassifications []Classification    `json:"additionalClassifications,omitempty"`
	Unit                      Unit                `json:"unit,omitzero"`
	Quantity                  Decimal             `json:"quantity,omitempty"`
	Address                   Address             `json:"address,omitzero"`
	Location                  *Location           `json:"location,omitempty"`
	RegistrationDetails       RegistrationDetails `json:"registrationDetails,omitzero"`

	Tagged
	Unknown Unknown `json:"-"`
}

// Classification is a code of a scheme (docs/contract.md, "Codes").
type Classification struct {
	Scheme        string `json:"scheme,omitempty"`
	ID            string `json:"id,omitempty"`
	Description   string `json:"description,omitempty"`
	DescriptionEn string `json:"description_en,omitempty"`
	DescriptionRu string `json:"description_ru,omitempty"`
	URI           string `json:"uri,omitempty"`

	Unknown Unknown `json:"-"`
}

// Unit is the unit of a quantity.
type Unit struct {
	Code   string `json:"code,omitempty"`
	Name   string `json:"name,omitempty"`
	NameEn string `json:"name_en,omitempty"`
	NameRu string `json:"name_ru,omitempty"`

	Unknown Unknown `json:"-"`
}

// Address is a postal address.
type Address struct {
	StreetAddress string `json:"streetAddress,omitempty"`
	Locality      string `json:"locality,omitempty"`
	Region        string `json:"region,omitempty"`
	PostalCode    string `json:"postalCode,omitempty"`
	CountryName   string `json:"countryName,omitempty"`
	CountryNameEn string `json:"countryName_en,omitempty"`
	CountryNameRu string `json:"countryName_ru,omitempty"`

	Unknown Unknown `json:"-"`
}

// Location is a place: its coordinates in degrees, and its height in metres.
type Location struct {
	Latitude  Scalar `json:"latitude,omitzero"`
	Longitude Scalar `json:"longitude,omitzero"`
	Elevation Scalar `json:"elevation,omitzero"`

	Unknown Unknown `json:"-"`
}

// RegistrationDetails is the state of an item in the register of titles.
type RegistrationDetails struct {
	Status           string    `json:"status,omitempty"` // "unknown", "registering" or "complete"
	RegistrationID   string    `json:"registrationID,omitempty"`
	RegistrationDate Timestamp `json:"registrationDate,omitempty"`

	Unknown Unknown `json:"-"`
}

// Decision is a decision to sell (docs/contract.md, "Decision").
type Decision struct {
	ID           string    `json:"id,omitempty"`
	Title        string    `json:"title,omitempty"`
	TitleEn      string    `json:"title_en,omitempty"`
	TitleRu      string    `json:"title_ru,omitempty"`
	DecisionDate Timestamp `json:"decisionDate,omitempty"`
	DecisionID   string    `json:"decisionID,omitempty"`
	DecisionOf   string    `json:"decisionOf,omitempty"` // always "asset"

	Tagged
	Unknown Unknown `json:"-"`
}

// The types of documents for which the registry has rules (docs/contract.md, "Document").
const (
	InformationDetails  = "informationDetails"
	CancellationDetails = "cancellationDetails"
	Familiarization     = "x_dgfAssetFamiliarization"
)

// Document is a version of a document (docs/contract.md, "Document").
type Document struct {
	ID            string    `json:"id,omitempty"`
	DocumentType  string    `json:"documentType,omitempty"`
	Title         string    `json:"title,omitempty"`
	TitleEn       string    `json:"title_en,omitempty"`
	TitleRu       string    `json:"title_ru,omitempty"`
	Description   string    `json:"description,omitempty"`
	DescriptionEn string    `json:"description_en,omitempty"`
	DescriptionRu string    `json:"description_ru,omitempty"`
	Format        string    `json:"format,omitempty"`
	URL           string    `json:"url,omitempty"`
	Hash          string    `json:"hash,omitempty"`
	SHA256        string    `json:"sha256,omitempty"` // set by the registry for a file that it keeps
	Size          *int64    `json:"size,omitempty"`   // bytes; set by the registry for a file that it keeps
	AccessDetails string    `json:"accessDetails,omitempty"`
	Language      string    `json:"language,omitempty"`
	Index         *int64    `json:"index,omitempty"`
	DocumentOf    string    `json:"documentOf,omitempty"`
	RelatedItem   string    `json:"relatedItem,omitempty"`
	Author        string    `json:"author,omitempty"`
	DatePublished Timestamp `json:"datePublished,omitempty"`
	DateModified  Timestamp `json:"dateModified,omitempty"`

	// PreviousVersions is set only when one document is read.
	PreviousVersions []Document `json:"previousVersions,omitempty"`
	// Thumbnails are small versions of an illustration whose file the registry keeps. From version 2.5 on, the
	// registry sets them in the answer to a read of a single document. If a thumbnail is not ready yet, or could not be
	// made, a read of the thumbnail gets 404.
	Thumbnails []Thumbnail `json:"thumbnails,omitempty"`

	Tagged
	Unknown Unknown `json:"-"`
}

// Thumbnail is a small version of a picture, as a JPEG (docs/contract.md, "Files").
type Thumbnail struct {
	URL  string `json:"url"`
	Side int64  `json:"side"` // pixels of the longer side; fewer if the picture itself has fewer
}

// Organisation is a custodian or a holder (docs/contract.md, "Organisation").
type Organisation struct {
	Name                    string       `json:"name,omitempty"`
	NameEn                  string       `json:"name_en,omitempty"`
	NameRu                  string       `json:"name_ru,omitempty"`
	Kind                    string       `json:"kind,omitempty"` // "general", "special" or "other"
	Identifier              Identifier   `json:"identifier,omitzero"`
	AdditionalIdentifiers   []Identifier `json:"additionalIdentifiers,omitempty"`
	Address                 Address      `json:"address,omitzero"`
	ContactPoint            Contact      `json:"contactPoint,omitzero"`
	AdditionalContactPoints []Contact    `json:"additionalContactPoints,omitempty"`

	Unknown Unknown `json:"-"`
}

// Identifier names an organisation in a register.
type Identifier struct {
	Scheme      string `json:"scheme,omitempty"`
	ID          Scalar `json:"id,omitzero"`
	LegalName   string `json:"legalName,omitempty"`
	LegalNameEn string `json:"legalName_en,omitempty"`
	LegalNameRu string `json:"legalName_ru,omitempty"`
	URI         string `json:"uri,omitempty"`

	Unknown Unknown `json:"-"`
}

// Contact is a contact point.
type Contact struct {
	Name      string `json:"name,omitempty"`
	NameEn    string `json:"name_en,omitempty"`
	NameRu    string `json:"name_ru,omitempty"`
	Email     string `json:"email,omitempty"`
	Telephone string `json:"telephone,omitempty"`
	FaxNumber string `json:"faxNumber,omitempty"`
	URL       string `json:"url,omitempty"`

	Unknown Unknown `json:"-"`
}

// Period is a rectification period (docs/contract.md, "Rectification period").
type Period struct {
	StartDate Timestamp `json:"startDate,omitempty"`
	EndDate   Timestamp `json:"endDate,omitempty"`

	Unknown Unknown `json:"-"`
}

// RelatedProcess is a sale or another process that an asset is part of
// (docs/contract.md, "Related process").
type RelatedProcess struct {
	ID               string `json:"id,omitempty"`
	Type             string `json:"type,omitempty"` // "asset", "auction" or "lot"
	RelatedProcessID string `json:"relatedProcessID,omitempty"`
	Identifier       string `json:"identifier,omitempty"`
	ParentID         string `json:"parentID,omitempty"`

	Tagged
	Unknown Unknown `json:"-"`
}
