package asset

// writers says who may write a field of the asset (contract, sections 1.1 and 2.4).
type writers uint

const (
	atCreation writers = 1 << iota // the broker that creates the asset
	byOwner
	byConcierge
	byAdministrator
	byOwnerPublishing // the owner in the step from draft to pending (contract, decision 7)
)

// assetModel is the field model of contract section 1.1. Fields without
// writers are made by the service; clients may send them, to no effect.
var assetModel = model{name: "Asset", fields: []field{
	{name: "id", of: text},
	{name: "assetID", of: text},
	{name: "assetType", of: registeredType, required: true, writers: atCreation},
	{name: "status", of: oneOf(statuses...), required: true, writers: atCreation | byOwner | byConcierge | byAdministrator},
	{name: "mode", of: oneOf(testMode), writers: atCreation | byAdministrator},
	{name: "title", of: text, required: true, writers: atCreation | byOwner},
	{name: "title_en", of: text, writers: atCreation | byOwner},
	{name: "title_ru", of: text, writers: atCreation | byOwner},
	{name: "description", of: text, required: true, writers: atCreation | byOwner},
	{name: "description_en", of: text, writers: atCreation | byOwner},
	{name: "description_ru", of: text, writers: atCreation | byOwner},
	{name: "items", of: listOf(itemModel.convert, uniqueItems), writers: atCreation | byOwner},
	{name: "decisions", of: listOf(decisionModel.convert, uniqueDecisions), writers: atCreation | byOwnerPublishing},
	{name: "documents", of: listOf(documentModel.convert)},
	{name: "relatedProcesses", of: listOf(relatedProcessModel.convert, atMostOne), writers: atCreation | byOwner},
	{name: "assetCustodian", of: custodianModel.convert, required: true, writers: atCreation | byOwner},
	{name: "assetHolder", of: holderModel.convert, writers: atCreation | byOwner},
	{name: "owner", of: text},
	{name: "rectificationPeriod", of: periodModel.convert, writers: byAdministrator},
	{name: sandboxField, of: text, writers: atCreation | byOwner},
	{name: "date", of: timestamp},
	{name: "dateModified", of: timestamp},
	{name: "owner_token", of: dropped(secret), unasked: true},
	{name: "transfer_token", of: dropped(secret), unasked: true},
	{name: "revisions", of: dropped(listOf(anything)), unasked: true},
}}

var statuses = []string{
	string(Draft), string(Pending), string(Verification), string(Active), string(Complete), string(Deleted),
}

// testMode is the one value of mode.
const testMode = "test"

// itemModel is contract section 1.2.
var itemModel = model{name: "Item", fields: []field{
	{name: "id", of: ownID, absent: newID},
	{name: "description", of: text, required: true},
	{name: "description_en", of: text},
	{name: "description_ru", of: text},
	{name: "classification", of: classificationModel.convert, required: true},
	{name: "additionalClassifications", of: listOf(additionalClassificationModel.convert)},
	{name: "unit", of: unitModel.convert, required: true},
	{name: "quantity", of: quantity, required: true},
	{name: "address", of: addressModel.convert, required: true},
	{name: "location", of: locationModel.convert},
	{name: "registrationDetails", of: registrationModel.convert, required: true},
	{name: "schema_properties", of: disabled},
}}

var classificationModel = model{name: "Classification", check: checkClassification, fields: []field{
	{name: "scheme", of: oneOfCodes(classificationSchemes.names), absent: constant(cavPS)},
	{name: "id", of: text, required: true},
	{name: "description", of: text, required: true},
	{name: "description_en", of: text},
	{name: "description_ru", of: text},
	{name: "uri", of: webAddress},
}}

var additionalClassificationModel = model{name: "AdditionalClassification", check: checkAdditionalClassification, fields: []field{
	{name: "scheme", of: oneOfCodes(additionalSchemes.names), absent: constant("UA-EDR")},
	{name: "id", of: text, required: true},
	{name: "description", of: text, required: true},
	{name: "description_en", of: text},
	{name: "description_ru", of: text},
	{name: "uri", of: webAddress},
}}

var unitModel = model{name: "Unit", fields: []field{
	{name: "code", of: text, required: true},
	{name: "name", of: text},
	{name: "name_en", of: text},
	{name: "name_ru", of: text},
}}

var addressModel = model{name: "Address", fields: []field{
	{name: "streetAddress", of: text},
	{name: "locality", of: text},
	{name: "region", of: text},
	{name: "postalCode", of: text},
	{name: "countryName", of: text, required: true},
	{name: "countryName_en", of: text},
	{name: "countryName_ru", of: text},
}}

// locationModel holds coordinates as they were sent: to round one would move the
// place (contract, decision 21).
var locationModel = model{name: "Location", fields: []field{
	{name: "latitude", of: coordinate, required: true},
	{name: "longitude", of: coordinate, required: true},
	{name: "elevation", of: coordinate},
}}

var registrationModel = model{name: "RegistrationDetails", check: checkRegistration, fields: []field{
	{name: "status", of: oneOf("unknown", "registering", registrationComplete), absent: constant("unknown")},
	{name: "registrationID", of: text},
	{name: "registrationDate", of: timestamp},
}}

const registrationComplete = "complete"

// decisionModel is contract section 1.3.
var decisionModel = model{name: "Decision", fields: []field{
	{name: "id", of: ownID, absent: newID},
	{name: "title", of: text},
	{name: "title_en", of: text},
	{name: "title_ru", of: text},
	{name: "decisionDate", of: timestamp, required: true},
	{name: "decisionID", of: text, required: true},
	{name: "decisionOf", of: dropped(text), absent: constant("asset")},
	{name: "relatedItem", of: dropped(text)},
}}

// documentModel is contract section 1.4. Documents that are sent with an asset
// are ignored: they have addresses of their own.
var documentModel = model{name: "Document", check: checkDocument, fields: []field{
	{name: "id", of: reference},
	{name: "documentType", of: oneOf(documentTypes...), required: true},
	{name: "title", of: text, required: true},
	{name: "title_en", of: text},
	{name: "title_ru", of: text},
	{name: "description", of: text},
	{name: "description_en", of: text},
	{name: "description_ru", of: text},
	{name: "format", of: mediaType},
	{name: "url", of: documentAddress},
	{name: "hash", of: digest},
	{name: "accessDetails", of: text},
	{name: "language", of: text},
	{name: "index", of: integer},
	{name: "documentOf", of: oneOf("asset", "item"), absent: constant("asset")},
	{name: "relatedItem", of: reference},
	{name: "author", of: text},
	{name: "datePublished", of: timestamp},
	{name: "dateModified", of: timestamp},
}}

var documentTypes = []string{
	"notice", "technicalSpecifications", "illustration", "x_presentation", informationDetails, cancellationDetails,
	familiarization, "evaluationCriteria", "clarifications",
}

// The types of documents that rules are about.
const (
	informationDetails  = "informationDetails"        // the first document of every asset
	cancellationDetails = "cancellationDetails"       // without one no asset is deleted
	familiarization     = "x_dgfAssetFamiliarization" // is to be seen somewhere, and has no url
)

// custodianModel is contract section 1.5.
var custodianModel = model{name: "Organization", fields: append(organisationFields,
	field{name: "address", of: addressModel.convert, required: true},
	field{name: "contactPoint", of: contactModel.convert, required: true},
)}

// holderModel is that of a custodian whose address and contact point may be left out.
var holderModel = model{name: "Organization", fields: append(organisationFields,
	field{name: "address", of: addressModel.convert},
	field{name: "contactPoint", of: contactModel.convert},
)}

var organisationFields = []field{
	{name: "name", of: text, required: true},
	{name: "name_en", of: text},
	{name: "name_ru", of: text},
	{name: "kind", of: oneOf("general", "special", "other")},
	{name: "identifier", of: identifierModel.convert, required: true},
	{name: "additionalIdentifiers", of: listOf(identifierModel.convert)},
	{name: "additionalContactPoints", of: listOf(contactModel.convert)},
}

var identifierModel = model{name: "Identifier", fields: []field{
	{name: "scheme", of: oneOfCodes(identifierSchemes), required: true},
	{name: "id", of: identifierID, required: true},
	{name: "legalName", of: text},
	{name: "legalName_en", of: text},
	{name: "legalName_ru", of: text},
	{name: "uri", of: webAddress},
}}

var contactModel = model{name: "ContactPoint", check: checkContact, fields: []field{
	{name: "name", of: text, required: true},
	{name: "name_en", of: text},
	{name: "name_ru", of: text},
	{name: "email", of: emailAddress},
	{name: "telephone", of: text},
	{name: "faxNumber", of: text},
	{name: "url", of: webAddress},
}}

// periodModel is contract section 1.6.
var periodModel = model{name: "Period", check: checkPeriod, fields: []field{
	{name: "startDate", of: timestamp},
	{name: "endDate", of: timestamp},
}}

// relatedProcessModel is contract section 1.7.
var relatedProcessModel = model{name: "RelatedProcess", fields: []field{
	{name: "id", of: serverID, absent: givenID},
	{name: "type", of: oneOf("asset", "auction", relatedLot)},
	{name: "relatedProcessID", of: reference, required: true},
	{name: "identifier", of: text},
	{name: "parentID", of: text},
}}

const relatedLot = "lot"
