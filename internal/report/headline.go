package report

// Headline is the verdict of a report in one line.
func Headline(r *Report) string { return r.headline() }
