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

// lists are names of modules that hold a list of layers. MAX's LayerList and Sequential repeat them
// as "<list>.layers.<number>".
var lists = strings.Fields("layers layer blocks block h resblocks transformerblocks mlp modules experts stages " +
	"sequential")

// normal folds the segments of a label and undoes the doubling of lists.
func normal(layer string) []string {
	segs := strings.Split(layer, ".")
	out := make([]string, 0, len(segs))
	for i, s := range segs {
		if !isLayers(segs, i) || !slices.Contains(lists, module.Fold(segs[i-1])) {
			out = append(out, module.Fold(s))
		}
	}
	return out
}

// loose drops from a normal form any "layers" that stands between a name and a number: a list may
// have any name.
func loose(segs []string) []string {
	out := make([]string, 0, len(segs))
	for i, s := range segs {
		if !isLayers(segs, i) {
			out = append(out, s)
		}
	}
	return out
}

// isLayers reports whether segment i is a "layers" between a name and a number.
func isLayers(segs []string, i int) bool {
	return segs[i] == "layers" && i > 0 && i+1 < len(segs) && label.IsNumber(segs[i+1])
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
	segs := slices.DeleteFunc(normal(name), isWrapper)
	return strings.Join(loose(segs), ".") + strings.TrimPrefix(layer, name)
}
