package ukrainian

import (
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestUnitsAreWhatOfficesWrite has forms of units with other blanks, letters and signs than UnitForms, and texts that
// are no such unit.
// Promises: unit-forms
func TestUnitsAreWhatOfficesWrite(t *testing.T) {
	for code, forms := range map[string]string{
		"MTK": "MTK|mtk|м2|М2|m2|м²|М²|кв.м|кв.м.|кв м|КВ.М|кв.\u00a0м|кв. m|м.кв.|м кв|m²|M2|m^2|sq m|SQM|Sq. M.|Square Metres|метрів квадратних",
		"HAR": "HAR|га|ГА|га.|гa|Га | гектарів|ha|Ha.|hectare",
		"ARE": "ARE|сот|сотки|сот.|ар|соток", "KMK": "KMK|км2|км²|кв.км|sq km|КМ2",
		"H87": "H87|шт|шт.|ШТ.|штук|pcs", "C62": "C62|од|од.|одиниць",
		"": "|м|м3|м³|MTR|MTQ|m|кв|2|кг|т|г|грн|послуга|sq ft|acre|м2/рік|240 м2|" + strings.Repeat("м2", 40) + "|кв.м" + strings.Repeat(" ", 200),
	} {
		for form := range strings.SplitSeq(forms, "|") {
			expect.Equal(t, Unit(form), code, "%.40q", form)
		}
	}
}
