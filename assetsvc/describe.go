package assetsvc

import "asset-registry/assetsvc/internal/asset"

// The types of Describe and Steps.
type (
	// Description describes one type of objects.
	Description = asset.Description
	// Field describes one field of an object.
	Field = asset.FieldDescription
	// Form describes plain values as JSON Schemas.
	Form = asset.Form
	// Step is one step between two states of an asset.
	Step = asset.Step
	// Status is a state of an asset.
	Status = asset.Status
	// Role is the role of a caller for an asset.
	Role = asset.Role
)

// AlsoAccepts is the schema keyword for the types that the registry accepts in addition to the schema's own type.
const AlsoAccepts = asset.AlsoAccepts

// Describe returns the description of every type of objects that clients send
// (docs/contract.md, "Asset" to "Related process"). The first describes the asset itself.
func Describe() []Description { return asset.Describe() }

// Statuses returns the states in the order of an asset's life.
func Statuses() []Status { return asset.Statuses }

// Steps returns every step between two states (docs/contract.md, "States").
func Steps() []Step { return asset.Steps() }
