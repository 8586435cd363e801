package telemetry

// Flag is what a gauge tells of something that is so or is not: 1 or 0.
func Flag(so bool) int64 {
	if so {
		return 1
	}
	return 0
}
