package redisstore

import (
	"testing"

	"asset-registry/shared/metrictest"
	"asset-registry/shared/redistest"
)

func TestMemoryAndTheLastBackupAreTold(t *testing.T) {
	server := redistest.Start(t)
	meter := metrictest.New()
	s, err := Open(server.URL(), meter)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.client.ConfigSet(t.Context(), "maxmemory", "100mb").Err(); err != nil {
		t.Fatal(err)
	}
	told := meter.Read(t)
	if got, want := told["registry.store.memory.max{tokens}"], float64(100<<20); got != want {
		t.Errorf("maximum memory: got %v, want %v", got, want)
	}
	if got := told["registry.store.memory.used{tokens}"]; got <= 0 || got >= 100<<20 {
		t.Errorf("used memory: got %v, want more than 0 and less than 100 MiB", got)
	}
	if got, known := told["registry.backup.finished"]; !known || got != 0 {
		t.Errorf("no backup yet: got %v, %v; want 0, true", got, known)
	}
	if err := s.client.Set(t.Context(), "registry:backup", "1790000000", 0).Err(); err != nil { // as backup.sh does
		t.Fatal(err)
	}
	if got := meter.Read(t)["registry.backup.finished"]; got != 1790000000 {
		t.Errorf("the last backup: got %v, want 1790000000", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if told := meter.Read(t); len(told) != 0 {
		t.Errorf("a closed store: got metrics %v, want none", told)
	}
}
