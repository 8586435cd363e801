// Package webhooks tests webhooks on a registry that runs as a process: how soon changes
// reach 1,000 receivers of which some are dead or slow, whether anything is lost when the
// process is killed, and what hostile receivers can do. The library of Standard Webhooks
// verifies the messages.
//
// It is a module of its own, because only these tests need that library.
package webhooks
