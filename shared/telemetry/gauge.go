package telemetry

// Flag returns the value of a gauge for a condition: 1 if it is true, otherwise 0.
func Flag(condition bool) int64 {
	if condition {
		return 1
	}
	return 0
}
