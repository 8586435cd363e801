// Package browser tests the admin console, the site and the documentation page in Chromium: with and without
// script, by keyboard, on a phone, in dark mode, and against hostile sites. It also tests the site in Firefox. The
// tests save screenshots in bin/screenshots.
//
// The package is a separate module, because only these tests need the browser driver.
package browser
