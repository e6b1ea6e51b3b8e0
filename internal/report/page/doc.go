// Package page writes a report as one HTML file that needs nothing else: no request leaves it (a
// content security policy sees to that), and everything from a dump is text, never markup.
package page
