// Package browser tests the admin console, the site and the documentation page in Chromium: with
// and without script, by keyboard, on a phone, in dark mode, and against hostile sites. Firefox
// walks the site, too.
// It saves screenshots in bin/screenshots.
//
// It is a module of its own, because only these tests need the browser driver.
package browser
