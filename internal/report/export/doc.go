// Package export writes what only the command needs of a report: one HTML file that loads nothing (a content security
// policy sees to that) and in which everything from a dump is text, the depth as PNG, and links to the files of a
// report in a JUnit file.
package export
