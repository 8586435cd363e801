// Package browser checks the admin console as its users have it: in a browser,
// with and without script, with the keyboard alone, on a phone, in the dark, and
// with other sites that mean them ill. What it has looked like is left in
// bin/screenshots.
//
// It is a module of its own because of what it takes to steer a browser.
package browser
