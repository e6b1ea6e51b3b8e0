package report

// Headline is the verdict of a report in one line.
func Headline(r *Report) string { return r.headline() }

// KindText explains the kind of a first divergence in a sentence; empty for an unknown kind.
func KindText(kind string) string { return kinds[kind] }

// Sentence is what happened at the place.
func (d *Divergence) Sentence() string { return sentence(d.Text, d.Layer, d.After, d.Before) }

// Growing is the growth of a drift in one line, from block to block; empty if there is none.
func (d *Divergence) Growing() string {
	if len(d.Growth) < 2 {
		return ""
	}
	return growth(d.Growth)
}

// Counts says how many layers and tensors were compared, and with which result.
func Counts(r *Report) string {
	s := Count(r.Layers)
	text := count(s.Layers, "layer") + ", " + count(s.Compared, "tensor") + " compared"
	if counts := s.counts(); counts != "" {
		text += ": " + counts
	}
	return text
}

// String is the source in one line.
func (s Source) String() string { return s.line() }

// Limit is what judged a row, in short: "row 1e-4"; empty if nothing did.
func (l *Layer) Limit() string { return l.limit() }

// Clean makes a string from a dump fit to show on one line: control characters and what is not printable are replaced.
func Clean(s string) string { return clean(s) }
