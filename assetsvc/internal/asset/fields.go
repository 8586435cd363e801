package asset

// writers is a set of occasions on which a client writes a field of the asset
// (docs/contract.md, "Writable fields").
type writers uint

const (
	atCreation writers = 1 << iota // the broker creates the asset
	byOwner
	byConcierge
	byAdministrator
	byOwnerPublishing // the owner takes the asset from draft to pending
)

// Names of fields that are also used outside the table.
const (
	sandboxField   = "sandboxParameters"
	processesField = "relatedProcesses"
	periodField    = "rectificationPeriod"
	modifiedField  = "dateModified"
)

// assetModel is the field table of an asset (docs/contract.md, "Asset"). If a field has no writers, the service sets
// it. Clients may send such a field. The service checks the type of the value and ignores the value.
var assetModel = model{name: "Asset", fields: []field{
	{name: "id", of: code, given: true},
	{name: "assetID", of: code, given: true},
	{name: "assetType", of: registeredType, required: true, writers: atCreation},
	{
		name: "status", of: oneOf(statusNames()...), required: true, keeps: true,
		writers: atCreation | byOwner | byConcierge | byAdministrator,
	},
	{name: "mode", of: oneOf(testMode), keeps: true, writers: atCreation | byAdministrator},
	{name: "title", of: line, required: true, writers: atCreation | byOwner},
	{name: "title_en", of: line, writers: atCreation | byOwner},
	{name: "title_ru", of: line, writers: atCreation | byOwner},
	{name: "description", of: prose, required: true, writers: atCreation | byOwner},
	{name: "description_en", of: prose, writers: atCreation | byOwner},
	{name: "description_ru", of: prose, writers: atCreation | byOwner},
	{name: "items", of: listOf(&itemModel, uniqueItems), writers: atCreation | byOwner},
	{name: "decisions", of: listOf(&decisionModel, uniqueDecisions), writers: atCreation | byOwnerPublishing},
	{name: "documents", of: listOf(&documentModel)},
	{name: processesField, of: listOf(&relatedProcessModel, atMostOne), writers: atCreation | byOwner},
	{name: "assetCustodian", of: &custodianModel, required: true, writers: atCreation | byOwner},
	{name: "assetHolder", of: &holderModel, writers: atCreation | byOwner},
	{name: "owner", of: code, given: true},
	{name: periodField, since: "2.5", of: &periodModel, keeps: true, writers: byAdministrator},
	{name: sandboxField, of: code, sandboxOnly: true, writers: atCreation | byOwner},
	{name: "date", of: timestamp, given: true},
	{name: modifiedField, of: timestamp, given: true},
	{name: "owner_token", of: dropped{of: secret}, unsuggested: true},
	{name: "transfer_token", of: dropped{of: secret}, unsuggested: true},
	{name: "revisions", of: dropped{of: listOf(anything)}, unsuggested: true},
}}

// testMode is the only value that the field "mode" can have.
const testMode = "test"

// itemModel is the field table of an item (docs/contract.md, "Item").
var itemModel = model{name: "Item", fields: []field{
	{name: "id", of: ownID, absent: newID},
	{name: "description", of: prose, required: true},
	{name: "description_en", of: prose},
	{name: "description_ru", of: prose},
	{name: "classification", of: &classificationModel, required: true},
	{name: "additionalClassifications", of: listOf(&additionalClassificationModel)},
	{name: "unit", of: &unitModel, required: true},
	{name: "quantity", of: quantity, required: true},
	{name: "address", of: &addressModel, required: true},
	{name: "location", of: &locationModel, group: Locations},
	{name: "registrationDetails", of: &registrationModel, required: true},
	{name: "schema_properties", of: dropped{of: disabled}},
}}

var classificationModel = model{
	name:  "Classification",
	check: checkClassification,
	fields: append([]field{
		{name: "scheme", of: oneOfCodes(classificationSchemes.names), absent: constant(cavPS)},
	}, classificationFields...),
}

var additionalClassificationModel = model{
	name:  "AdditionalClassification",
	check: checkAdditionalClassification,
	fields: append([]field{
		{name: "scheme", of: oneOfCodes(additionalSchemes.names), absent: constant("UA-EDR")},
	}, classificationFields...),
}

// classificationFields are the fields that both kinds of classifications have.
var classificationFields = []field{
	{name: "id", of: code, required: true},
	{name: "description", of: prose, required: true},
	{name: "description_en", of: prose},
	{name: "description_ru", of: prose},
	{name: "uri", of: webAddress},
}

var unitModel = model{name: "Unit", fields: []field{
	{name: "code", of: code, required: true},
	{name: "name", of: line},
	{name: "name_en", of: line},
	{name: "name_ru", of: line},
}}

var addressModel = model{name: "Address", fields: []field{
	{name: "streetAddress", of: line, group: Addresses},
	{name: "locality", of: line},
	{name: "region", of: line},
	{name: "postalCode", of: code, group: Addresses},
	{name: "countryName", of: line, required: true},
	{name: "countryName_en", of: line},
	{name: "countryName_ru", of: line},
}}

// locationModel keeps coordinates exactly as the client sent them, because rounding would move the place
// (docs/contract.md, "Numbers").
var locationModel = model{name: "Location", fields: []field{
	{name: "latitude", of: coordinate, required: true},
	{name: "longitude", of: coordinate, required: true},
	{name: "elevation", of: height},
}}

var registrationModel = model{name: "RegistrationDetails", check: checkRegistration, fields: []field{
	{name: "status", of: oneOf("unknown", "registering", registrationComplete), absent: constant("unknown")},
	{name: "registrationID", of: code},
	{name: "registrationDate", of: timestamp},
}}

const registrationComplete = "complete"

// decisionModel is the field table of a decision (docs/contract.md, "Decision").
var decisionModel = model{name: "Decision", fields: []field{
	{name: "id", of: ownID, absent: newID},
	{name: "title", of: line},
	{name: "title_en", of: line},
	{name: "title_ru", of: line},
	{name: "decisionDate", of: timestamp, required: true},
	{name: "decisionID", of: code, required: true},
	{name: "decisionOf", of: dropped{text, "asset"}, absent: constant("asset")},
	{name: "relatedItem", of: dropped{of: text}},
}}

// documentModel is the field table of a document (docs/contract.md, "Document"). The service ignores documents
// that a client sends within an asset, because documents have separate paths.
var documentModel = model{name: "Document", check: checkDocument, fields: []field{
	{name: "id", of: reference, given: true, ours: true},
	{name: "documentType", of: oneOf(documentTypes...), required: true},
	{name: "title", of: line, required: true},
	{name: "title_en", of: line},
	{name: "title_ru", of: line},
	{name: "description", of: prose},
	{name: "description_en", of: prose},
	{name: "description_ru", of: prose},
	{name: "format", of: mediaType},
	{name: "url", of: documentAddress},
	{name: "hash", of: digest},
	{name: sha256Field, since: "2.5", of: code, ours: true},
	{name: sizeField, since: "2.5", of: integer, ours: true},
	{name: "accessDetails", of: prose},
	{name: "language", of: code},
	{name: "index", of: integer},
	{name: "documentOf", of: oneOf("asset", "item"), absent: constant("asset")},
	{name: "relatedItem", of: reference},
	{name: "author", of: code, ours: true},
	{name: "datePublished", of: timestamp, given: true, ours: true},
	{name: "dateModified", of: timestamp, given: true, ours: true},
}}

var documentTypes = []string{
	"notice", "technicalSpecifications", "illustration", "x_presentation", informationDetails, cancellationDetails,
	familiarization, "evaluationCriteria", "clarifications",
}

// Document types that rules depend on.
const (
	informationDetails  = "informationDetails"        // the first document of every asset has this type
	cancellationDetails = "cancellationDetails"       // an asset needs a document of this type to be deleted
	familiarization     = "x_dgfAssetFamiliarization" // its documents say where to see the asset, and have no url
)

// custodianModel is the field table of an organisation (docs/contract.md,
// "Organisation").
var custodianModel = model{name: "Organization", fields: append(organisationFields,
	field{name: "address", of: &addressModel, required: true},
	field{name: "contactPoint", of: &contactModel, required: true, group: Contacts},
)}

// holderModel is custodianModel with an optional address and contact point.
var holderModel = model{name: "Organization", title: "Holder", fields: append(organisationFields,
	field{name: "address", of: &addressModel},
	field{name: "contactPoint", of: &contactModel, group: Contacts},
)}

// organisationFields has no spare capacity, so appending to it always copies it.
var organisationFields = []field{
	{name: "name", of: line, required: true},
	{name: "name_en", of: line},
	{name: "name_ru", of: line},
	{name: "kind", of: oneOf("general", "special", "other")},
	{name: "identifier", of: &identifierModel, required: true},
	{name: "additionalIdentifiers", of: listOf(&identifierModel)},
	{name: "additionalContactPoints", since: "2.5", of: listOf(&contactModel), group: Contacts},
}

var identifierModel = model{name: "Identifier", fields: []field{
	{name: "scheme", of: identifierScheme, required: true},
	{name: "id", of: identifierID, required: true},
	{name: "legalName", of: line},
	{name: "legalName_en", of: line},
	{name: "legalName_ru", of: line},
	{name: "uri", of: webAddress},
}}

var contactModel = model{name: "ContactPoint", check: checkContact, fields: []field{
	{name: "name", of: line, required: true},
	{name: "name_en", of: line},
	{name: "name_ru", of: line},
	{name: "email", of: emailAddress},
	{name: "telephone", of: code},
	{name: "faxNumber", of: code},
	{name: "url", of: webAddress},
}}

// periodModel is the field table of a rectification period (docs/contract.md,
// "Rectification period").
var periodModel = model{name: "Period", check: checkPeriod, fields: []field{
	{name: "startDate", of: timestamp},
	{name: "endDate", of: timestamp},
}}

// relatedProcessModel is the field table of a related process (docs/contract.md,
// "Related process").
var relatedProcessModel = model{name: "RelatedProcess", fields: []field{
	{name: "id", of: serverID, absent: givenID},
	{name: "type", of: oneOf("asset", "auction", relatedLot)},
	{name: "relatedProcessID", of: reference, required: true},
	{name: "identifier", of: code},
	{name: "parentID", of: code},
}}

const relatedLot = "lot"

// accessModel is the field table of the access block in the answer to a creation (docs/contract.md, "Create").
// Clients cannot write it.
var accessModel = model{name: "Access", fields: []field{
	{name: "token", of: secret, given: true},
	{name: "transfer", since: "2.5", of: secret, given: true},
}}
