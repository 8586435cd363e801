package asset

import (
	"errors"
	"time"

	"asset-registry/assetsvc/internal/record"
)

// Origin is what the service knows of a new asset.
type Origin struct {
	ID        string        // of the new asset
	Owner     string        // the broker that creates it
	MayCreate bool          // the broker's accreditation permits creation (contract, section 6.2)
	TestOnly  bool          // the broker may create assets in test mode only
	Hidden    []string      // dotted paths of fields that the caller's API version does not have
	Now       time.Time     // when it is created
	NewID     func() string // makes ids of parts: 32 lowercase hex characters
}

// Create returns the asset that a broker's fields make.
func (r Rules) Create(in record.Object, o Origin) (Asset, error) {
	return Asset{}, errors.New("asset: create is not built yet")
}

// Change is what somebody asks to be changed of an asset.
type Change struct {
	Fields record.Object // what was sent
	Whole  bool          // Fields replace rather than merge (PUT; contract, decision 17)
	Role   Role          // of the caller, for this asset
	Hidden []string      // dotted paths of fields that the caller's API version does not have
	Now    time.Time
	NewID  func() string // makes ids of parts: 32 lowercase hex characters
}

// Change returns the asset after the change, and whether it differs.
func (r Rules) Change(a Asset, c Change) (Asset, bool, error) {
	return Asset{}, false, errors.New("asset: change is not built yet")
}
