package report

import (
	"fmt"
	"math"
	"strings"
)

// causeDoc is the catalogue of causes, where each family of ids has a section.
const causeDoc = "docs/causes.md"

// Cause is one hypothesis on why the first divergence happens.
type Cause struct {
	ID        string `json:"id"` // stable, such as "activation/gelu-tanh"
	Layer     string `json:"layer"`
	Proven    bool   `json:"proven"`     // the prediction fits the candidate about as well as clean layers fit
	Fit       Float  `json:"fit"`        // relative L2 of the candidate against the prediction; "NaN" without one
	FitGolden Float  `json:"fit_golden"` // relative L2 of the candidate against the golden
	Text      string `json:"text"`
	// Next is the id of the next best prediction, of the first cause where that is not proven, and NextFit
	// its relative L2.
	Next    string `json:"next,omitempty"`
	NextFit Float  `json:"next_fit,omitempty"`
	Edit    *Edit  `json:"edit,omitempty"` // of the reference's program, that makes what the candidate has
}

// Edit is a change of the reference's program.
type Edit struct {
	Kind     string   `json:"kind"`
	Operator string   `json:"operator,omitempty"` // "aten.mul.Tensor"
	At       string   `json:"at,omitempty"`       // "layers.3.mixer:17", as parity compare --edit takes it
	Text     string   `json:"text"`
	Lines    []string `json:"lines,omitempty"` // of the reference's source: "modeling_x.py:15"
	Code     []string `json:"code,omitempty"`  // the expressions that are changed: "modeling_x.py:15 x * self.scale"
	Weight   string   `json:"weight,omitempty"`
	Fit      Float    `json:"fit"`
	Twins    []int    `json:"twins,omitempty"`  // in how many layers it is found, of how many that have this code
	Others   []string `json:"others,omitempty"` // edits that fit as well
}

// word is "proven" or "guess".
func (c Cause) word() string {
	if c.Proven {
		return "proven"
	}
	return "guess"
}

// Evidence says in figures what speaks for the cause; without a prediction there is one figure only.
func (c Cause) Evidence() string {
	switch predicts := !math.IsNaN(float64(c.Fit)); {
	case predicts && c.FitGolden == 0:
		return "fits the candidate, its NaN and infinities included, which the golden has not; the finite numbers are right"
	case predicts && c.Proven:
		return fmt.Sprintf("fits the candidate to %s, the golden only to %s", num(c.Fit), num(c.FitGolden))
	case predicts:
		text := fmt.Sprintf("fits the candidate to %s, the golden only to %s: it explains %s of the squared error", num(c.Fit), num(c.FitGolden), c.share(c.Fit))
		if c.Next != "" {
			text += fmt.Sprintf(", the next best, %s, %s", c.Next, c.share(c.NextFit))
		}
		return text
	case c.Proven:
		return "proven without numbers: by what was recorded"
	case c.FitGolden > 0:
		return fmt.Sprintf("unproven: it predicts no numbers; the golden fits the candidate to %s", num(c.FitGolden))
	}
	return "unproven: it predicts no numbers"
}

// share is the part of the squared error that a prediction explains: "94 %".
func (c Cause) share(fit Float) string {
	share := max(0, 1-math.Pow(float64(fit/c.FitGolden), 2))
	if share >= nearlyAll {
		return "nearly all"
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

// Sentence is what the cause is.
func (c Cause) Sentence() string { return sentence(c.Text, c.Layer) }

// Doc is the section of the catalogue about the cause.
func (c Cause) Doc() string {
	family, _, _ := strings.Cut(c.ID, "/")
	return causeDoc + "#" + family
}

// docs lists the sections about causes, each once: "docs/causes.md#norm, #linear".
func docs(causes []Cause) string {
	var out []string
	for _, c := range causes {
		out = append(out, strings.TrimPrefix(c.Doc(), causeDoc))
	}
	return causeDoc + strings.Join(once(out), ", ")
}

// lines are the cause and what is said of it.
func (c *Cause) lines(said ...string) []Line {
	out := []Line{{Lead: c.word(), Code: c.ID}}
	if c.Layer != "" { // which computes it
		out[0].Text = "at " + Clean(c.Layer)
	}
	for _, text := range filled(said) {
		out = append(out, Line{Text: text, Level: 1})
	}
	out[len(out)-1].Cause = c.ID
	return out
}
