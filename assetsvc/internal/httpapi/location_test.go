package httpapi

import (
	"testing"

	"asset-registry/shared/testing/expect"
)

func TestAnAddressInAHeaderIsASCII(t *testing.T) {
	for _, c := range []struct{ name, address, want string }{
		{"an address in ASCII", "https://a.example:8/b%20c?d=%D1%84&e=f#g", "https://a.example:8/b%20c?d=%D1%84&e=f#g"},
		{"a path, a query and a fragment", "https://a.example/план?q=ї#є",
			"https://a.example/%D0%BF%D0%BB%D0%B0%D0%BD?q=%D1%97#%D1%94"},
		{"a host", "http://документи.укр", "http://xn--d1acjgkhd0bf.xn--j1amh"},
		{"a host with a port and a path", "https://Документи.укр:8443/ї", "https://xn--d1acjgkhd0bf.xn--j1amh:8443/%D1%97"},
		{"a host in capital letters", "https://A.Example/ї", "https://A.Example/%D1%97"},
		{"a host that punycode does not have", "https://xn--\uffff.ї/", "https://xn--%EF%BF%BF.%D1%97/"},
		{"no host", "https:///ї", "https:///%D1%97"},
		{"no scheme", "a.example/ї", "a.example/%D1%97"},
		{"a delete character", "https://a.example/\x7f", "https://a.example/%7F"},
		{"an IPv6 address", "https://[2001:db8::1]:8/ї", "https://[2001:db8::1]:8/%D1%97"},
		{"a line end", "https://a.example/\r\nSet-Cookie: a", "https://a.example/%0D%0ASet-Cookie:%20a"},
		{"a character beyond the first plane", "https://a.example/\U0001F600", "https://a.example/%F0%9F%98%80"},
	} {
		expect.Equal(t, headerURL(c.address), c.want, "%s", c.name)
	}
}
