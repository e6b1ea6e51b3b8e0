package match

import (
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
)

// Words that only wrap a model. They may be dropped from the front of a label, never all of it.
var wrappers = map[string]bool{
	"model": true, "basemodel": true, "module": true, "origmod": true, "languagemodel": true, "textmodel": true, "llm": true, "backbone": true,
	"transformer": true, "automodel": true, "network": true, "net": true, "gptneox": true,
	"bert": true, "roberta": true, "xlmroberta": true, "camembert": true, "distilbert": true, "mpnet": true, "electra": true,
	"albert": true, "deberta": true,
}

// Names of modules that hold a list of layers. MAX's LayerList and Sequential repeat them as "<list>.layers.<number>".
var lists = map[string]bool{
	"layers": true, "layer": true, "blocks": true, "block": true, "h": true, "resblocks": true, "transformerblocks": true, "mlp": true,
	"modules": true, "experts": true, "stages": true, "sequential": true,
}

// normal is the form of a label in which two engines agree: segments without case and underscores, and lists not doubled.
func normal(layer string) []string {
	var out []string
	segs := strings.Split(layer, ".")
	for i, s := range segs {
		if s == "layers" && i > 0 && i+1 < len(segs) && label.IsNumber(segs[i+1]) && lists[fold(segs[i-1])] {
			continue
		}
		out = append(out, fold(s))
	}
	return out
}

// fold drops case and underscores; a segment of underscores only stays.
func fold(s string) string {
	if f := strings.ReplaceAll(strings.ToLower(s), "_", ""); f != "" {
		return f
	}
	return s
}

func onlyWrappers(segs []string) bool {
	return !slices.ContainsFunc(segs, func(s string) bool { return !wrappers[s] })
}

// withoutWrappers drops all wrapper words.
func withoutWrappers(segs []string) []string {
	return slices.DeleteFunc(slices.Clone(segs), func(s string) bool { return wrappers[s] })
}

// loose is the normal form without any "layers" that stands between a name and a number: in this form a list may have any name.
func loose(segs []string) []string {
	var out []string
	for i, s := range segs {
		if s != "layers" || i == 0 || i+1 == len(segs) || !label.IsNumber(segs[i+1]) {
			out = append(out, s)
		}
	}
	return out
}

// key is a label's normal form as a map key.
func key(segs []string) string { return strings.Join(segs, ".") }

// Key is a label in the form in which both engines write it: case, underscores, doubled lists and wrapper words do not count. Labels of
// one layer have the same key; different layers may, too (model and model.model).
func Key(layer string) string {
	base := label.Name(layer)
	return strings.Join(loose(withoutWrappers(normal(base))), ".") + strings.TrimPrefix(layer, base)
}
