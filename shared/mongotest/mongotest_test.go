package mongotest

import (
	"testing"

	"asset-registry/shared/testing/expect"
)

func TestAnAddressKeepsHostsAndOptions(t *testing.T) {
	for _, c := range []struct{ server, want string }{
		{"mongodb://one:27017", "mongodb://one:27017/run-x"},
		{"mongodb://one:27017/?replicaSet=rs0", "mongodb://one:27017/run-x?replicaSet=rs0"},
		{"mongodb://one:1,two:2/?replicaSet=rs0&tls=true", "mongodb://one:1,two:2/run-x?replicaSet=rs0&tls=true"},
		{"mongodb://u:p%40@one,two/admin?tls=true", "mongodb://u:p%40@one,two/run-x?tls=true&authSource=admin"},
		{"mongodb://u:p@one/admin", "mongodb://u:p@one/run-x?authSource=admin"},
		{"mongodb://u:p@one/other?authSource=admin", "mongodb://u:p@one/run-x?authSource=admin"},
		{"mongodb+srv://u:p@db.example.org/", "mongodb+srv://u:p@db.example.org/run-x"},
	} {
		s := &Server{Real: true, uri: c.server, run: "run-"}
		expect.Equal(t, s.URI(t, "x"), c.want, "on %s", c.server)
	}
	got, host := Through(t, "mongodb://u:p@one:1/run-x?replicaSet=rs0", "127.0.0.1:9")
	if want := "mongodb://u:p@127.0.0.1:9/run-x?directConnection=true"; got != want || host != "one:1" {
		t.Errorf("through a proxy: got %s to %s, want %s to one:1", got, host, want)
	}
}
