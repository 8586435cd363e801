package asset

import "asset-registry/shared/assetfields"

// Names of fields that rules use.
const (
	processesField = "relatedProcesses"
	periodField    = "rectificationPeriod"
	modifiedField  = "dateModified"
)

// Values that rules use.
const (
	testMode             = "test" // the only value that the field "mode" can have
	registrationComplete = "complete"
	relatedLot           = "lot"
)

// Document types that rules depend on.
const (
	informationDetails  = "informationDetails"        // the first document of every asset has this type
	cancellationDetails = "cancellationDetails"       // an asset needs a document of this type to be deleted
	familiarization     = "x_dgfAssetFamiliarization" // its documents say where to see the asset, and have no url
)

var documentTypes = []string{
	"notice", "technicalSpecifications", "illustration", "x_presentation", informationDetails, cancellationDetails,
	familiarization, "evaluationCriteria", "clarifications",
}

// The field tables with which the rules work. The rows are in assetfields.
var (
	tables              = map[*assetfields.Object]*model{}
	assetModel          = tableOf(&assetfields.Asset)
	itemModel           = tableOf(&assetfields.Item)
	decisionModel       = tableOf(&assetfields.Decision)
	documentModel       = tableOf(&assetfields.Document)
	relatedProcessModel = tableOf(&assetfields.RelatedProcess)
	accessModel         = tableOf(&assetfields.Access)
	handoverModel       = tableOf(&assetfields.Ownership)
	transferModel       = tableOf(&assetfields.Transfer)
	recoveryModel       = tableOf(&assetfields.Recovery)
)

// kindsOf has the kinds of the rows.
var kindsOf = map[assetfields.Kind]plain{
	"additional scheme": oneOfCodes(additionalSchemes.names), "anything": anything, "asset type": registeredType,
	"classification scheme": oneOfCodes(classificationSchemes.names), "code": code, "coordinate": coordinate,
	"digest": digest, "disabled": disabled, "document address": documentAddress,
	"document type": oneOf(documentTypes...), "email address": emailAddress, "height": height,
	"identifier id": identifierID, "identifier scheme": identifierScheme, "integer": integer, "line": line,
	"media type": mediaType, "mode": oneOf(testMode), "own id": ownID, "prose": prose, "quantity": quantity,
	"reason": reason, "reference": reference, "secret": secret, "server id": serverID,
	"state": oneOf(statusNames()...), "text": text, "timestamp": timestamp, "web address": webAddress,
}

// listChecks has the rules over the elements of lists, by the names of their fields.
var listChecks = map[string][]listCheck{
	"items": {uniqueItems}, "decisions": {uniqueDecisions}, processesField: {atMostOne},
}

// objectChecks has the rules over several fields, by the names of objects.
var objectChecks = map[string]objectCheck{
	"Classification": checkClassification, "AdditionalClassification": checkAdditionalClassification,
	"RegistrationDetails": checkRegistration, "Document": checkDocument, "ContactPoint": checkContact,
	"Period": checkPeriod,
}

// tableOf returns the field table of an object. All calls with one object return the same table.
func tableOf(o *assetfields.Object) *model {
	if m, made := tables[o]; made {
		return m
	}
	m := &model{name: o.Name, title: o.Title, about: o.About, check: objectChecks[o.Name]}
	tables[o] = m
	for _, row := range o.All() {
		m.fields = append(m.fields, fieldOf(row))
	}
	return m
}

func fieldOf(row assetfields.Field) field {
	f := field{
		name: row.Name, since: Version(row.Since), required: row.Is.Has(assetfields.Required),
		given: row.Is.Has(assetfields.Given), ours: row.Is.Has(assetfields.Ours), keeps: row.Is.Has(assetfields.Keeps),
		sandboxOnly: row.Is.Has(assetfields.SandboxOnly), unsuggested: row.Is.Has(assetfields.Unsuggested),
		group: row.Group, writers: row.By, about: row.About, example: row.Example,
	}
	switch {
	case row.Of != nil:
		f.of = tableOf(row.Of)
	case row.Kind == assetfields.Choice:
		f.of = oneOf(row.Choices...)
	default:
		f.of = kindsOf[row.Kind]
	}
	if row.Is.Has(assetfields.List) {
		f.of = list{f.of, listChecks[row.Name]}
	}
	if row.Is.Has(assetfields.Dropped) {
		d := dropped{of: f.of}
		if row.Default != "" {
			d.are = row.Default
		}
		f.of = d
	}
	switch {
	case row.Kind == assetfields.OwnID:
		f.absent = newID
	case row.Kind == assetfields.ServerID:
		f.absent = givenID
	case row.Default != "":
		f.absent = constant(row.Default)
	}
	return f
}
