// Package browser holds the test that opens the HTML report in Chromium. It is a module of its own,
// so that no user inherits chromedp.
package browser
