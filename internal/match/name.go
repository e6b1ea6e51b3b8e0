package match

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
)

// wrappers are words that only wrap a model. They may be dropped from the front of a label, never
// all of it.
var wrappers = strings.Fields(`model basemodel module origmod languagemodel textmodel llm backbone transformer automodel
	network net gptneox bert roberta xlmroberta camembert distilbert mpnet electra albert deberta`)

// normal is a label in the form in which labels are compared: its segments folded and unlisted.
func normal(layer string) []string { return unlisted(folded(layer)) }

func folded(layer string) []string { return collect(strings.Split(layer, "."), module.Fold) }

// unlisted leaves out each "layers" that stands before a number, but one in front: a list may have
// any name, and engines double it.
func unlisted(segs []string) (out []string) {
	for i, s := range slices.Backward(segs) {
		if i == 0 || s != "layers" || len(out) == 0 || !label.IsNumber(out[len(out)-1]) {
			out = append(out, s)
		}
	}
	slices.Reverse(out)
	return out
}

func isWrapper(segment string) bool { return slices.Contains(wrappers, segment) }

func onlyWrappers(segs []string) bool {
	return !slices.ContainsFunc(segs, func(s string) bool { return !isWrapper(s) })
}

// Key is a label in the form in which both engines write it: case, underscores, doubled lists and
// wrapper words do not count. Labels of one layer have the same key; different layers may, too
// (model and model.model).
func Key(layer string) string {
	name := label.Name(layer)
	segs := slices.DeleteFunc(folded(name), isWrapper)
	return strings.Join(unlisted(segs), ".") + strings.TrimPrefix(layer, name)
}
