package report

import (
	"cmp"
	"fmt"
	"slices"
)

// Judged is one thing that a stage other than the tensors judged: a prompt, a weight, a path, a text, an
// answer of a server.
type Judged struct {
	Stage, Name string
	Status      Status // pass, fail or not judged
	Count       int    // of tokens, rows or outputs that were judged, where they are counted
	Text        string
}

// judged lists what the stages judged, but for the rows of tensors.
func (r *Report) judged() (list []Judged) {
	for _, s := range stages() {
		if s.rows != nil {
			continue
		}
		for _, j := range s.judged(r) {
			j.Stage = s.name
			list = append(list, j)
		}
	}
	return list
}

// StageChange is a judged thing of which an earlier report says something else.
type StageChange struct {
	Old, New *Judged // nil where that report does not have it
	Class    Class
}

// StageChanges compares what the stages other than the tensors judged, bad changes first, then in the order of
// the stages. What was judged of fewer tokens, rows or figures than before is gone, as it may hide what became
// wrong.
func StageChanges(old, now *Report) (changes []StageChange) {
	key := func(j Judged) [2]string { return [2]string{j.Stage, j.Name} }
	find := func(list []Judged, j Judged) *Judged {
		if i := slices.IndexFunc(list, func(o Judged) bool { return key(o) == key(j) }); i >= 0 && list[i].Status != NotJudged {
			return &list[i]
		}
		return nil
	}
	before, after := old.judged(), now.judged()
	for i := range after {
		n, o := &after[i], find(before, after[i])
		class := Class("")
		switch {
		case n.Status == NotJudged:
			continue // it is gone, if it was there
		case o == nil && n.Status == StatusFail:
			class = Worse
		case o == nil:
			class = New
		case o.Status == StatusPass && n.Status == StatusFail:
			class = Worse
		case o.Status == StatusFail && n.Status == StatusPass:
			class = Better
		case n.Status == StatusPass && n.Count < o.Count:
			class = Gone
		}
		if class != "" {
			changes = append(changes, StageChange{o, n, class})
		}
	}
	for i := range before {
		if o := &before[i]; o.Status != NotJudged && find(after, *o) == nil {
			changes = append(changes, StageChange{o, nil, Gone})
		}
	}
	slices.SortStableFunc(changes, func(a, b StageChange) int {
		return cmp.Compare(slices.Index(classes, a.Class), slices.Index(classes, b.Class))
	})
	return changes
}

// String is "serving first as ids, alone: pass → fail: …".
func (c StageChange) String() string {
	j, was, is := c.New, "not judged", "not judged"
	if c.Old != nil {
		j, was = c.Old, string(c.Old.Status)
	}
	text := ""
	if c.New != nil {
		j, is, text = c.New, string(c.New.Status), c.New.Text
	}
	if c.Old != nil && c.New != nil && c.New.Count < c.Old.Count && was == is {
		was, is = fmt.Sprintf("%s, %d judged", was, c.Old.Count), fmt.Sprintf("%d", c.New.Count)
	}
	line := fmt.Sprintf("%s %s: %s → %s", j.Stage, j.Name, was, is)
	if text != "" && is == string(StatusFail) {
		line += ": " + text
	}
	return line
}
