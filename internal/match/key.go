package match

import (
	"strings"

	"github.com/goparity/goparity/internal/label"
)

// Key is a label in the form in which both engines write it: case, underscores, doubled lists and wrapper words do not count. Labels of
// one layer have the same key; different layers may, too (model and model.model).
func Key(layer string) string {
	base := label.Name(layer)
	return strings.Join(loose(withoutWrappers(normal(base))), ".") + strings.TrimPrefix(layer, base)
}
