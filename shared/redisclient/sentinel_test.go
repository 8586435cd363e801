package redisclient

import (
	"strings"
	"testing"
	"time"

	"asset-registry/shared/redistest"
	"asset-registry/shared/testing/expect"
)

func TestFailover(t *testing.T) {
	for _, c := range []struct{ name, url, want string }{
		{
			"the default port", "redis+sentinel://a/main",
			"redis://a:26379/?master_name=main",
		},
		{
			"several hosts and a database", "redis+sentinel://a:1,b,[::1]:3,[::2]/main/5",
			"redis://a:1/5?addr=b%3A26379&addr=%5B%3A%3A1%5D%3A3&addr=%5B%3A%3A2%5D%3A26379&master_name=main",
		},
		{
			"TLS, a password and a parameter", "rediss+sentinel://:p%40s%2Fs@a:1,b:2/main/0?pool_size=5",
			"rediss://a:1/0?addr=b%3A2&master_name=main&password=p%40s%2Fs&pool_size=5&username=",
		},
		{
			"a password of the sentinels", "redis+sentinel://u:p@a:1/main?sentinel_password=q%23",
			"redis://:q%23@a:1/?master_name=main&password=p&username=u",
		},
		{
			"a user of the sentinels", "redis+sentinel://a/m?sentinel_username=s&sentinel_password=q",
			"redis://s:q@a:26379/?master_name=m",
		},
	} {
		expect.Value(t, c.want, "%s", c.name)(failover(c.url))
		expect.ErrorIf(t, !isSentinel(c.url), "%s: isSentinel: got false, want true", c.name)
	}
	for _, address := range []string{
		"redis+sentinel://:hunter2@a:1,b:2",
		"redis+sentinel://:hunter2@/main",
		"redis+sentinel://:hunter2@a,,b/main",
		"redis+sentinel://:hunter2@a/",
		"redis+sentinel://:hunter2@a:1:2/main",
		"redis+sentinel://:hunter2@a:x/main",
		"redis+sentinel://:hunter2@a/main?addr=b:1",
		"redis+sentinel://:hunter2@a/main?pool_size=%zz",
		"redis://:hunter2@a/main",
		"redis+sentinel:hunter2",
	} {
		if got, err := failover(address); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %s, %v; want an error without the password", address, got, err)
		}
	}
	for _, address := range []string{"redis://a/1", "rediss://a", "file:x", "", "redis+sentinel"} {
		expect.ErrorIf(t, isSentinel(address), "%q: isSentinel: got true, want false", address)
	}
}

// TestAFailoverBySentinelsHealsByItself kills a primary. The client must write to the former replica soon.
func TestAFailoverBySentinelsHealsByItself(t *testing.T) {
	const password = "p@ss"
	primary := redistest.Start(t, "--requirepass", password, "--masterauth", password)
	replica := primary.Replicate(t)
	timeouts := Timeouts{Dial: time.Second, Call: time.Second, Pool: time.Second}
	// No sentinel listens at the first address of the list.
	address := "redis+sentinel://:p%40ss@127.0.0.1:1," + primary.Watch(t, "main", password) + "/main/0"
	client, err := Open(address, timeouts)
	expect.OK(t, err)
	defer client.Close()
	write := func(value string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; {
			err := client.Set(t.Context(), "name", value, 0).Err()
			if err == nil {
				return
			}
			expect.FatalIf(t, time.Now().After(deadline), "write for a minute %s: got %v, want no error", value, err)
		}
	}
	write("at first")
	primary.Kill(t)
	expect.Fails(t, client.Set(t.Context(), "name", "lost", 0).Err(), "while the primary is down")
	write("after the failover")
	direct, err := Open("redis://:p%40ss@"+replica.Addr, timeouts)
	expect.OK(t, err)
	defer direct.Close()
	if got, err := direct.Get(t.Context(), "name").Result(); err != nil || got != "after the failover" {
		t.Errorf("the former replica: got %q, %v; want what was written after the failover", got, err)
	}
}
