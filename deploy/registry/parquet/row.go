package main

import (
	"encoding/json"
	"fmt"
	"math/big"

	"asset-registry/deploy/registry/client"
)

// row is an asset as the file has it. An absent field is null. Times are in microseconds
// since the epoch.
type row struct {
	ID           string `parquet:"id"`
	DateModified int64  `parquet:"date_modified,timestamp(microsecond)"`
	AssetID      string `parquet:"asset_id,optional"`
	Status       string `parquet:"status,optional,dict"`
	Mode         string `parquet:"mode,optional,dict"`
	AssetType    string `parquet:"asset_type,optional,dict"`
	Title        string `parquet:"title,optional"`
	Description  string `parquet:"description,optional"`
	Date         int64  `parquet:"date,optional,timestamp(microsecond)"`
	Owner        string `parquet:"owner,optional,dict"`

	CustodianName     string `parquet:"custodian_name,optional"`
	CustodianScheme   string `parquet:"custodian_scheme,optional,dict"`
	CustodianID       string `parquet:"custodian_id,optional"`
	CustodianRegion   string `parquet:"custodian_region,optional,dict"`
	CustodianLocality string `parquet:"custodian_locality,optional"`
	HolderName        string `parquet:"holder_name,optional"`
	HolderScheme      string `parquet:"holder_scheme,optional,dict"`
	HolderID          string `parquet:"holder_id,optional"`

	Items     []item     `parquet:"items,list"`
	Decisions []decision `parquet:"decisions,list"`
	JSON      string     `parquet:"json"` // the whole asset
}

// item is a thing of an asset.
type item struct {
	Description              string `parquet:"description,optional"`
	Quantity                 []byte `parquet:"quantity,optional,decimal(4:38)"`
	UnitCode                 string `parquet:"unit_code,optional,dict"`
	UnitName                 string `parquet:"unit_name,optional,dict"`
	ClassificationScheme     string `parquet:"classification_scheme,optional,dict"`
	ClassificationID         string `parquet:"classification_id,optional,dict"`
	AdditionalClassification string `parquet:"additional_classification_id,optional,dict"` // the first one
	Region                   string `parquet:"region,optional,dict"`
	Locality                 string `parquet:"locality,optional"`
}

// decision is a decision to sell an asset.
type decision struct {
	ID    string `parquet:"decision_id,optional"`
	Date  int64  `parquet:"decision_date,optional,timestamp(microsecond)"`
	Title string `parquet:"title,optional"`
}

// rowOf returns the row of an asset, which is an entry of the feed with all fields.
func rowOf(text []byte) (row, error) {
	var a client.Asset
	if err := json.Unmarshal(text, &a); err != nil {
		return row{}, fmt.Errorf("read an asset: %w", err)
	}
	modified, err := a.DateModified.Time()
	if err != nil || a.ID == "" {
		return row{}, fmt.Errorf("asset %.50q has no id or no dateModified: %w", a.ID, err)
	}
	r := row{
		ID: a.ID, DateModified: modified.UnixMicro(), AssetID: a.AssetID, Status: string(a.Status), Mode: string(a.Mode),
		AssetType: a.AssetType, Title: a.Title, Description: a.Description, Date: micros(a.Date), Owner: a.Owner,
		CustodianName:   a.AssetCustodian.Name,
		CustodianScheme: a.AssetCustodian.Identifier.Scheme, CustodianID: a.AssetCustodian.Identifier.ID.String(),
		CustodianRegion: a.AssetCustodian.Address.Region, CustodianLocality: a.AssetCustodian.Address.Locality,
		JSON: string(text),
	}
	if h := a.AssetHolder; h != nil {
		r.HolderName, r.HolderScheme, r.HolderID = h.Name, h.Identifier.Scheme, h.Identifier.ID.String()
	}
	for _, i := range a.Items {
		shown, err := itemOf(i)
		if err != nil {
			return row{}, fmt.Errorf("asset %s: %w", a.ID, err)
		}
		r.Items = append(r.Items, shown)
	}
	for _, d := range a.Decisions {
		r.Decisions = append(r.Decisions, decision{ID: d.DecisionID, Date: micros(d.DecisionDate), Title: d.Title})
	}
	return r, nil
}

func itemOf(i client.Item) (item, error) {
	quantity, err := decimalOf(i.Quantity)
	shown := item{
		Description: i.Description, Quantity: quantity, UnitCode: i.Unit.Code, UnitName: i.Unit.Name,
		ClassificationScheme: i.Classification.Scheme, ClassificationID: i.Classification.ID,
		Region: i.Address.Region, Locality: i.Address.Locality,
	}
	if len(i.AdditionalClassifications) > 0 {
		shown.AdditionalClassification = i.AdditionalClassifications[0].ID
	}
	return shown, err
}

// micros returns a time in microseconds since the epoch, 0 if there is none.
func micros(t client.Timestamp) int64 {
	at, err := t.Time()
	if err != nil {
		return 0 // the column json has what is written
	}
	return at.UnixMicro()
}

const (
	decimalScale = 10_000 // of quantities: four fraction digits (docs/contract.md, "Numbers")
	decimalBytes = 16
)

// decimalOf returns a decimal as Parquet keeps it: an integer of 16 bytes in two's
// complement, the highest first. It returns nil for no decimal.
func decimalOf(d client.Decimal) ([]byte, error) {
	if d == "" {
		return nil, nil
	}
	value, ok := d.Rat()
	if !ok {
		return nil, fmt.Errorf("the quantity %.50q is no decimal", d)
	}
	value.Mul(value, big.NewRat(decimalScale, 1))
	if !value.IsInt() || value.Num().BitLen() > 126 {
		return nil, fmt.Errorf("the quantity %.50q has more digits than the registry keeps", d)
	}
	n := value.Num()
	if n.Sign() < 0 {
		n = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), 8*decimalBytes))
	}
	return n.FillBytes(make([]byte, decimalBytes)), nil
}
