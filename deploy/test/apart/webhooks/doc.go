// Package webhooks tests webhooks of a registry process: how soon changes reach 1,000 receivers, some of them dead
// or slow; whether anything is lost when the process is killed; and what hostile receivers can do. The library of
// Standard Webhooks verifies the messages.
//
// The package is a separate module, because only these tests need that library.
package webhooks
