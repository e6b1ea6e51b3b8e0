package match

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
)

func set(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}

// wrappers are words that only wrap a model. They may be dropped from the front of a label, never
// all of it.
var wrappers = set(`model basemodel module origmod languagemodel textmodel llm backbone transformer automodel
	network net gptneox bert roberta xlmroberta camembert distilbert mpnet electra albert deberta`)

// lists are names of modules that hold a list of layers. MAX's LayerList and Sequential repeat them
// as "<list>.layers.<number>".
var lists = set("layers layer blocks block h resblocks transformerblocks mlp modules experts stages sequential")

// form is a label in a form in which two engines agree.
type form struct {
	segs  []string
	name  string
	tails []string // what is left of name without its first 0, 1, … wrapper words; never wrapper words only
}

func newForm(segs []string) form {
	f := form{segs: segs, name: strings.Join(segs, ".")}
	tail := f.name
	for k, s := range segs[:min(len(segs), maxDropped+1)] {
		if onlyWrappers(segs[k:]) {
			break
		}
		f.tails = append(f.tails, tail)
		if !wrappers[s] {
			break
		}
		tail = tail[len(s)+1:]
	}
	return f
}

// normal folds the segments of a label and undoes the doubling of lists.
func normal(layer string) []string {
	segs := strings.Split(layer, ".")
	out := make([]string, 0, len(segs))
	for i, s := range segs {
		if !isLayers(segs, i) || !lists[module.Fold(segs[i-1])] {
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

func onlyWrappers(segs []string) bool {
	return !slices.ContainsFunc(segs, func(s string) bool { return !wrappers[s] })
}

// Key is a label in the form in which both engines write it: case, underscores, doubled lists and
// wrapper words do not count. Labels of one layer have the same key; different layers may, too
// (model and model.model).
func Key(layer string) string {
	name := label.Name(layer)
	segs := slices.DeleteFunc(normal(name), func(s string) bool { return wrappers[s] })
	return strings.Join(loose(segs), ".") + strings.TrimPrefix(layer, name)
}
