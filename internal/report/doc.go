// Package report holds the result of judging one run, and writes it for its readers.
//
// A [Report] is what report.json holds (schema 1). [Write] and [Read] are its JSON form, [Text] is the
// summary that a person reads, [Markdown] and [Annotations] are for a CI's pages, and [AddAttachments]
// puts links to the report's files into a JUnit file. Nothing here judges: it says what was decided.
package report
