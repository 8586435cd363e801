package client

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestErrorsAreToldByTheirStatus(t *testing.T) {
	for _, kind := range []struct {
		name     string
		is       func(error) bool
		statuses []int
	}{
		{"IsInvalid", IsInvalid, []int{400}},
		{"IsUnauthorized", IsUnauthorized, []int{401}},
		{"IsForbidden", IsForbidden, []int{403}},
		{"IsNotFound", IsNotFound, []int{404}},
		{"IsChanged", IsChanged, []int{412}},
		{"IsBusy", IsBusy, []int{429, 503}},
	} {
		var got []int
		for status := range 600 {
			if kind.is(fmt.Errorf("create: %w", &Error{Status: status})) {
				got = append(got, status)
			}
		}
		errorIf(t, !slices.Equal(got, kind.statuses),
			"%s: got the statuses %v, want %v", kind.name, got, kind.statuses)
		errorIf(t, kind.is(errors.New("no answer")) || kind.is(nil),
			"%s: got true for an error without a status, want false", kind.name)
	}
}
