package export

import "fmt"

// Figure is the value of a metric, with the name and the labels that Prometheus shows.
type Figure struct {
	Name   string
	Labels map[string]string
	Value  float64
}

// Figures returns the gauges and counters of the process.
func (e *Export) Figures() (all []Figure, err error) {
	families, err := e.gather.Gather()
	if err != nil {
		return nil, fmt.Errorf("gather metrics: %w", err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			f := Figure{Name: family.GetName(), Labels: map[string]string{}}
			switch {
			case m.GetGauge() != nil:
				f.Value = m.GetGauge().GetValue()
			case m.GetCounter() != nil:
				f.Value = m.GetCounter().GetValue()
			default:
				continue
			}
			for _, l := range m.GetLabel() {
				f.Labels[l.GetName()] = l.GetValue()
			}
			all = append(all, f)
		}
	}
	return all, nil
}
