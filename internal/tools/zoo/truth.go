package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// truth is truth.json: what was planted. A field with also names answers that are as good.
type truth struct {
	Verdict   string         `json:"verdict"`
	Kind      string         `json:"kind"`
	AlsoKind  []string       `json:"also_kind"`
	Layer     string         `json:"first_bad_layer"`
	AlsoLayer []string       `json:"also_right"`
	Cause     string         `json:"cause_id"`
	AlsoCause []string       `json:"also_cause"`
	Pattern   *regexp.Regexp `json:"cause_regex"`      // also matches ids of causes that are right
	Second    string         `json:"second_bad_layer"` // of a second bug, whose cause is not scored
	Rewrite   bool           `json:"rewrite"`          // the same function: its tensors differ, and may be noted
	Seen      string         `json:"seen_in"`          // injected: the dumps alone may show no more than rounding
	Row       *FedRow        `json:"first_row"`        // of a run along an execution path, the first wrong one
	unseen    bool           // a pass is as good

	// Where the candidate's names are foreign: its layers, and those of the reference which they are.
	Names     map[string]several  `json:"names"`
	AlsoNames map[string][]string `json:"also_names"` // as right: no recorded tensor tells them apart
	MayRefuse bool                `json:"may_refuse"` // no value is alike: the two may as well be two models
}

// different is the verdict of two runs that are not of one model.
const different = "different"

var anything = regexp.MustCompile("")

// alone is the truth that two dumps without an injected run can tell: a layer that is wrong in the
// assembled graph only is wrong in itself as far as they say, for whatever cause. What is little
// more than the rounding of all layers before it is not seen.
func (t truth) alone() truth {
	if t.Kind == "interaction" {
		t.AlsoKind, t.Pattern = append(t.AlsoKind, "local"), anything
	}
	t.unseen = t.Seen == "injected"
	return t
}

// report is the part of report.json that is scored.
type report struct {
	Verdict string `json:"verdict"`
	Kind    string `json:"kind"`
	First   struct {
		Layer string `json:"layer"`
		*FedRow
	} `json:"first_divergence"`
	Causes []cause `json:"causes"` // the best first
	Layers []row   `json:"layers"`
}

// FedRow (exported for encoding/json, which it is embedded for) is a token of a run along an execution path.
type FedRow struct {
	Pass     int `json:"pass"`
	Sequence int `json:"sequence"`
	Position int `json:"position"`
}

func (f *FedRow) String() string {
	if f == nil {
		return ""
	}
	return fmt.Sprintf(" %d/%d/%d", f.Pass, f.Sequence, f.Position)
}

type cause struct {
	ID     string `json:"id"`
	Layer  string `json:"layer"`
	Proven bool   `json:"proven"`
}

// Grades, the best first. A pair without a bug has no grade of its cause, unless one was named.
var (
	placeGrades = []string{"ok", "wrong kind", "wrong place", "wrong verdict", "error"}
	causeGrades = []string{"proven", "first", "top 3", "unsolved", "wrong proof", "accused"}
)

// passes reports whether nothing can be asked of a report.
func (t truth) passes(r report) bool {
	return t.unseen && r.Verdict == "pass" || t.MayRefuse && r.Verdict == different
}

// place grades verdict, kind and layer. The layer counts only where the truth names one.
func (t truth) place(r report) string {
	switch {
	case t.passes(r):
		return "ok"
	case r.Verdict != t.Verdict:
		return "wrong verdict"
	case t.Layer != "" && r.First.Layer != t.Layer && !slices.Contains(t.AlsoLayer, r.First.Layer):
		return "wrong place"
	case t.Row != nil && (r.First.FedRow == nil || *r.First.FedRow != *t.Row):
		return "wrong place"
	case r.Kind != t.Kind && !slices.Contains(t.AlsoKind, r.Kind):
		return "wrong kind"
	}
	return "ok"
}

// cause grades the causes: the planted one proven, named first, or among the first three. A proof
// of something else is wrong, and so is any cause for a clean pair; a rewrite may pass with a note
// of what was done, but nothing is proven against it.
func (t truth) cause(r report) string {
	wrong := func(c cause) bool { return c.Proven && !t.right(c) && !t.ofSecond(c) }
	at := slices.IndexFunc(r.Causes, t.right)
	switch {
	case len(r.Causes) == 0 && (t.Cause == "" || t.passes(r)):
		return ""
	case slices.ContainsFunc(r.Causes, wrong) && (t.Cause != "" || t.Rewrite):
		return "wrong proof"
	case t.Rewrite && r.Verdict == "pass":
		return ""
	case t.Cause == "":
		return "accused"
	case at >= 0 && r.Causes[at].Proven:
		return "proven"
	case at == 0:
		return "first"
	case at > 0 && at < 3:
		return "top 3"
	}
	return "unsolved"
}

func (t truth) right(c cause) bool {
	return c.ID == t.Cause || slices.Contains(t.AlsoCause, c.ID) || t.Pattern != nil && t.Pattern.MatchString(c.ID)
}

// ofSecond reports whether a cause is about the layer of the second bug, one around it or inside.
func (t truth) ofSecond(c cause) bool {
	return t.Second != "" && (strings.HasPrefix(c.Layer+".", t.Second+".") || strings.HasPrefix(t.Second, c.Layer+"."))
}

// said returns the place, the first cause and all proven ones, which have a mark. The guesses after
// the first are left out: their order depends on the last digits, which differ between processors.
func (r report) said() string {
	out := []string{place(r.Verdict, r.Kind, r.First.Layer) + r.First.FedRow.String()}
	for i, c := range r.Causes {
		id := c.ID
		if c.Proven {
			id += "!"
		}
		if (i == 0 || c.Proven) && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return strings.Join(out, " ")
}

func place(verdict, kind, layer string) string {
	if verdict == "pass" {
		return verdict
	}
	return strings.Join(strings.Fields(verdict+" "+kind+" "+layer), " ")
}
