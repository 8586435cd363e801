package main

import (
	"asset-registry/shared/testing/expect"
	"testing"
)

func TestAKeyThatNoGatewayTakesIsNotMade(t *testing.T) {
	for _, c := range []struct{ name, id, broker, levels, says string }{
		{"a level that does not exist", "k", "b", "7", `levels "7"`},
		{"a level beside good ones", "k", "b", "13x", `levels "13x"`},
		{"no id", "", "b", "1", "id"},
		{"no broker", "k", "", "1", "broker is missing"},
	} {
		n := newKey{Broker: c.broker, Role: "broker", Levels: c.levels, ID: c.id}
		expect.Says(t, n.run(), c.says, "%s", c.name)
	}
}
